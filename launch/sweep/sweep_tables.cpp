#include "launch/sweep/sweep_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <map>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/folder_lock.hpp"
#include "core/json.hpp"
#include "core/numbers.hpp"
#include "core/process.hpp"
#include "core/text_table.hpp"
#include "launch/sweep/choice.hpp"
#include "results/records/run_folder.hpp"

namespace tpudist {
namespace {

using Json = nlohmann::json;

// A stage whose runs are known, with their results.
struct StageResults {
  const Stage* stage = nullptr;
  std::vector<SweepRun> runs;
  std::vector<std::optional<RunResult>> results;
};

std::vector<StageResults> known_results(const SweepFolder& folder) {
  std::vector<StageResults> list;
  const auto& stages = folder.record().stages;
  for (int i = 0; i < static_cast<int>(stages.size()); ++i) {
    auto runs = folder.stage_runs(i);
    if (!runs) break;
    StageResults known{&stages[i], std::move(*runs), {}};
    for (const SweepRun& run : known.runs) known.results.push_back(folder.result(run));
    list.push_back(std::move(known));
  }
  return list;
}

bool any_ended(const std::vector<StageResults>& known) {
  return std::ranges::any_of(known, [](const StageResults& stage) {
    return std::ranges::any_of(stage.results, [](const auto& r) { return r.has_value(); });
  });
}

// The scores that compare variants: those of the choice, or without one out of fold, if any.
ChoiceScore shown_score(const SweepRecord& record, const StageResults& stage) {
  if (stage.stage->confirms) return ChoiceScore::valid;
  if (record.choice != ChoiceScore::none) return record.choice;
  const bool held_out = std::ranges::any_of(
      stage.results, [](const auto& result) { return result && result->out_of_fold(); });
  return held_out ? ChoiceScore::out_of_fold : ChoiceScore::valid;
}

std::string_view name_of(ChoiceScore score) {
  return score == ChoiceScore::out_of_fold ? "out of fold" : "valid";
}

// The name of a stage's scores, with their half of the validation families.
std::string score_text(const SweepRecord& record, const StageResults& stage, ChoiceScore score) {
  const bool halved = std::ranges::any_of(
      record.halves, [](const SweepRecord::Halves& own) { return !own.choosing.empty(); });
  if (score == ChoiceScore::out_of_fold || !halved) return std::string(name_of(score));
  return stage.stage->confirms ? "valid (confirming half)" : "valid (choosing half)";
}

std::string cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.4f}", *value) : "-";
}

std::string seed_text(const SweepRun& run) {
  return run.seed ? fmt::format("{}", *run.seed) : "-";
}

std::string members_text(const SweepRun& run) {
  return run.members == 1
             ? fmt::format("{}", run.first_member)
             : fmt::format("{}-{}", run.first_member, run.first_member + run.members - 1);
}

// The fold that all members of a run hold out; "-" if there are several or none.
std::string fold_text(const SweepRun& run) {
  if (run.folds == 0 || run.members != 1) return "-";
  return fmt::format("{}", run.first_member % run.folds);
}

std::string_view state_word(const std::optional<RunResult>& result) {
  return !result ? "not ended" : result->finished ? "finished" : "failed";
}

// The summaries of a stage by SweepRecord::variant_group, which are not compared with each other.
std::vector<std::vector<VariantSummary>> grouped(const SweepRecord& record,
                                                 const StageResults& stage, ChoiceScore score) {
  std::map<int, std::vector<VariantSummary>> groups;
  for (const VariantSummary& s : summarise(stage.runs, stage.results, score))
    groups[record.variant_group[s.variant]].push_back(s);
  std::vector<std::vector<VariantSummary>> list;
  for (auto& [group, summaries] : groups) list.push_back(std::move(summaries));
  return list;
}

// "0", "1" failed run, "2 members" of runs that finished, or both.
std::string failed_cell(const VariantSummary& s) {
  if (s.failed_members == 0) return fmt::format("{}", s.failed);
  return (s.failed > 0 ? fmt::format("{} and ", s.failed) : "") +
         counted(s.failed_members, "member");
}

