#include "ensemble/predictions_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/version.hpp"
#include "data/hdf5/sealed_file.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {
namespace {

constexpr std::string_view kFormat = "tpudist-predictions";
constexpr std::int64_t kVersion = 1;
constexpr std::int32_t kNoGroup = -1;  // of rows of which nothing says which are equal
constexpr std::int64_t kMost = std::int64_t{1} << 24;  // runs, members or graphs that are believed

bool is_tile(const PredictionsHeader& header) {
  return header.collection.starts_with("tile:");
}

// Empty where a header fits itself, else what does not.
std::string fault_of(const PredictionsHeader& header) {
  if (header.runs.empty() || header.members.empty()) return "there is no run or no member";
  const int runs = static_cast<int>(header.runs.size());
  std::set<std::pair<int, int>> numbers;
  for (const PredictedMember& member : header.members) {
    if (member.run < 0 || member.run >= runs || member.number < 0)
      return fmt::format("there is no member {} of run {}", member.number, member.run);
    if (!numbers.emplace(member.run, member.number).second)
      return fmt::format("member {} of run {} is there twice", member.number, member.run);
    const int folds = header.runs[static_cast<std::size_t>(member.run)].folds;
    if (member.fold < -1 || member.fold >= std::max(folds, 0))
      return fmt::format("member {} holds out fold {} of {}", member.number, member.fold, folds);
  }
  std::set<std::pair<std::string, std::string>> names;
  for (const PredictedGraph& graph : header.graphs) {
    if (graph.name.empty() || std::ranges::find(kSplits, graph.split) == std::end(kSplits))
      return fmt::format("graph '{}' of split '{}' cannot be", graph.name, graph.split);
    if (!names.emplace(graph.split, graph.name).second)
      return fmt::format("graph {} of split {} is there twice", graph.name, graph.split);
    if (graph.rows < 0 || graph.configs < graph.rows || graph.nodes < 0 || graph.fold < -1)
      return fmt::format("graph {} has {} rows of {} configurations", graph.name, graph.rows,
                         graph.configs);
    if (graph.held_out.size() != header.members.size())
      return fmt::format("graph {} has flags of {} members", graph.name, graph.held_out.size());
  }
  return {};
}

// The values of one field.
template <typename T, typename Items, typename Field>
std::vector<T> column(const Items& items, const Field& field) {
  std::vector<T> values;
  for (const auto& item : items) values.push_back(static_cast<T>(std::invoke(field, item)));
  return values;
}

template <typename T>
void write_column(const Hdf5Id& group, const std::string& name, const std::vector<T>& values,
                  std::string_view where) {
  write_plain<T>(group, name, std::span<const T>(values),
                 {static_cast<std::int64_t>(values.size())}, where);
}

void write_runs(const Hdf5Id& file, const std::vector<PredictedRun>& runs,
                const std::string& where) {
  create_group(file, "/runs", where);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const PredictedRun& run = runs[r];
    const Hdf5Id group = create_group(file, fmt::format("/runs/{:04}", r), where);
    write_attribute(group, "name", run.name);
    write_attribute(group, "step", run.step);
    write_attribute(group, "parameter_hash", to_hex(run.parameter_hash));
    write_attribute(group, "settings_hash", to_hex(run.settings_hash));
    write_attribute(group, "variant_hash", to_hex(run.variant_hash));
    write_attribute(group, "fold_hash", to_hex(run.fold_hash));
    write_attribute(group, "folds", static_cast<std::int64_t>(run.folds));
    write_attribute(group, "init_seed", run.init_seed);
    write_attribute(group, "order_seed", run.order_seed);
    if (run.slate_configs == 0) continue;
    write_attribute(group, "slate_configs", run.slate_configs);
    write_attribute(group, "slate_permutations", run.slate_permutations);
    write_attribute(group, "slate_seed", run.slate_seed);
  }
}

PredictedRun read_run(const Hdf5Id& file, std::size_t number, const std::string& where) {
  const Hdf5Id group = open_group(file, fmt::format("/runs/{:04}", number), where);
  const std::string at = fmt::format("{}:/runs/{:04}", where, number);
  PredictedRun run;
  run.name = read_text_attribute(group, "name", at);
  run.step = read_integer_attribute(group, "step", at);
  run.parameter_hash = read_hash_attribute(group, "parameter_hash", at);
  run.settings_hash = read_hash_attribute(group, "settings_hash", at);
  run.variant_hash = read_hash_attribute(group, "variant_hash", at);
  run.fold_hash = read_hash_attribute(group, "fold_hash", at);
  run.folds = static_cast<int>(read_integer_attribute(group, "folds", at));
  run.init_seed = read_integer_attribute(group, "init_seed", at);
  run.order_seed = read_integer_attribute(group, "order_seed", at);
  if (!has_attribute(group, "slate_configs")) return run;
  run.slate_configs = read_integer_attribute(group, "slate_configs", at);
  run.slate_permutations = read_integer_attribute(group, "slate_permutations", at);
  run.slate_seed = read_integer_attribute(group, "slate_seed", at);
  return run;
}

