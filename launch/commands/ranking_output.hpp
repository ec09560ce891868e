#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "train/scoring/module_ranking.hpp"

namespace tpudist {

// What the commands that rank configurations of one module have in common.

// The option, and the content of the file that it names: a value that ranks must agree on.
std::string content_of(const std::filesystem::path& option);

// Warns once if the module lies outside of a run's training graphs. Runs of older versions did not
// record these.
void warn_of_distance(const std::filesystem::path& file, const Module& module,
                      const std::vector<TrainedRun>& runs);

// The row of the default configuration: that of --default if it is a number. Throws ConfigError.
std::optional<std::int64_t> standard_row(const std::string& option,
                                         const std::filesystem::path& file, const Module& module);

// The number of members that take part, and a warning for each other member.
std::int64_t taking_part(const ModuleRanking& result);
void warn_of_left_out(const ModuleRanking& result);

// "runs" and "members" of JSON.
void add_members(nlohmann::ordered_json& json, const std::vector<TrainedRun>& runs,
                 const ModuleRanking& result);
// A made configuration in the format of --configs FILE.
nlohmann::ordered_json layouts_json(const MadeConfigs& made, std::int64_t number);

// A made configuration in a form to apply, `form` jax or text.
std::string applied(const std::string& form, const MadeConfigs& made, std::int64_t number,
                    const std::string& title);

}  // namespace tpudist