// `compared`: whether the variants may be compared and should have equal numbers of graphs.
std::string table_of(const SweepRecord& record, const std::vector<VariantSummary>& summaries,
                     bool compared) {
  TextTable table({"variant", right("runs"), right("finished"), right("failed"), right("trainings"),
                   right("mean of members"), right("SD between trainings"), TableColumn("", 0, 1)});
  const double most = compared ? most_graphs(summaries) : 0;
  const bool scored =
      std::ranges::any_of(summaries, [](const VariantSummary& s) { return s.mean.has_value(); });
  bool undefined = false;
  for (const VariantSummary& s : summaries) {
    const bool marked =
        (most > 0 && s.mean && s.graphs < most) || (scored && s.finished == s.runs && !s.complete);
    undefined = undefined || marked;
    table.rows.push_back({record.label(s.variant), s.runs, s.finished, failed_cell(s), s.seeds,
                          s.mean, s.deviation, marked ? "*" : ""});
  }
  std::string text = "\n" + table.to_text();
  if (undefined) {
    text +=
        "* a score is undefined (all predictions of a graph are equal), or a member failed: the "
        "mean is over the graphs, trainings or members that there are, intervals below over graphs "
        "that all have\n";
  }
  return text;
}

std::string summary_lines(const SweepRecord& record, const StageResults& stage) {
  const ChoiceScore score = shown_score(record, stage);
  std::string text = fmt::format(
      "{}: {} score. A training is all members of a seed; its score is the mean of its "
      "members, over graphs\n",
      stage.stage->name, score_text(record, stage, score));
  const auto groups = grouped(record, stage, score);
  const bool single =
      std::ranges::all_of(groups, [](const auto& group) { return group.size() == 1; });
  if (single)
    text += table_of(record, summarise(stage.runs, stage.results, score), groups.size() == 1);
  else
    for (const auto& summaries : groups) text += table_of(record, summaries, true);
  if (groups.size() > 1)
    text += fmt::format("\n{} compared: they are of other experiments, or of other graphs\n",
                        single ? "no two of these are" : "the tables are not");
  return text;
}

std::string run_lines(const SweepRecord& record, const StageResults& stage) {
  TextTable table({right("run", 5), TableColumn("id", 16), right("variant"), right("seed", 6),
                   right("fold"), right("members"),
                   right(score_text(record, stage, ChoiceScore::valid), 7), right("out of fold"),
                   "parameters"});
  for (std::size_t i = 0; i < stage.runs.size(); ++i) {
    const SweepRun& run = stage.runs[i];
    const auto& result = stage.results[i];
    const bool finished = result && result->finished;
    table.rows.push_back({run.index, run.id, run.variant, seed_text(run), fold_text(run),
                          members_text(run), finished ? result->valid() : std::nullopt,
                          finished ? result->out_of_fold() : std::nullopt,
                          finished ? result->parameters : state_word(result)});
  }
  return "\n" + table.to_text();
}

std::string confirmed_text(const SweepRecord& record, const VariantSummary& s) {
  if (!s.mean) {
    return fmt::format("its score is not known yet: of {} with fresh seeds {} finished",
                       counted(s.runs, "run"), s.finished);
  }
  return fmt::format("its score: {} (mean of members), SD between trainings {}, {}, on {}",
                     cell(s.mean), cell(s.deviation), counted(s.seeds, "fresh seed"),
                     record.confirmed_on);
}

// The next commands: `compare` of the best two variants, also with more seeds.
std::string next_lines(const SweepFolder& folder, const StageResults& last) {
  const SweepRecord& record = folder.record();
  auto best = summarise(last.runs, last.results, shown_score(record, last));
  std::ranges::stable_sort(best, std::greater(), &VariantSummary::mean);
  const auto group_of = [&](const VariantSummary& s) { return record.variant_group[s.variant]; };
  std::erase_if(best, [&, group = group_of(best.front())](const VariantSummary& s) {
    return !s.mean || group_of(s) != group;
  });
  if (best.size() < 2) return {};
  const auto side = [&](std::size_t i, const char* suffix) {
    return shell_word(fmt::format("{}{}:{}", folder.path().string(), suffix, best[i].variant));
  };
  return fmt::format(
      "the best two: `tpudist compare {} {}`\n"
      "for later, an example with a second sweep of new seeds, planned beforehand, in a folder "
      "{}-2:\n"
      "  `tpudist compare {} {} --with {} {} --looks 2`\n",
      side(0, ""), side(1, ""), folder.path().string(), side(0, ""), side(0, "-2"), side(1, ""),
      side(1, "-2"));
}

