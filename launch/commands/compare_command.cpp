#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/json.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/output.hpp"
#include "results/scores/comparison_text.hpp"
#include "results/scores/run_difference.hpp"
#include "results/scores/slowdowns.hpp"
#include "results/scores/system_scores.hpp"

namespace tpudist {
namespace {

struct CompareArguments {
  std::vector<std::string> inputs, with;
  std::filesystem::path json;
  std::string score = "members";
  double difference = 0, margin = 0;
  int looks = 1;
};

// The two sides: two inputs, or the two variants of a sweep. With --with, the inputs before it are
// A and those after it are B.
std::pair<std::vector<RunRecord>, std::vector<RunRecord>> sides_of(
    const CompareArguments& arguments) {
  if (!arguments.with.empty()) return {read_system(arguments.inputs), read_system(arguments.with)};
  std::vector<std::string> two = arguments.inputs;
  if (two.size() == 1) {
    const std::filesystem::path path = split_variant(two[0]).first;
    if (std::filesystem::exists(path / "sweep.json"))
      two = two_variants(two[0]);
    else if (!std::filesystem::exists(two[0]))
      read_system(two);  // says what is near
  }
  if (two.size() != 2)
    throw ConfigError(fmt::format(
        "{} before --with: name two (A and B) or one sweep of two variants, or the runs "
        "of A before --with and those of B after it",
        counted(std::ssize(arguments.inputs), "input")));
  return {read_system({&two[0], 1}), read_system({&two[1], 1})};
}

// Refuses sides whose runs have not ended or all failed.
void require_ended(const std::vector<RunRecord>& a, const std::vector<RunRecord>& b) {
  std::vector<RunRecord> all = a;
  all.insert(all.end(), b.begin(), b.end());
  const bool whole = !all.empty() && all.front().variants == 2 && !b.empty() &&
                     a.front().path.parent_path() == b.front().path.parent_path();
  for (const std::string& text :
       {whole ? no_end_text(all, "") : std::string(), no_end_text(a, "A"), no_end_text(b, "B")})
    if (!text.empty()) throw ConfigError(text);
}

void run(const CompareArguments& arguments) {
  if (arguments.margin >= 1)
    throw ConfigError(fmt::format(
        "--margin {:g}: give a difference of scores below 1, such as 0.02", arguments.margin));
  const auto [a, b] = sides_of(arguments);
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::string> missing;
  const TrainingScore score = arguments.score == "together" ? TrainingScore::members_together
                                                            : TrainingScore::mean_of_members;
  for (const EvaluatedOn judged : {EvaluatedOn::valid, EvaluatedOn::out_of_fold}) {
    const SystemPair pair = system_pair(a, b, judged, score);
    if (pair.a.scores.rows.empty() || pair.b.scores.rows.empty() || pair.a.scores.graphs.empty()) {
      missing.push_back(missing_text(pair));
      continue;
    }
    const double level = 1 - kSignificance / arguments.looks;
    Comparison found = compare(pair.a.scores, pair.b.scores, level);
    found.margin = arguments.margin;
    const SlowdownPair slowdowns = compare_slowdowns(a, b, judged == EvaluatedOn::valid);
    print("{}{}\n{}", list.empty() ? "" : "\n", comparison_text(pair, found), slowdowns.text());
    list.push_back(comparison_json(pair, found));
    list.back()["slowdown"] = slowdowns.json();
    if (arguments.difference > 0) {
      const DifferencePlan plan =
          plan_difference(pair.a.scores, pair.b.scores, arguments.difference, level);
      print("{}", plan_text(plan));
      list.back()["plan"] = plan_json(plan);
    }
  }
  if (list.empty()) {
    require_ended(a, b);
    throw ConfigError("there are no graphs that both sides have scores of: " + join(missing, "; "));
  }
  if (!arguments.json.empty()) write_file_atomically(arguments.json, json_text(list, 2) + "\n");
}

}  // namespace

void add_compare_command(Command app) {
  auto arguments = std::make_shared<CompareArguments>();
  const Command command =
      app.add_command("compare", "Say which of two variants is better, and how sure that is");
  command.footer(
      "A and B are folders of runs, files of predictions, sweeps with one variant, or variants of "
      "a sweep (SWEEP:NUMBER\nor SWEEP:LABEL). One sweep of exactly two variants is both. It "
      "answers two questions apart: would training again\ndiffer on these graphs, and would they "
      "differ on other families (docs/statistics.md)?\n\n"
      "Example:\n  tpudist compare sweeps/rate\n"
      "  tpudist compare sweeps/rate:0 sweeps/rate:1 --json rate.json\n"
      "  tpudist compare runs/a-1 runs/a-2 --with runs/b-1 runs/b-2");
  command
      .add_option("inputs", arguments->inputs,
                  "A and B, or one sweep of two variants; with --with, the runs of A")
      .required();
  command.add_option("--with", arguments->with, "The runs of B");
  command
      .add_option("--by", arguments->score,
                  "Which score of a training: the mean of its members, or members together")
      .one_of({"members", "together"})
      .show_default();
  command
      .add_option("--difference", arguments->difference,
                  "Also say how many trainings and families find a true difference of this size, "
                  "in units of the score")
      .positive();
  command
      .add_option("--margin", arguments->margin,
                  "First say whether A and B differ by less than this, in either direction, or by "
                  "more; in units of the score (Kendall tau, or tile score)")
      .positive();
  command
      .add_option("--looks", arguments->looks,
                  "How often you read growing data, planned beforehand: intervals and verdicts are "
                  "then at 0.05 / LOOKS")
      .in_range(1, 100)
      .show_default();
  command.add_option("--json", arguments->json, "Write the numbers to this file");
  command.run([arguments] { run(*arguments); });
}

void add_diff_command(Command app) {
  auto runs = std::make_shared<std::array<std::filesystem::path, 2>>();
  const Command command =
      app.add_command("diff", "Name the first step and field in which two runs differ");
  command.footer(
      "It compares settings that decide the numbers, data, folds, logged values and checkpoints, "
      "to the bit. Exit codes:\n0 equal, 1 different, 3 damaged files where nothing else differs, "
      "or nothing to compare.\n\n"
      "Example:\n  tpudist diff runs/before runs/after");
  command.add_option("a", (*runs)[0], "Folder of a run").required().existing_folder();
  command.add_option("b", (*runs)[1], "Folder of the other run").required().existing_folder();
  command.run([runs] {
    const auto [equal, text] = compare_runs((*runs)[0], (*runs)[1]);
    print_text(text);
    if (!equal) throw EndWith(1);
  });
}

}  // namespace tpudist