void write_members(const Hdf5Id& group, const std::vector<PredictedMember>& members,
                   const std::string& where) {
  using M = PredictedMember;
  write_column(group, "run", column<std::int32_t>(members, &M::run), where);
  write_column(group, "number", column<std::int32_t>(members, &M::number), where);
  write_column(group, "fold", column<std::int32_t>(members, &M::fold), where);
  write_column(group, "failed", column<std::uint8_t>(members, &M::failed), where);
  write_column(group, "first_loss", column<double>(members, &M::first_loss), where);
  write_column(group, "last_loss", column<double>(members, &M::last_loss), where);
}

std::vector<PredictedMember> read_members(const Hdf5Id& group, std::int64_t count,
                                          const std::string& where) {
  const auto run = read_plain<std::int32_t>(group, "run", {count}, where),
             number = read_plain<std::int32_t>(group, "number", {count}, where),
             fold = read_plain<std::int32_t>(group, "fold", {count}, where);
  const auto failed = read_plain<std::uint8_t>(group, "failed", {count}, where);
  const auto first = read_plain<double>(group, "first_loss", {count}, where),
             last = read_plain<double>(group, "last_loss", {count}, where);
  std::vector<PredictedMember> members;
  for (std::size_t m = 0; m < run.size(); ++m)
    members.push_back({run[m], number[m], fold[m], failed[m] != 0, first[m], last[m]});
  return members;
}

std::int64_t read_count(const Hdf5Id& file, const std::string& name, const std::string& where) {
  const std::int64_t count = read_integer_attribute(file, name, where);
  if (count < 0 || count > kMost)
    throw DataError(fmt::format("{}: cannot have {} {}", where, count, name));
  return count;
}

// Mean of finite scores; 0 where one is not finite.
double offset_of(std::span<const double> scores) {
  const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) /
                      static_cast<double>(std::max<std::size_t>(scores.size(), 1));
  return std::isfinite(mean) ? mean : 0;
}

}  // namespace

PredictionsWriter::PredictionsWriter(const std::filesystem::path& path, PredictionsHeader header,
                                     FileSystem& files)
    : file_(path, files), header_(std::move(header)), begin_{0}, added_(header_.graphs.size()) {
  if (const std::string fault = fault_of(header_); !fault.empty())
    throw Error(ErrorKind::failed, fmt::format("{}: {}", path.string(), fault));
  const auto members = static_cast<std::int64_t>(header_.members.size()),
             graphs = static_cast<std::int64_t>(header_.graphs.size());
  std::vector<std::uint8_t> held_out;
  for (const PredictedGraph& graph : header_.graphs) {
    begin_.push_back(begin_.back() + graph.rows);
    held_out.insert(held_out.end(), graph.held_out.begin(), graph.held_out.end());
  }
  offset_.resize(held_out.size());

  const std::string where = file_.path().string();
  hdf5_ = create_hdf5(file_.path(), kSealBytes);
  write_attribute(hdf5_, "format", kFormat);
  write_attribute(hdf5_, "version", kVersion);
  write_attribute(hdf5_, "created_by", "tpudist " + std::string(version()));
  write_attribute(hdf5_, "collection", header_.collection);
  write_attribute(hdf5_, "most_rows", header_.most_rows);
  write_attribute(hdf5_, "runs", static_cast<std::int64_t>(header_.runs.size()));
  write_attribute(hdf5_, "members", members);
  write_attribute(hdf5_, "graphs", graphs);
  write_runs(hdf5_, header_.runs, where);
  write_members(create_group(hdf5_, "/members", where), header_.members, where + ":/members");

  using G = PredictedGraph;
  const Hdf5Id group = create_group(hdf5_, "/graphs", where);
  const std::string at = where + ":/graphs";
  write_texts(group, "name", column<std::string>(header_.graphs, &G::name), at);
  write_texts(group, "split", column<std::string>(header_.graphs, &G::split), at);
  write_column(group, "nodes", column<std::int64_t>(header_.graphs, &G::nodes), at);
  write_column(group, "configs", column<std::int64_t>(header_.graphs, &G::configs), at);
  write_column(group, "fold", column<std::int32_t>(header_.graphs, &G::fold), at);
  write_column(group, "begin", begin_, at);
  write_plain<std::uint8_t>(group, "held_out", held_out, {graphs, members}, at);

  rows_ = create_group(hdf5_, "/rows", where);
  const std::string in = where + ":/rows";
  config_ = PlainDataset::create(rows_, "config", ElementType::i32, {begin_.back()}, in);
  runtime_ = PlainDataset::create(rows_, "runtime", ElementType::i64, {begin_.back()}, in);
  group_ = PlainDataset::create(rows_, "group", ElementType::i32, {begin_.back()}, in);
  if (is_tile(header_))
    normalizer_ = PlainDataset::create(rows_, "normalizer", ElementType::i64, {begin_.back()}, in);
  score_ = PlainDataset::create(rows_, "score", ElementType::f32, {begin_.back(), members}, in);
}