std::string choice_lines(const SweepFolder& folder, const std::vector<StageResults>& known) {
  const SweepRecord& record = folder.record();
  if (record.choice == ChoiceScore::none)
    return "\nno variant was chosen (`choose.by: none`)\n" + next_lines(folder, known.back());
  const StageResults& last = known.back();
  if (!last.stage->confirms) {
    const bool failed = std::ranges::any_of(
        last.results, [](const auto& result) { return result && !result->finished; });
    return fmt::format("\nnothing is chosen yet: {}\n",
                       failed ? "runs failed (`tpudist sweep retry`, or `sweep run --go-on`)"
                              : "not all runs have ended");
  }
  std::string text;
  const StageResults& search = known[known.size() - 2];
  const auto chosen_by = summarise(search.runs, search.results, record.choice);
  const bool stale = !folder.stale_reason(static_cast<int>(known.size()) - 1).empty();
  for (const VariantSummary& s : summarise(last.runs, last.results, ChoiceScore::valid)) {
    const auto before = std::ranges::find(chosen_by, s.variant, &VariantSummary::variant);
    const auto run = std::ranges::find(last.runs, s.variant, &SweepRun::variant);
    const auto first = std::ranges::find(record.runs, run->experiment, &SweepRun::experiment);
    if (is_baseline(last.runs, *run)) {
      text +=
          fmt::format("\nbaseline: {}\n{}\n", record.label(s.variant), confirmed_text(record, s));
      continue;
    }
    text += fmt::format(
        "\nchosen{}: {} by its {} score {} (mean of members; too good: it was chosen by it)\n{}\n"
        "{}",
        stale ? " (stale)" : "", record.label(s.variant), name_of(record.choice),
        before == chosen_by.end() ? "-" : cell(before->mean), confirmed_text(record, s),
        record.baseline && first->variant == s.variant
            ? "it is the first variant, the baseline: there is no other to compare it with\n"
            : "");
  }
  return text;
}

// ", at step 1450", as far as the end of its records says; else empty.
std::string step_text(const SweepFolder& folder, const SweepRun& run) {
  constexpr std::streamoff kTail = 1 << 16;
  std::ifstream file(RunFolder(folder.run_folder(run)).metrics(), std::ios::binary | std::ios::ate);
  file.seekg(std::max<std::streamoff>(file.tellg() - kTail, 0));
  std::int64_t last = 0;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, false);  // the first and last may be cut off
    if (!json.is_object() || !json.contains("kind") || !json.contains("step")) continue;
    if (json["kind"] != "step" && json["kind"] != "evaluation") continue;
    if (json["step"].is_number()) last = json["step"];
  }
  return last > 0 ? fmt::format(", at step {}", last) : "";
}

}  // namespace

std::string plan_table(const SweepRecord& record) {
  std::string text;
  for (const SweepRun& run : record.runs)
    text += fmt::format("{:>5}  {}  {}\n", run.index, run.id, record.text_of(run));
  for (const Stage& stage : record.stages) {
    text += fmt::format("{}: {}{}, from index {}\n", stage.name, stage.first > 0 ? "at most " : "",
                        counted(stage.count, "run"), stage.first);
  }
  return text + outlook_text(record);
}

std::string stale_lines(const SweepFolder& folder) {
  std::string text;
  const auto& stages = folder.record().stages;
  for (int stage = 1; stage < static_cast<int>(stages.size()); ++stage) {
    const std::string reason = folder.stale_reason(stage);
    if (reason.empty()) continue;
    text += fmt::format("\nthe choice for \"{}\" is stale: {}\n", stages[stage].name, reason);
  }
  const std::string fault = folder.data_fault();
  return fault.empty() ? text : text + "\n" + fault + "\n";
}

