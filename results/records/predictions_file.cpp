#include "results/records/predictions_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <span>
#include <type_traits>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/means.hpp"
#include "core/version.hpp"
#include "data/hdf5/sealed_file.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {
namespace {

constexpr std::int32_t kNoGroup = -1;  // the group of the row is unknown

bool is_tile(const PredictionsHeader& header) {
  return header.collection.starts_with("tile:");
}

// Mean of the scores; 0 if one is not finite or there are none.
double offset_of(std::span<const double> scores) {
  const double offset = mean(scores);
  return std::isfinite(offset) ? offset : 0;
}

constexpr std::string_view kFormat = "tpudist-predictions";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMost = std::int64_t{1} << 24;  // largest plausible count in a file

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

// Calls visit(name, field, whether a run with this value has the attribute) for each attribute of a
// run, in the order of the file.
template <typename Run, typename Visit>
void visit_attributes(Run& run, const Visit& visit) {
  visit("name", run.name, true);
  visit("step", run.step, true);
  visit("parameter_hash", run.parameter_hash, true);
  visit("settings_hash", run.settings_hash, true);
  visit("variant_hash", run.variant_hash, true);
  visit("fold_hash", run.fold_hash, true);
  visit("folds", run.folds, true);
  visit("init_hash", run.init_hash, run.init_hash != 0);
  visit("init_seed", run.init_seed, true);
  visit("order_seed", run.order_seed, true);
  visit("slate_configs", run.slate_configs, run.slate_configs != 0);
  visit("slate_permutations", run.slate_permutations, run.slate_configs != 0);
  visit("slate_seed", run.slate_seed, run.slate_configs != 0);
}

void write_runs(const Hdf5Id& file, const std::vector<PredictedRun>& runs,
                const std::string& where) {
  create_group(file, "/runs", where);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const Hdf5Id group = create_group(file, fmt::format("/runs/{:04}", r), where);
    visit_attributes(runs[r], [&]<typename T>(const char* name, const T& value, bool written) {
      if (!written) return;
      if constexpr (std::is_same_v<T, std::uint64_t>)
        write_attribute(group, name, to_hex(value));
      else
        write_attribute(group, name, value);
    });
  }
}

PredictedRun read_run(const Hdf5Id& file, std::size_t number, const std::string& where) {
  const Hdf5Id group = open_group(file, fmt::format("/runs/{:04}", number), where);
  const std::string at = fmt::format("{}:/runs/{:04}", where, number);
  PredictedRun run;
  visit_attributes(run, [&]<typename T>(const char* name, T& value, bool required) {
    if (!required && !has_attribute(group, name, at)) return;
    if constexpr (std::is_same_v<T, std::uint64_t>)
      value = read_hash_attribute(group, name, at);
    else if constexpr (std::is_same_v<T, std::string>)
      value = read_text_attribute(group, name, at);
    else
      value = static_cast<T>(read_integer_attribute(group, name, at));
  });
  return run;
}

// Calls visit(name, field) for each column of the members, in the order of the file.
template <typename Visit>
void visit_columns(const Visit& visit) {
  using M = PredictedMember;
  visit("run", &M::run);
  visit("number", &M::number);
  visit("fold", &M::fold);
  visit("failed", &M::failed);
  visit("first_loss", &M::first_loss);
  visit("last_loss", &M::last_loss);
  visit("loss_margin", &M::loss_margin);
}
template <typename T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

void write_members(const Hdf5Id& group, const std::vector<PredictedMember>& members,
                   const std::string& where) {
  visit_columns([&]<typename T>(const char* name, T PredictedMember::*field) {
    write_column(group, name, column<Stored<T>>(members, field), where);
  });
}

std::vector<PredictedMember> read_members(const Hdf5Id& group, std::int64_t count,
                                          const std::string& where) {
  std::vector<PredictedMember> members;
  visit_columns([&]<typename T>(const char* name, T PredictedMember::*field) {
    const auto values = read_array<Stored<T>>(group, name, {count}, where);
    members.resize(values.size());
    for (std::size_t m = 0; m < members.size(); ++m) members[m].*field = static_cast<T>(values[m]);
  });
  return members;
}

std::int64_t read_count(const Hdf5Id& file, const std::string& name, const std::string& where) {
  const std::int64_t count = read_integer_attribute(file, name, where);
  if (count < 0 || count > kMost)
    throw DataError(fmt::format("{}: cannot have {} {}", where, count, name));
  return count;
}

Combination read_combine(const Hdf5Id& file, const std::string& where) {
  try {
    return read_combination(read_text_attribute(file, "combine", where));
  } catch (const ConfigError& error) {
    throw DataError(fmt::format("{}: {}", where, error.what()));
  }
}

// Index of each graph's first row among the rows of all graphs, and the total. [G + 1]
std::vector<std::int64_t> row_begins(const PredictionsHeader& header) {
  std::vector<std::int64_t> begins{0};
  for (const PredictionEntry& graph : header.graphs) begins.push_back(begins.back() + graph.rows);
  return begins;
}

