#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tpudist {

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

// The CRC as it is stored: rotated and shifted, so that a CRC over bytes that contain CRCs remains
// useful.
std::uint32_t masked_crc32c(std::span<const std::byte> bytes);

// A complete record.
struct EventRecord {
  std::string_view record;  // with its frame
  std::string_view event;
  std::int64_t step = 0;
};

// The complete records at the beginning of a file, up to the first that is torn, damaged or not an
// Event. They are views of `file`.
std::vector<EventRecord> whole_records(std::string_view file);

}  // namespace tpudist
