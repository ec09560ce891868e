#include "results/scores/run_difference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "core/config/yaml_scalar.hpp"
#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "core/text_table.hpp"
#include "data/loading/fold_table.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "results/records/learning_curves.hpp"
#include "results/records/run_folder.hpp"
#include "results/records/settings.hpp"
#include "results/scores/member_scores.hpp"
#include "results/scores/run_record.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEqual = "equal";
constexpr const char* kNotCompared = "not compared";
constexpr std::string_view kNothing = "none";

// The content of one run folder.
struct Side {
  explicit Side(const fs::path& path) : folder(RunFolder::open(path)) {}

  RunFolder folder;
  std::vector<ConfigEntry> config;
  std::optional<CheckpointSummary> newest;
  LearningCurves curves;
  std::map<std::int64_t, fs::path> checkpoints;  // that are whole, by step
  std::map<std::string, int> folds;
  std::string scored;  // hash of the parameters that scored; empty: unknown
  std::int64_t first_member = 0, members = 0;

  std::int64_t last_step() const {
    return std::max(curves.last_step(), checkpoints.empty() ? 0 : checkpoints.rbegin()->first);
  }
};

Side read_side(const fs::path& path, std::vector<std::string>& faults) {
  Side side(path);
  for (const fs::path& file : list_checkpoints(side.folder.checkpoints())) {
    keep_fault(faults, [&] {
      const CheckpointSummary summary = CheckpointFile(file).summary();
      side.checkpoints[summary.step] = file;
      if (!side.newest) side.newest = summary;
    });
  }
  // A checkpoint also knows which of its keys are at their defaults.
  keep_fault(faults, [&] {
    const fs::path config = side.folder.config();
    side.config = side.newest ? side.newest->entries()
                              : read_resolved_entries(read_text_file(config), config.string());
  });
  for (const ConfigEntry& entry : side.config) {
    if (entry.key == "ensemble.first_member") side.first_member = parse_integer(entry.value).value;
    if (entry.key == "ensemble.members") side.members = parse_integer(entry.value).value;
  }
  keep_fault(faults, [&] { side.curves = read_learning_curves(side.folder.metrics()); });
  if (side.curves.damaged_lines > 0) {
    faults.push_back(fmt::format("{}: {} damaged", side.folder.metrics().string(),
                                 counted(side.curves.damaged_lines, "line")));
  }
  if (is_there(side.folder.folds()))
    keep_fault(faults, [&] { side.folds = FoldFile::read(side.folder.folds()).graph_lines(); });
  if (is_there(side.folder.scores())) {
    keep_fault(faults, [&] {
      const std::uint64_t hash = read_scored_parameters(side.folder.scores());
      if (hash != 0) side.scored = to_hex(hash);
    });
  }
  return side;
}

// The records of a step come in this order.
enum class RecordKind { step, checkpoint, evaluation };

