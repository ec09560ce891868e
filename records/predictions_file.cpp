#include "records/predictions_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.hpp"
#include "core/means.hpp"
#include "data/hdf5/sealed_file.hpp"
#include "records/predictions_header.hpp"

namespace tpudist {
namespace {

constexpr std::int32_t kNoGroup = -1;  // of rows of which nothing says which are equal

bool is_tile(const PredictionsHeader& header) {
  return header.collection.starts_with("tile:");
}

// Mean of finite scores; 0 where one is not finite or there are none.
double offset_of(std::span<const double> scores) {
  const double offset = mean(scores);
  return std::isfinite(offset) ? offset : 0;
}

}  // namespace

PredictionsWriter::PredictionsWriter(const std::filesystem::path& path, PredictionsHeader header,
                                     FileSystem& files)
    : file_(path, files), header_(std::move(header)), added_(header_.graphs.size()) {
  if (const std::string fault = fault_of(header_); !fault.empty())
    throw Error(ErrorKind::failed, fmt::format("{}: {}", path.string(), fault));
  const auto members = static_cast<std::int64_t>(header_.members.size());
  begin_ = row_begins(header_);
  offset_.resize(header_.graphs.size() * header_.members.size());
  const std::string where = file_.path().string();
  hdf5_ = create_hdf5(file_.path(), kSealBytes);
  write_header(hdf5_, header_, where);
  rows_ = create_group(hdf5_, "/rows", where);
  const std::string in = where + ":/rows";
  config_ = Hdf5Dataset::create(rows_, "config", ElementType::i32, {begin_.back()}, in, kPlain);
  runtime_ = Hdf5Dataset::create(rows_, "runtime", ElementType::i64, {begin_.back()}, in, kPlain);
  group_ = Hdf5Dataset::create(rows_, "group", ElementType::i32, {begin_.back()}, in, kPlain);
  if (is_tile(header_))
    normalizer_ =
        Hdf5Dataset::create(rows_, "normalizer", ElementType::i64, {begin_.back()}, in, kPlain);
  score_ =
      Hdf5Dataset::create(rows_, "score", ElementType::f32, {begin_.back(), members}, in, kPlain);
}

PredictionsWriter::~PredictionsWriter() = default;

void PredictionsWriter::add(int graph, const PredictionRows& predictions) {
  const auto g = static_cast<std::size_t>(graph);
  const PredictionEntry& entry = header_.graphs.at(g);
  const auto rows = static_cast<std::size_t>(entry.rows);
  const std::size_t members = header_.members.size();
  const bool fits =
      predictions.configs.size() == rows && predictions.runtime.size() == rows &&
      (predictions.group.empty() || predictions.group.size() == rows) &&
      predictions.normalizer.size() == (is_tile(header_) ? rows : 0) &&
      predictions.scores.size() == members &&
      std::ranges::all_of(predictions.scores, [&](const auto& s) { return s.size() == rows; });
  if (!fits || added_[g]) {
    throw Error(ErrorKind::failed,
                fmt::format("predictions for {} were given twice, or are not of {} members and {} "
                            "rows",
                            entry.name, members, rows));
  }
  std::vector<float> scores(rows * members);
  for (std::size_t m = 0; m < members; ++m) {
    const double offset = offset_[g * members + m] = offset_of(predictions.scores[m]);
    for (std::size_t r = 0; r < rows; ++r)
      scores[r * members + m] = static_cast<float>(predictions.scores[m][r] - offset);
  }
  config_.write<std::int32_t>(begin_[g], predictions.configs);
  runtime_.write<std::int64_t>(begin_[g], predictions.runtime);
  group_.write<std::int32_t>(begin_[g], predictions.group.empty()
                                            ? std::vector<std::int32_t>(rows, kNoGroup)
                                            : predictions.group);
  if (is_tile(header_)) normalizer_.write<std::int64_t>(begin_[g], predictions.normalizer);
  score_.write<float>(begin_[g], scores);
  added_[g] = true;
}

void PredictionsWriter::finish() {
  if (const auto missing = std::ranges::find(added_, false); missing != added_.end()) {
    const auto g = static_cast<std::size_t>(missing - added_.begin());
    throw Error(ErrorKind::failed,
                fmt::format("there are no predictions for {}", header_.graphs[g].name));
  }
  const std::string where = file_.path().string();
  write_plain<double>(open_group(hdf5_, "/graphs", where), "offset", offset_,
                      {static_cast<std::int64_t>(header_.graphs.size()),
                       static_cast<std::int64_t>(header_.members.size())},
                      where + ":/graphs");
  for (Hdf5Dataset* dataset : {&config_, &runtime_, &group_, &normalizer_, &score_})
    *dataset = Hdf5Dataset();
  rows_.close();
  check_hdf5(hdf5_.close() ? 0 : -1, "close", where);
  seal_file(file_.path());
  file_.commit();
}

PredictionsFile::PredictionsFile(const std::filesystem::path& path) : path_(path) {
  check_sealed_file(path);
  const std::string where = path.string();
  hdf5_ = open_hdf5(path);
  header_ = read_header(hdf5_, where);
  begin_ = row_begins(header_);
  const auto members = static_cast<std::int64_t>(header_.members.size()),
             graphs = static_cast<std::int64_t>(header_.graphs.size());
  offset_ = read_array<double>(open_group(hdf5_, "/graphs", where), "offset", {graphs, members},
                               where + ":/graphs");
  const Hdf5Id rows = open_group(hdf5_, "/rows", where);
  const std::string in = where + ":/rows";
  const std::int64_t all = begin_.back();
  config_ = Hdf5Dataset::open(rows, "config", ElementType::i32, {all}, in);
  runtime_ = Hdf5Dataset::open(rows, "runtime", ElementType::i64, {all}, in);
  if (has_link(rows, "group"))
    group_ = Hdf5Dataset::open(rows, "group", ElementType::i32, {all}, in);
  if (is_tile(header_))
    normalizer_ = Hdf5Dataset::open(rows, "normalizer", ElementType::i64, {all}, in);
  score_ = Hdf5Dataset::open(rows, "score", ElementType::f32, {all, members}, in);
}

PredictionRows PredictionsFile::read(int graph) const {
  const auto g = static_cast<std::size_t>(graph);
  const PredictionEntry& entry = header_.graphs.at(g);
  PredictionRows predictions;
  predictions.configs = config_.read<std::int32_t>(begin_[g], entry.rows);
  predictions.runtime = runtime_.read<std::int64_t>(begin_[g], entry.rows);
  if (group_) predictions.group = group_->read<std::int32_t>(begin_[g], entry.rows);
  if (std::ranges::find(predictions.group, kNoGroup) != predictions.group.end())
    predictions.group.clear();
  if (is_tile(header_))
    predictions.normalizer = normalizer_.read<std::int64_t>(begin_[g], entry.rows);
  const auto& configs = predictions.configs;
  const bool rising = std::ranges::adjacent_find(configs, std::greater_equal<>{}) == configs.end();
  if (!configs.empty() && (!rising || configs.front() < 0 || configs.back() >= entry.configs)) {
    throw DataError(fmt::format("{}: configurations of {} are not numbers of {}, rising",
                                path_.string(), entry.name, entry.configs));
  }
  const std::size_t members = header_.members.size();
  const std::vector<float> scores = score_.read<float>(begin_[g], entry.rows);
  predictions.scores.assign(members, std::vector<double>(configs.size()));
  for (std::size_t m = 0; m < members; ++m) {
    const double offset = offset_[g * members + m];
    for (std::size_t r = 0; r < configs.size(); ++r)
      predictions.scores[m][r] = offset + static_cast<double>(scores[r * members + m]);
  }
  return predictions;
}

}  // namespace tpudist
