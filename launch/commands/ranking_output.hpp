#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/commands/measured_file.hpp"
#include "launch/commands/scoring_options.hpp"
#include "results/scores/measurement_advice.hpp"
#include "statistics/ranking/predicted_gain.hpp"
#include "train/scoring/module_ranking.hpp"

namespace tpudist {

// What the commands that rank configurations of one module have in common.
struct RankingArguments : ScoringArguments {
  std::filesystem::path file;
  std::string standard;  // --default: the number of a configuration, or a file
  std::vector<std::filesystem::path> runs;
  JudgementArguments judgement;
  std::string within = "2%", confidence = "90%";
  std::filesystem::path measured;
  bool json = false;
  std::string apply;  // "jax", "text" or empty
  std::int64_t apply_rank = 1;

  // A configuration of the module in the form to apply; `which` ends its title.
  std::string applied(const MadeConfigs& made, std::int64_t number, const std::string& which) const;
};

// Adds all but `file` and `standard`. Returns --apply. `arguments` must outlive the command.
Option add_ranking_options(Command command, RankingArguments& arguments);

// Opens the runs, and in a job of ranks that agree on the arguments and `agreed` reads the module
// (`name` and `request` as in read_module), with the default of --default. On rank 0, warns if the
// module lies outside of a run's training graphs; runs of older versions did not record these.
using RankModule = std::function<void(const Module&, const std::vector<TrainedRun>&, JobContext&)>;
void run_on_module(const RankingArguments& arguments, std::vector<AgreedValue> agreed,
                   const std::string& name, const ConfigRequest& request, const RankModule& rank);

// Whether the path names a file; false also if that cannot be seen.
bool names_file(const std::filesystem::path& path);
// The option, and the content of the file that it names: a value that ranks must agree on.
std::string content_of(const std::filesystem::path& option);

using RankingMembers = std::vector<ModuleRanking::Member>;
// The number of members that take part, and a warning for each other member.
std::int64_t taking_part(const RankingMembers& members);
void warn_of_left_out(const RankingMembers& members);

// How many to measure, learned from the runs' predictions of graphs that members never saw.
MeasurementAdvice advice_of(const RankingArguments& arguments, const std::vector<TrainedRun>& runs,
                            const RankingMembers& members);

// Of a configuration that members put before the default: why that may mean nothing; may be empty.
std::string known_text(const KnownGain& known, std::int64_t members);
// What measurements say of the model; `configs` is the length of the list, 0: there is none.
std::string measured_text(const MeasuredCorrection& correction, const MeasuredFile& file,
                          std::int64_t configs);
nlohmann::ordered_json measured_json(const MeasuredCorrection& correction,
                                     const MeasuredFile& file);

// What the JSON of both commands begins with.
nlohmann::ordered_json ranking_json(const RankingArguments& arguments, const Module& module,
                                    const std::vector<TrainedRun>& runs,
                                    const RankingMembers& members);
// A made configuration in the format of --configs FILE.
nlohmann::ordered_json layouts_json(const MadeConfigs& made, std::int64_t number);

}  // namespace tpudist