void write_graphs(const Hdf5Id& file, const PredictionsHeader& header, const std::string& where) {
  const std::vector<PredictionEntry>& graphs = header.graphs;
  const auto count = static_cast<std::int64_t>(graphs.size()),
             members = static_cast<std::int64_t>(header.members.size());
  std::vector<std::uint8_t> held_out;  // [graphs, members]
  for (const PredictionEntry& graph : graphs)
    held_out.insert(held_out.end(), graph.held_out.begin(), graph.held_out.end());
  using G = PredictionEntry;
  const Hdf5Id group = create_group(file, "/graphs", where);
  const std::string at = where + ":/graphs";
  write_texts(group, "name", column<std::string>(graphs, &G::name), at);
  write_texts(group, "split", column<std::string>(graphs, &G::split), at);
  write_column(group, "nodes", column<std::int64_t>(graphs, &G::nodes), at);
  write_column(group, "configs", column<std::int64_t>(graphs, &G::configs), at);
  write_column(group, "fold", column<std::int32_t>(graphs, &G::fold), at);
  write_column(group, "begin", row_begins(header), at);
  write_plain<std::uint8_t>(group, "held_out", held_out, {count, members}, at);
}

std::vector<PredictionEntry> read_graphs(const Hdf5Id& file, std::int64_t graphs,
                                         std::int64_t members, const std::string& where) {
  const Hdf5Id group = open_group(file, "/graphs", where);
  const std::string at = where + ":/graphs";
  const auto names = read_texts(group, "name", graphs, at),
             splits = read_texts(group, "split", graphs, at);
  const auto nodes = read_array<std::int64_t>(group, "nodes", {graphs}, at),
             configs = read_array<std::int64_t>(group, "configs", {graphs}, at);
  const auto folds = read_array<std::int32_t>(group, "fold", {graphs}, at);
  const auto held_out = read_array<std::uint8_t>(group, "held_out", {graphs, members}, at);
  const auto begin = read_array<std::int64_t>(group, "begin", {graphs + 1}, at);
  if (std::ranges::any_of(held_out, [](std::uint8_t flag) { return flag > 1; }))
    throw DataError(at + ": held_out must be 0 or 1");
  std::vector<PredictionEntry> list;
  for (std::size_t g = 0; g < names.size(); ++g) {
    const auto flags = std::span(held_out).subspan(g * static_cast<std::size_t>(members),
                                                   static_cast<std::size_t>(members));
    list.push_back({names[g],
                    splits[g],
                    nodes[g],
                    configs[g],
                    begin[g + 1] - begin[g],
                    folds[g],
                    {flags.begin(), flags.end()}});
  }
  if (begin.front() != 0) throw DataError(at + "/begin: does not begin with 0");
  return list;
}

// Describes the first inconsistency of a header; empty if there is none.
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
  for (const PredictionEntry& graph : header.graphs) {
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

void write_header(const Hdf5Id& file, const PredictionsHeader& header, const std::string& where) {
  write_attribute(file, "format", kFormat);
  write_attribute(file, "version", kVersion);
  write_attribute(file, "created_by", "tpudist " + std::string(version()));
  write_attribute(file, "collection", header.collection);
  write_attribute(file, "most_rows", header.most_rows);
  if (header.combination) write_attribute(file, "combine", to_text(*header.combination));
  write_attribute(file, "runs", static_cast<std::int64_t>(header.runs.size()));
  write_attribute(file, "members", static_cast<std::int64_t>(header.members.size()));
  write_attribute(file, "graphs", static_cast<std::int64_t>(header.graphs.size()));
  write_runs(file, header.runs, where);
  write_members(create_group(file, "/members", where), header.members, where + ":/members");
  write_graphs(file, header, where);
}

PredictionsHeader read_header(const Hdf5Id& file, const std::string& where) {
  if (read_text_attribute(file, "format", where) != kFormat)
    throw DataError(where + ": not predictions of tpudist");
  if (const auto version = read_integer_attribute(file, "version", where); version != kVersion) {
    throw DataError(fmt::format("{}: has version {}, this program reads {}; use a newer tpudist",
                                where, version, kVersion));
  }
  PredictionsHeader header;
  header.collection = read_text_attribute(file, "collection", where);
  header.most_rows = read_integer_attribute(file, "most_rows", where);
  if (has_attribute(file, "combine", where)) header.combination = read_combine(file, where);
  const std::int64_t runs = read_count(file, "runs", where),
                     members = read_count(file, "members", where),
                     graphs = read_count(file, "graphs", where);
  for (std::int64_t r = 0; r < runs; ++r)
    header.runs.push_back(read_run(file, static_cast<std::size_t>(r), where));
  header.members = read_members(open_group(file, "/members", where), members, where + ":/members");
  header.graphs = read_graphs(file, graphs, members, where);
  if (const std::string fault = fault_of(header); !fault.empty())
    throw DataError(fmt::format("{}: {}", where, fault));
  return header;
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
  {
    const Hdf5Lock lock;  // no other call may overwrite the reason
    check_hdf5(hdf5_.close() ? 0 : -1, "close", where);
  }
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
  predictions.group = group_.read<std::int32_t>(begin_[g], entry.rows);
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

std::vector<double> PredictionRows::targets() const {
  std::vector<double> result(runtime.begin(), runtime.end());
  for (std::size_t r = 0; r < normalizer.size(); ++r)
    result[r] /= static_cast<double>(normalizer[r]);
  return result;
}

std::uint64_t data_hash(const PredictionEntry& graph, const PredictionRows& rows) {
  Hasher hasher;
  hasher.update(graph.name);
  hasher.update(graph.split);
  hasher.update(std::span<const std::int32_t>(rows.configs));
  hasher.update(std::span<const std::int64_t>(rows.runtime));
  hasher.update(std::span<const std::int64_t>(rows.normalizer));
  return hasher.digest();
}

}  // namespace tpudist
