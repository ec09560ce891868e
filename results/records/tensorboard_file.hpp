#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tpudist {

// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), as in RFC 3720 (iSCSI).
std::uint32_t crc32c(std::span<const std::byte> bytes);

// A number that TensorBoard plots, under a name such as "loss/member_0".
struct Scalar {
  std::string tag;
  double value = 0;  // stored as float32
};

// The records of an event file of TensorBoard. Each is framed as in TFRecord files (tensorflow,
// core/lib/io/record_writer.h; integers little-endian):
//
//   u64 length | u32 masked CRC-32C of the length | length bytes | u32 masked CRC-32C of the bytes
//
// and holds an Event in the encoding of Protocol Buffers (tensorflow, core/util/event.proto and
// core/framework/summary.proto): wall_time = 1 (double), step = 2 (int64), file_version = 3
// (string), summary = 5 {value = 1 {tag = 1 (string), simple_value = 2 (float)}}.

// The first record of every file. `wall_time`: seconds since 1970.
std::string version_record(double wall_time);
// The settings of a run for TensorBoard's page of hyper-parameters: (key, value in YAML) pairs,
// keys ascending. The summary's value has the tag "_hparams_/session_start_info" and a metadata = 9
// {plugin_data = 1 {plugin_name = 1, content = 2}}; the content is an HParamsPluginData
// (tensorboard, plugins/hparams/plugin_data.proto) {session_start_info = 3 {hparams = 1 {key = 1,
// value = 2: a google.protobuf.Value}}}. Booleans and numbers are stored as such.
using Settings = std::vector<std::pair<std::string, std::string>>;
std::string settings_record(double wall_time, std::int64_t step, const Settings& settings);
// All scalars of one step. Steps are not negative.
std::string scalar_record(double wall_time, std::int64_t step, std::span<const Scalar> scalars);

// The CRC as stored: rotated, plus a constant, so that a CRC over bytes with CRCs stays useful.
std::uint32_t masked_crc32c(std::span<const std::byte> bytes);

// A complete record.
struct EventRecord {
  std::string_view record;  // with its frame
  std::string_view event;
  std::int64_t step = 0;
};

// The complete records at the beginning of a file, up to the first that is torn, damaged or not an
// Event. The records are views of `file`.
std::vector<EventRecord> whole_records(std::string_view file);

// The scalars of a line of metrics.jsonl. A number keeps its name. A list with one number per
// member becomes NAME/member_0, NAME/member_1, ... (from the line's `first_member` on, else from
// 0), and NAME/mean over the numbers that are not null. Times of ranks become
// rank_seconds/compute/rank_0 and so on. Scores of an evaluation get their split's name:
// valid/member_0, valid/mean, valid/ensemble. Null (not finite) values, `step`, `rows` and
// `first_member` are left out. A line of kind "start" has no scalars.
std::vector<Scalar> scalars_of(const nlohmann::json& record);

// The record of a line: the settings of a line of kind "start", else the scalars of the line.
std::string event_record(double wall_time, const nlohmann::json& record);

// Appends the scalars or settings of a line of metrics to an event file for TensorBoard, which is
// created if needed. If the process is killed meanwhile, the file ends with at most one torn
// record, which readers ignore. Throws IoError.
void append_events(const std::filesystem::path& file, const nlohmann::json& record);

// Drops the records of steps after `step`, and a torn record at the end. A resumed run then
// continues the file. Does nothing without a file. Throws IoError.
void rewind_events(const std::filesystem::path& file, std::int64_t step);

}  // namespace tpudist