PredictionsWriter::~PredictionsWriter() = default;

void PredictionsWriter::add(int graph, const GraphPredictions& predictions) {
  const auto g = static_cast<std::size_t>(graph);
  const PredictedGraph& entry = header_.graphs.at(g);
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
  for (PlainDataset* dataset : {&config_, &runtime_, &group_, &normalizer_, &score_})
    *dataset = PlainDataset();
  rows_.close();
  check_hdf5(hdf5_.close() ? 0 : -1, "close", where);
  seal_file(file_.path());
  file_.commit();
}

PredictionsFile::PredictionsFile(const std::filesystem::path& path) : path_(path) {
  check_sealed_file(path);
  const std::string where = path.string();
  hdf5_ = open_hdf5(path);
  if (read_text_attribute(hdf5_, "format", where) != kFormat)
    throw DataError(where + ": not predictions of tpudist");
  if (const auto version = read_integer_attribute(hdf5_, "version", where); version != kVersion) {
    throw DataError(fmt::format("{}: has version {}, this program reads {}; use a newer tpudist",
                                where, version, kVersion));
  }
  header_.collection = read_text_attribute(hdf5_, "collection", where);
  header_.most_rows = read_integer_attribute(hdf5_, "most_rows", where);
  const std::int64_t runs = read_count(hdf5_, "runs", where),
                     members = read_count(hdf5_, "members", where),
                     graphs = read_count(hdf5_, "graphs", where);
  for (std::int64_t r = 0; r < runs; ++r)
    header_.runs.push_back(read_run(hdf5_, static_cast<std::size_t>(r), where));
  header_.members =
      read_members(open_group(hdf5_, "/members", where), members, where + ":/members");

  const Hdf5Id group = open_group(hdf5_, "/graphs", where);
  const std::string at = where + ":/graphs";
  const auto names = read_texts(group, "name", graphs, at),
             splits = read_texts(group, "split", graphs, at);
  const auto nodes = read_plain<std::int64_t>(group, "nodes", {graphs}, at),
             configs = read_plain<std::int64_t>(group, "configs", {graphs}, at);
  const auto folds = read_plain<std::int32_t>(group, "fold", {graphs}, at);
  const auto held_out = read_plain<std::uint8_t>(group, "held_out", {graphs, members}, at);
  begin_ = read_plain<std::int64_t>(group, "begin", {graphs + 1}, at);
  offset_ = read_plain<double>(group, "offset", {graphs, members}, at);
  if (std::ranges::any_of(held_out, [](std::uint8_t flag) { return flag > 1; }))
    throw DataError(at + ": held_out must be 0 or 1");
  for (std::size_t g = 0; g < names.size(); ++g) {
    const auto flags = std::span(held_out).subspan(g * static_cast<std::size_t>(members),
                                                   static_cast<std::size_t>(members));
    header_.graphs.push_back({names[g],
                              splits[g],
                              nodes[g],
                              configs[g],
                              begin_[g + 1] - begin_[g],
                              folds[g],
                              {flags.begin(), flags.end()}});
  }
  if (begin_.front() != 0) throw DataError(at + "/begin: does not begin with 0");
  if (const std::string fault = fault_of(header_); !fault.empty())
    throw DataError(fmt::format("{}: {}", where, fault));

  const Hdf5Id rows = open_group(hdf5_, "/rows", where);
  const std::string in = where + ":/rows";
  const std::int64_t all = begin_.back();
  config_ = PlainDataset::open(rows, "config", ElementType::i32, {all}, in);
  runtime_ = PlainDataset::open(rows, "runtime", ElementType::i64, {all}, in);
  if (has_link(rows, "group"))
    group_ = PlainDataset::open(rows, "group", ElementType::i32, {all}, in);
  if (is_tile(header_))
    normalizer_ = PlainDataset::open(rows, "normalizer", ElementType::i64, {all}, in);
  score_ = PlainDataset::open(rows, "score", ElementType::f32, {all, members}, in);
}

GraphPredictions PredictionsFile::read(int graph) const {
  const auto g = static_cast<std::size_t>(graph);
  const PredictedGraph& entry = header_.graphs.at(g);
  GraphPredictions predictions;
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