bool equal_numbers(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

std::string values_text(const std::string& field, double a, double b) {
  return fmt::format("{}: {} and {}", field, a, b);
}

class RunComparison {
 public:
  RunComparison(const Side& a, const Side& b, std::vector<std::string> faults)
      : a_(a),
        b_(b),
        faults_(std::move(faults)),
        same_members_(a.first_member == b.first_member && a.members == b.members) {
    row("", a.folder.path().string(), b.folder.path().string(), "");
    settings();
    data();
    folds();
    segments();
    programs();
    steps();
    evaluations();
    checkpoints();
    scored_parameters();
    conclude();
  }

  std::pair<bool, std::string> result() const {
    std::string text = verdict_ + "\n\n" + things_.to_text();
    for (const std::string& fault : faults_) text += "damaged: " + fault + "\n";
    return {equal_, std::move(text)};
  }

 private:
  // Keeps the first place where the sides differ, by step, and by stage within a step.
  void note_difference(std::int64_t step, RecordKind stage, const std::string& found) {
    if (first_ && std::pair(step, stage) >= *first_) return;
    first_ = {step, stage};
    first_text_ = fmt::format("at step {} in {}", step, found);
  }

  void row(const std::string& what, const std::string& a, const std::string& b,
           const std::string& verdict) {
    things_.rows.push_back({what, a, b, verdict});
  }

  // Adds a row with the values of both sides, empty if unknown. Returns false if they differ.
  bool row_of(const std::string& what, const std::string& a, const std::string& b) {
    const bool known = !a.empty() && !b.empty();
    row(what, shown(a), shown(b), !known ? kNotCompared : a == b ? kEqual : "differ");
    return !known || a == b;
  }
  static std::string shown(const std::string& value) { return value.empty() ? "unknown" : value; }

  // The same with a text from the newest checkpoint of each side.
  bool hash_row(const std::string& what, std::string (*of)(const CheckpointSummary&)) {
    return row_of(what, a_.newest ? of(*a_.newest) : "", b_.newest ? of(*b_.newest) : "");
  }

  void settings() {
    if (a_.config.empty() || b_.config.empty()) return row("settings", "", "", kNotCompared);
    const auto changes = setting_changes(a_.config, b_.config);
    row("settings", "", "", changes.empty() ? kEqual : counted(std::ssize(changes), "difference"));
    std::vector<std::string> keys;
    for (const SettingChange& change : changes) {
      row("  " + change.key, change.before, change.now, "");
      keys.push_back(change.key);
    }
    if (!keys.empty()) causes_.push_back("other settings: " + join(keys, ", "));
    std::map<std::string, std::string> now;
    for (const ConfigEntry& entry : b_.config) now[entry.key] = entry.value;
    for (const auto& [key, value, is_default] : a_.config) {
      const auto other = now.find(key);
      if (!decides_numbers(key) && other != now.end() && other->second != value)
        row("  " + key, value, other->second, "does not decide numbers");
    }
  }

  void data() {
    if (!hash_row("data",
                  [](const CheckpointSummary& newest) { return to_hex(newest.selection_hash); }))
      causes_.push_back("other data");
  }

  void folds() {
    const bool equal = hash_row("folds", [](const CheckpointSummary& newest) {
      return newest.fold_hash ? to_hex(*newest.fold_hash) : std::string(kNothing);
    });
    const std::string graph = refolded_graph();
    if (!graph.empty()) row("  " + graph, fold_text(a_, graph), fold_text(b_, graph), "first");
    if (!equal || !graph.empty()) causes_.push_back("other folds");
  }

  // Compares segments, if both sides cut graphs.
  void segments() {
    if (!a_.newest || !b_.newest || !a_.newest->segment_hash || !b_.newest->segment_hash) return;
    if (!hash_row("segments",
                  [](const CheckpointSummary& newest) { return to_hex(*newest.segment_hash); }))
      causes_.push_back("other segments of graphs");
  }

  // The first graph that lies in different folds on the two sides; empty if there is none.
  std::string refolded_graph() const {
    if (a_.folds.empty() || b_.folds.empty()) return {};
    for (const auto& [graph, fold] : a_.folds) {
      const auto other = b_.folds.find(graph);
      if (other == b_.folds.end() || other->second != fold) return graph;
    }
    for (const auto& [graph, fold] : b_.folds) {
      if (!a_.folds.contains(graph)) return graph;
    }
    return {};
  }

  static std::string fold_text(const Side& side, const std::string& graph) {
    const auto found = side.folds.find(graph);
    return found == side.folds.end() ? "in none" : fmt::format("fold {}", found->second);
  }

  // Ranks and threads change no bits; programs and processors may.
  void programs() {
    if (a_.curves.starts.empty() || b_.curves.starts.empty()) return;
    const auto facts = program_facts(a_.curves.starts.front());
    for (std::size_t i = 0; i < facts.size(); ++i) {
      const auto parted =
          start_row(facts[i].first, [i](const RunStart& s) { return program_facts(s)[i].second; });
      if (parted > 0) parted_ = parted_ > 0 ? std::min(parted_, parted) : parted;
    }
    start_row("ranks", [](const RunStart& start) {
      return fmt::format("{} x {}", start.ranks, counted(start.threads, "thread"));
    });
  }

  // Adds a row for a fact that may change when a run is resumed. `of` returns "" if it is unknown.
  // Returns the first step at which the fact differs, 0 if there is none.
  template <typename Of>
  std::int64_t start_row(const std::string& what, Of of) {
    std::set<std::int64_t> firsts;  // steps after a start
    for (const Side* side : {&a_, &b_}) {
      for (const RunStart& start : side->curves.starts) firsts.insert(start.step + 1);
    }
    const auto value = [&](const Side& side, std::int64_t step) {
      const RunStart* const start = side.curves.start_of(step);
      return start ? of(*start) : std::string();
    };
    std::string a, b;
    bool known = true;
    for (const std::int64_t step : firsts) {
      a = value(a_, step), b = value(b_, step);
      known &= !a.empty() && !b.empty();
      if (a.empty() || b.empty() || a == b) continue;
      const bool taken = step <= std::max(a_.last_step(), b_.last_step());
      row(what, a, b,
          taken ? fmt::format("differ, first at step {}", step)
                : fmt::format("differ, after step {}", step - 1));
      return step;
    }
    if (!a.empty() || !b.empty()) row(what, shown(a), shown(b), known ? kEqual : kNotCompared);
    return 0;
  }

  // Numbers of the members that both lists have.
  std::pair<std::int64_t, std::int64_t> common_members(std::size_t a, std::size_t b) const {
    const auto end = [](const Side& side, std::size_t members) {
      return side.first_member + static_cast<std::int64_t>(members);
    };
    return {std::max(a_.first_member, b_.first_member), std::min(end(a_, a), end(b_, b))};
  }

  // "loss of member 3: 0.5 and 0.25", for the first member whose values differ; else empty.
  std::string difference(const std::string& field, std::span<const double> a,
                         std::span<const double> b) {
    const auto [first, end] = common_members(a.size(), b.size());
    for (std::int64_t number = first; number < end; ++number) {
      const double x = a[static_cast<std::size_t>(number - a_.first_member)],
                   y = b[static_cast<std::size_t>(number - b_.first_member)];
      if (!equal_numbers(x, y))
        return values_text(fmt::format("{} of member {}", field, number), x, y);
    }
    return {};
  }

  // One row for all lines of a kind. `differ` says how two lines of one key differ; "": not at all.
  template <typename Line, typename Key, typename Differ>
  void lines(const std::string& what, RecordKind stage, const std::vector<Line>& a,
             const std::vector<Line>& b, Key key_of, Differ differ) {
    if (a.empty() && b.empty()) return;
    std::map<std::decay_t<decltype(key_of(a.front()))>, const Line*> others;
    for (const Line& line : b) others[key_of(line)] = &line;
    std::int64_t common = 0;
    std::string found;
    for (const Line& line : a) {
      const auto other = others.find(key_of(line));
      if (other == others.end()) continue;
      ++common;
      std::string text = differ(line, *other->second);
      if (text.empty() || !found.empty()) continue;
      found = fmt::format("from step {} on", line.step);
      note_difference(line.step, stage, text);
    }
    const auto sum = [](const std::vector<Line>& lines) {
      return lines.empty() ? std::string(kNothing)
                           : fmt::format("{}, up to step {}", lines.size(), lines.back().step);
    };
    if (common > 0) compared_.push_back(counted(common, what));
    row(what + "s", sum(a), sum(b),
        !found.empty() ? "differ " + found
        : common > 0   ? fmt::format("equal ({} in both)", common)
                       : kNotCompared);
  }

  void steps() {
    lines(
        "logged step", RecordKind::step, a_.curves.steps, b_.curves.steps,
        [](const LearningCurves::Step& line) { return line.step; },
        [&](const LearningCurves::Step& a, const LearningCurves::Step& b) {
          std::string text = difference("loss", a.loss, b.loss);
          if (text.empty()) text = difference("norm", a.norm, b.norm);
          if (text.empty() && !equal_numbers(a.rate, b.rate))
            text = values_text("rate", a.rate, b.rate);
          return text;
        });
  }

  void evaluations() {
    lines(
        "evaluation", RecordKind::evaluation, a_.curves.evaluations, b_.curves.evaluations,
        [](const LearningCurves::Evaluation& line) {
          return std::tuple(line.step, line.rows, line.held_out_only);
        },
        [&](const LearningCurves::Evaluation& a, const LearningCurves::Evaluation& b) {
          std::string text = difference("score", a.members, b.members);
          if (text.empty() && same_members_ && !equal_numbers(a.ensemble, b.ensemble))
            text = values_text("score of the ensemble", a.ensemble, b.ensemble);
          return text;
        });
    other_rows();
  }

  // Evaluations on different rows are not compared. Names the first one and the setting that is the
  // cause, which a resumed run may change.
  void other_rows() {
    const auto rows_by_step = [](const Side& side) {
      std::map<std::int64_t, std::set<std::int64_t>> rows;
      for (const LearningCurves::Evaluation& line : side.curves.evaluations)
        rows[line.step].insert(line.rows);
      return rows;
    };
    const auto others = rows_by_step(b_);
    for (const auto& [step, rows] : rows_by_step(a_)) {
      const auto other = others.find(step);
      if (other == others.end()) continue;
      const auto common = [&](std::int64_t count) { return other->second.contains(count); };
      if (std::ranges::any_of(rows, common)) continue;
      const std::int64_t a = *rows.begin(), b = *other->second.begin();
      const std::string key = a == 0 || b == 0 ? "train.last_evaluation" : "train.evaluate_rows";
      if (std::ranges::find(row_keys_, key) != row_keys_.end()) continue;
      row_keys_.push_back(key);
      row(fmt::format("  step {}", step), rows_text(a), rows_text(b),
          fmt::format("{}: {} differs", kNotCompared, key));
    }
  }

  void checkpoints() {
    std::int64_t common = 0;
    for (const auto& [step, path] : a_.checkpoints) {
      const auto other = b_.checkpoints.find(step);
      if (other == b_.checkpoints.end()) continue;
      ++common;
      keep_fault(faults_, [&, step = step, path = path] { checkpoint(step, path, other->second); });
    }
    if (common > 0) return compared_.push_back(counted(common, "checkpoint"));
    const auto sum = [](const Side& side) {
      return side.checkpoints.empty() ? std::string(kNothing)
                                      : fmt::format("step {}", side.checkpoints.rbegin()->first);
    };
    row("checkpoints", sum(a_), sum(b_), kNotCompared);
  }

  // The row shows what `train` prints as `parameters:`.
  void checkpoint(std::int64_t step, const fs::path& a, const fs::path& b) {
    const CheckpointFile file(a), other_file(b);
    const ParameterTable table = file.parameters(), other = other_file.parameters();
    const Checkpoint x = file.load(table), y = other_file.load(other);
    const std::string found = table_difference(table, other);
    const std::string lists = found.empty() ? list_difference(x, y, table) : found;
    if (!lists.empty()) note_difference(step, RecordKind::checkpoint, lists);
    row(fmt::format("parameters, step {}", step),
        to_hex(parameter_hash(x.parameters, x.members, table)),
        to_hex(parameter_hash(y.parameters, y.members, other)),
        !lists.empty()  ? lists
        : same_members_ ? kEqual
                        : "equal in the members of both");
  }

  static std::string table_difference(const ParameterTable& a, const ParameterTable& b) {
    for (std::size_t i = 0; i < std::max(a.entries().size(), b.entries().size()); ++i) {
      const auto* x = i < a.entries().size() ? &a.entries()[i] : nullptr;
      const auto* y = i < b.entries().size() ? &b.entries()[i] : nullptr;
      if (x && y && x->name == y->name && x->shape == y->shape) continue;
      return fmt::format("other networks, first in {}",
                         x && y ? std::min(x->name, y->name) : (x ? x : y)->name);
    }
    return {};
  }

  // "optimizer/second of member 0, first in output.weight": the first list that differs.
  std::string list_difference(const Checkpoint& x, const Checkpoint& y,
                              const ParameterTable& table) const {
    const auto [first, end] =
        common_members(static_cast<std::size_t>(x.members), static_cast<std::size_t>(y.members));
    constexpr std::string_view kSegmentScores = "segment_scores";
    std::string found;
    const auto compare = [&](std::string_view name, ListKept, const auto& list,
                             const auto& theirs) {
      if (list.empty() || theirs.empty()) return;
      const std::size_t width = list.size() / static_cast<std::size_t>(x.members),
                        width_b = theirs.size() / static_cast<std::size_t>(y.members);
      for (std::int64_t number = first; number < end && found.empty(); ++number) {
        const auto mine = std::span(list).subspan((number - a_.first_member) * width, width);
        const auto its = std::span(theirs).subspan((number - b_.first_member) * width_b, width_b);
        const auto at = std::ranges::mismatch(mine, its, equal_numbers).in1;
        if (at == mine.end() && width == width_b) continue;
        found = fmt::format("{} of member {}", name, number);
        if (width == 1 || name == kSegmentScores) continue;  // not [P]
        const std::int64_t offset = at - mine.begin();
        for (const ParameterEntry& entry : table.entries()) {
          if (offset >= entry.offset && offset < entry.offset + entry.size())
            found += ", first in " + entry.name;
        }
      }
    };
    visit_lists(compare, x, y);
    compare(kSegmentScores, ListKept::always, x.segment_scores, y.segment_scores);
    return found;
  }

  // Without checkpoints, scores.json has the hash of the parameters that scored last.
  void scored_parameters() {
    if (!same_members_ || a_.last_step() != b_.last_step()) return;
    if (a_.scored.empty() || b_.scored.empty()) return;
    if (row_of("parameters that scored", a_.scored, b_.scored)) {
      compared_.push_back("the parameters that scored");
    } else {
      note_difference(a_.last_step(), RecordKind::evaluation, "the parameters that scored");
    }
  }

  void conclude() {
    const std::int64_t a = a_.last_step(), b = b_.last_step();
    if (first_) {
      verdict_ = "different: first " + first_text_;
    } else if (!causes_.empty()) {
      verdict_ =
          fmt::format("different: {}; {}", causes_.front(),
                      compared_.empty() ? "no number is in both" : "all numbers in both are equal");
    } else if (a != b) {
      verdict_ = fmt::format("different: {} ends at step {}, {} at step {}; equal until then",
                             a_.folder.path().string(), a, b_.folder.path().string(), b);
    } else {
      return conclude_equal();
    }
    if (!first_) return;
    // A finished run that is resumed takes no step but is evaluated again.
    const auto [step, kind] = *first_;
    const bool parted = parted_ > 0 && parted_ <= step + (kind == RecordKind::evaluation ? 1 : 0);
    if (!row_keys_.empty() && first_text_.find(" in members/best_") != std::string::npos)
      causes_.push_back("evaluations took other rows: " + join(row_keys_, ", "));
    if (causes_.empty()) {
      causes_.push_back(parted ? fmt::format("settings, data and folds are equal; program or "
                                             "processor differ from step {} on, which may round "
                                             "differently",
                                             parted_)
                               : "settings, data and folds that are known are equal");
    }
    for (const std::string& cause : causes_) verdict_ += "\n  " + cause;
  }

  void conclude_equal() {
    if (!faults_.empty())
      throw DataError("cannot say whether the runs are equal: " + join(faults_, "; "));
    if (compared_.empty()) {
      throw DataError(fmt::format(
          "{} and {}: nothing to compare: neither a logged step nor a checkpoint is in both",
          a_.folder.path().string(), b_.folder.path().string()));
    }
    equal_ = true;
    std::error_code ignored;
    const bool one = fs::equivalent(a_.folder.path(), b_.folder.path(), ignored);
    verdict_ = fmt::format("equal: {}, up to step {}{}", join(compared_, ", "), a_.last_step(),
                           one ? " (one folder, given twice)" : "");
  }

  const Side &a_, &b_;
  std::vector<std::string> faults_;  // what could not be read, one line each
  const bool same_members_;
  bool equal_ = false;
  std::string verdict_;
  TextTable things_{{"", "", "", ""}};
  std::optional<std::pair<std::int64_t, RecordKind>> first_;  // where the sides differ
  std::string first_text_;
  std::vector<std::string> causes_;    // other settings, data or folds
  std::vector<std::string> compared_;  // "6 logged steps"
  std::vector<std::string> row_keys_;  // why evaluations took other rows
  std::int64_t parted_ = 0;            // first step of another program or processor; 0: none
};

}  // namespace

std::pair<bool, std::string> compare_runs(const fs::path& a, const fs::path& b) {
  std::vector<std::string> faults;
  const Side side_a = read_side(a, faults), side_b = read_side(b, faults);
  return RunComparison(side_a, side_b, std::move(faults)).result();
}

}  // namespace tpudist
