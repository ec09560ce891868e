#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "train/events/event_record.hpp"

namespace tpudist {

// The scalars of a line of metrics.jsonl. Numbers keep their name; a list with a number for each
// member becomes NAME/member_0, NAME/member_1, ..., counted from the line's `first_member` on (0 where
// it has none), and NAME/mean over those that are numbers. The times of ranks become
// rank_seconds/compute/rank_0 and so on. The
// score of an evaluation comes under its split: valid/member_0, valid/mean, valid/ensemble. What is null
// (not finite), and `step`, `rows` and `first_member`, are left out. A line of kind "start" has none.
std::vector<Scalar> scalars_of(const nlohmann::json& record);

// The record of a line: settings_record of its `settings` where its kind is "start", else the scalars.
std::string event_record(double wall_time, const nlohmann::json& record);

// Appends a line of metrics to the event file beside it, which TensorBoard plots; makes the file if
// it is not there. A process that is killed meanwhile leaves a file of whole records and at most
// one that is torn, which readers pass over. Throws IoError.
void append_events(const std::filesystem::path& file, const nlohmann::json& record);

// Drops the records of steps after `step`, and a torn one at the end, so that a resumed run
// continues the file. Does nothing where there is none. Throws IoError.
void rewind_events(const std::filesystem::path& file, std::int64_t step);

}  // namespace tpudist