std::string how_far(const SweepFolder& folder, std::map<std::string, double>& known) {
  std::size_t all = 0, finished = 0;
  double seconds = 0, trained = 0, left = 0;  // trained, left: in runs of all steps
  for (int i = 0; const Stage& stage : folder.record().stages) {
    const double part = 1.0 / static_cast<double>(stage.step_divisor);
    const auto runs = folder.stage_runs(i++);
    all += runs ? runs->size() : static_cast<std::size_t>(stage.count);
    if (!runs) left += part * stage.count;
    for (const SweepRun& run : runs.value_or(std::vector<SweepRun>())) {
      if (!known.contains(run.id)) {
        const auto result = read_result(folder.result_file(run));
        if (!result) left += part;
        if (!result || !result->finished) continue;
        known[run.id] = result->train_seconds;
      }
      ++finished;
      seconds += known[run.id];
      trained += part;
    }
  }
  return fmt::format("{} of {} {} finished{}", finished,
                     counted(static_cast<std::int64_t>(all), "run"), all == 1 ? "has" : "have",
                     seconds * left > 0 ? fmt::format(", about {} of training left",
                                                      format_seconds(seconds / trained * left))
                                        : "");
}

std::string status_table(const SweepFolder& folder) {
  std::string text = fmt::format("{:<12}", "stage");
  constexpr std::array kStates{RunState::waiting, RunState::running, RunState::stopped,
                               RunState::failed, RunState::finished};
  for (RunState state : kStates) text += fmt::format("  {:>8}", name_of(state));
  text += "\n";
  std::string details;
  std::map<std::string, double> finished;
  bool blocked = false;  // the stage before has ended with failed runs
  const SweepRecord& record = folder.record();
  for (int i = 0; i < static_cast<int>(record.stages.size()); ++i) {
    const Stage& stage = record.stages[i];
    text += fmt::format("{:<12}", stage.name);
    const auto runs = folder.stage_runs(i);
    if (!runs) {
      text +=
          fmt::format("  at most {}, {}\n", counted(stage.count, "run"),
                      blocked ? "not begun: `sweep retry` the failed ones, or `sweep run --go-on`"
                              : "known when those before have ended");
      blocked = false;
      continue;
    }
    std::map<RunState, int> counts;
    for (const SweepRun& run : *runs) {
      const RunState state = folder.state(run);
      const auto ended = folder.result(run);  // the run may be retried meanwhile
      ++counts[state];
      if (state == RunState::waiting || state == RunState::finished) continue;
      const auto holder = lock_holder(folder.path() / "claims", run.id);
      details += fmt::format(
          "run {:>4}  {}  {}: {}\n", run.index, run.id, name_of(state),
          ended ? ended->error
                : record.text_of(run) + step_text(folder, run) + (holder ? ", by " + *holder : ""));
    }
    for (RunState state : kStates) text += fmt::format("  {:>8}", counts[state]);
    text += "\n";
    blocked = counts[RunState::failed] > 0 &&
              counts[RunState::failed] + counts[RunState::finished] == std::ssize(*runs);
  }
  text += how_far(folder, finished) + "\n" + (details.empty() ? "" : "\n" + details);
  return text + stale_lines(folder);
}

std::string next_command(const SweepFolder& folder, bool collected) {
  const std::string path = shell_word(folder.path().string());
  bool failed = false, left = false, stale = false;
  for (int i = 0; i < static_cast<int>(folder.record().stages.size()); ++i) {
    stale = stale || !folder.stale_reason(i).empty();
    const auto runs = folder.stage_runs(i);
    left = left || (!runs && !failed);
    for (const SweepRun& run : runs.value_or(std::vector<SweepRun>())) {
      const RunState state = folder.state(run);
      failed = failed || state == RunState::failed;
      left = left || state == RunState::waiting || state == RunState::stopped;
    }
  }
  if (stale) return fmt::format("tpudist sweep retry {} --take-back", path);
  if (left && !folder.data_fault().empty()) return {};
  if (left) return fmt::format("tpudist sweep run {0} (Slurm: tpudist sweep submit {0})", path);
  if (failed)
    return fmt::format(
        "tpudist sweep retry {} if the cause lies outside the settings: a retry gives the same "
        "bits; else change the sweep file, and expand it into another folder (--dir)",
        path);
  return (collected ? "tpudist report " : "tpudist sweep collect ") + path;
}

