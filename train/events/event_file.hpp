#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "train/events/event_record.hpp"

namespace tpudist {

// The scalars of a line of metrics.jsonl. A number keeps its name. A list with one number per
// member becomes NAME/member_0, NAME/member_1, ... (from the line's `first_member` on, else from
// 0), and NAME/mean over the numbers that are not null. Times of ranks become
// rank_seconds/compute/rank_0 and so on. Scores of an evaluation get their split's name:
// valid/member_0, valid/mean, valid/ensemble. Null (not finite) values, `step`, `rows` and
// `first_member` are left out. A line of kind "start" has no scalars.
std::vector<Scalar> scalars_of(const nlohmann::json& record);

// The record of a line: settings_record of its `settings` if its kind is "start", else its scalars.
std::string event_record(double wall_time, const nlohmann::json& record);

// Appends a line of metrics to the event file beside it, which TensorBoard plots; creates the file
// if needed. If the process is killed meanwhile, the file has only complete records and at most one
// torn record at its end, which readers ignore. Throws IoError.
void append_events(const std::filesystem::path& file, const nlohmann::json& record);

// Drops the records of steps after `step`, and a torn one at the end, so that a resumed run
// continues the file. Does nothing without a file. Throws IoError.
void rewind_events(const std::filesystem::path& file, std::int64_t step);

}  // namespace tpudist