bool has_results(const SweepFolder& folder) {
  return any_ended(known_results(folder));
}

std::string collect_table(const SweepFolder& folder) {
  const SweepRecord& record = folder.record();
  const std::vector<StageResults> known = known_results(folder);
  if (!any_ended(known)) return "no run has ended yet\n" + stale_lines(folder);
  std::string text;
  for (const StageResults& stage : known) {
    if (!text.empty()) text += "\n";
    text += summary_lines(record, stage) + run_lines(record, stage);
  }
  return text + choice_lines(folder, known) + stale_lines(folder);
}

std::string collect_csv(const SweepFolder& folder) {
  const SweepRecord& record = folder.record();
  TextTable table({"run", "id", "stage", "variant", "label", "collection", "seed", "member", "fold",
                   "state", "valid", "out_of_fold", "parameters", "steps", "valid_graphs",
                   "out_of_fold_graphs"});
  for (const StageResults& stage : known_results(folder)) {
    for (std::size_t i = 0; i < stage.runs.size(); ++i) {
      const SweepRun& run = stage.runs[i];
      const auto& result = stage.results[i];
      for (int m = 0; m < run.members; ++m) {
        const int number = run.first_member + m;
        const RunResult::Member* member =
            result && result->finished && !result->members.empty() ? &result->members[m] : nullptr;
        const auto graphs = [&](int RunResult::Member::*count) {
          return member && member->*count >= 0 ? TableCell(member->*count) : "";
        };
        table.rows.push_back(
            {run.index, run.id, stage.stage->name, run.variant, record.label(run.variant),
             run.collection, run.seed ? TableCell(*run.seed) : "", number,
             run.folds > 0 ? TableCell(number % run.folds) : "",
             member && member->failed ? "member failed" : state_word(result),
             member ? member->valid : std::nullopt, member ? member->out_of_fold : std::nullopt,
             member ? result->parameters : "", member ? TableCell(result->steps) : "",
             graphs(&RunResult::Member::valid_graphs),
             graphs(&RunResult::Member::out_of_fold_graphs)});
      }
    }
  }
  return table.to_csv();
}

Json collect_json(const SweepFolder& folder) {
  const SweepRecord& record = folder.record();
  Json stages = Json::array();
  int number = 0;
  for (const StageResults& stage : known_results(folder)) {
    const std::string stale = folder.stale_reason(number++);
    const ChoiceScore score = shown_score(record, stage);
    Json variants = Json::array(), runs = Json::array();
    for (const VariantSummary& s : summarise(stage.runs, stage.results, score)) {
      variants.push_back({{"variant", s.variant},
                          {"label", record.label(s.variant)},
                          {"group", record.variant_group[s.variant]},
                          {"runs", s.runs},
                          {"finished", s.finished},
                          {"failed", s.failed},
                          {"failed_members", s.failed_members},
                          {"seeds", s.seeds},
                          {"mean", s.mean},
                          {"deviation", s.deviation}});
    }
    for (std::size_t i = 0; i < stage.runs.size(); ++i) {
      const auto& result = stage.results[i];
      const bool finished = result && result->finished;
      runs.push_back({{"index", stage.runs[i].index},
                      {"id", stage.runs[i].id},
                      {"state", state_word(result)},
                      {"valid", finished ? result->valid() : std::nullopt},
                      {"out_of_fold", finished ? result->out_of_fold() : std::nullopt},
                      {"parameters", finished ? Json(result->parameters) : Json()}});
    }
    stages.push_back({{"name", stage.stage->name},
                      {"score", name_of(score)},
                      {"mean_is", "mean of members"},
                      {"deviation_is", "SD between trainings"},
                      {"confirms", stage.stage->confirms},
                      {"stale", stale.empty() ? Json() : Json(stale)},
                      {"variants", variants},
                      {"runs", runs}});
  }
  return {{"sweep", record.name}, {"confirmed_on", record.confirmed_on}, {"stages", stages}};
}

}  // namespace tpudist
