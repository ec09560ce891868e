#include "records/tensorboard_file.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/append_file.hpp"
#include "core/config/yaml_scalar.hpp"
#include "core/file_system.hpp"

namespace tpudist {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0u);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

static_assert(std::endian::native == std::endian::little);

// Wire types of Protocol Buffers.
enum Wire : std::uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr std::size_t kFrameBytes = 8 + 4, kTailBytes = 4;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

template <typename T>
void append_fixed(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T fixed_at(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_key(std::string& out, std::uint64_t field, Wire wire) {
  append_varint(out, field << 3 | wire);
}

void append_text(std::string& out, std::uint64_t field, std::string_view text) {
  append_key(out, field, kBytes);
  append_varint(out, text.size());
  out += text;
}

std::string event_head(double wall_time, std::int64_t step) {
  std::string event;
  append_key(event, 1, kFixed64);
  append_fixed(event, wall_time);
  if (step == 0) return event;  // a missing field means 0
  append_key(event, 2, kVarint);
  append_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

std::string framed(std::string_view event) {
  std::string record;
  append_fixed(record, static_cast<std::uint64_t>(event.size()));
  append_fixed(record, masked_crc32c(bytes_of(record)));
  record += event;
  append_fixed(record, masked_crc32c(bytes_of(event)));
  return record;
}

// Takes a varint from the front; nothing where it does not end.
std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// Skips the value of a field at the front. False if it is incomplete.
bool skip_field(std::string_view& bytes, std::uint64_t wire) {
  std::optional<std::uint64_t> size;
  switch (wire) {
    case kVarint:
      return take_varint(bytes).has_value();
    case kFixed64:
      size = 8;
      break;
    case kFixed32:
      size = 4;
      break;
    case kBytes:
      size = take_varint(bytes);
      break;
    default:
      return false;
  }
  if (!size || *size > bytes.size()) return false;
  bytes.remove_prefix(*size);
  return true;
}

// The step of an Event, 0 if it has none; nothing if the bytes are not a message.
std::optional<std::int64_t> step_of(std::string_view event) {
  std::int64_t step = 0;
  while (!event.empty()) {
    const auto key = take_varint(event);
    if (!key) return std::nullopt;
    if (*key == (2 << 3 | kVarint)) {
      const auto value = take_varint(event);
      if (!value) return std::nullopt;
      step = static_cast<std::int64_t>(*value);
    } else if (!skip_field(event, *key & 7)) {
      return std::nullopt;
    }
  }
  return step;
}

// The record at the front of `file`, if it is complete.
std::optional<EventRecord> first_record(std::string_view file) {
  if (file.size() < kFrameBytes + kTailBytes) return std::nullopt;
  const auto length = fixed_at<std::uint64_t>(file, 0);
  if (fixed_at<std::uint32_t>(file, 8) != masked_crc32c(bytes_of(file.substr(0, 8))) ||
      length > file.size() - kFrameBytes - kTailBytes) {
    return std::nullopt;
  }
  const std::string_view event = file.substr(kFrameBytes, length);
  if (fixed_at<std::uint32_t>(file, kFrameBytes + length) != masked_crc32c(bytes_of(event)))
    return std::nullopt;
  const auto step = step_of(event);
  if (!step) return std::nullopt;
  return EventRecord{file.substr(0, kFrameBytes + length + kTailBytes), event, *step};
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// `first`: the number of the first member in the list.
void add_members(const std::string& name, const nlohmann::json& list, std::size_t first,
                 std::vector<Scalar>& scalars) {
  double sum = 0, count = 0;
  for (std::size_t m = 0; m < list.size(); ++m) {
    if (!list[m].is_number()) continue;
    scalars.push_back({fmt::format("{}/member_{}", name, first + m), list[m].get<double>()});
    sum += list[m].get<double>();
    ++count;
  }
  if (count > 0) scalars.push_back({name + "/mean", sum / count});
}

// {"compute": [a number for each rank], ...}
void add_ranks(const std::string& name, const nlohmann::json& lists, std::vector<Scalar>& scalars) {
  for (const auto& [part, list] : lists.items()) {
    for (std::size_t r = 0; r < list.size(); ++r) {
      if (!list[r].is_number()) continue;
      scalars.push_back({fmt::format("{}/{}/rank_{}", name, part, r), list[r].get<double>()});
    }
  }
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (const std::byte byte : bytes)
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xffu];
  return ~crc;
}

std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

std::string version_record(double wall_time) {
  std::string event = event_head(wall_time, 0);
  append_text(event, 3, "brain.Event:2");
  return framed(event);
}

std::string scalar_record(double wall_time, std::int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    append_text(value, 1, scalar.tag);
    append_key(value, 2, kFixed32);
    append_fixed(value, static_cast<float>(scalar.value));
    append_text(summary, 1, value);
  }
  std::string event = event_head(wall_time, step);
  append_text(event, 5, summary);
  return framed(event);
}

std::string settings_record(double wall_time, std::int64_t step, const Settings& settings) {
  std::string session;
  for (const auto& [key, text] : settings) {
    std::string value;
    const auto number = parse_number(text);
    if (text == "true" || text == "false") {
      append_key(value, 4, kVarint);
      append_varint(value, text == "true" ? 1 : 0);
    } else if (!number.error) {
      append_key(value, 2, kFixed64);
      append_fixed(value, number.value);
    } else {
      append_text(value, 3, text);
    }
    std::string entry;
    append_text(entry, 1, key);
    append_text(entry, 2, value);
    append_text(session, 1, entry);
  }
  std::string content, plugin, metadata, value, summary;
  append_text(content, 3, session);
  append_text(plugin, 1, "hparams");
  append_text(plugin, 2, content);
  append_text(metadata, 1, plugin);
  append_text(value, 1, "_hparams_/session_start_info");
  append_text(value, 9, metadata);
  append_text(summary, 1, value);
  std::string event = event_head(wall_time, step);
  append_text(event, 5, summary);
  return framed(event);
}

std::vector<EventRecord> whole_records(std::string_view file) {
  std::vector<EventRecord> records;
  while (const auto record = first_record(file)) {
    records.push_back(*record);
    file.remove_prefix(record->record.size());
  }
  return records;
}

std::vector<Scalar> scalars_of(const nlohmann::json& record) {
  if (record.value("kind", "") == "start") return {};
  const bool scores = record.value("kind", "") == "evaluation";
  const std::string split = record.value("split", "valid");
  const auto first = record.value("first_member", std::size_t{0});
  std::vector<Scalar> scalars;
  for (const auto& [name, value] : record.items()) {
    if (name == "step" || name == "rows" || name == "first_member") continue;
    if (scores && name == "members") {
      add_members(split, value, first, scalars);
    } else if (name == "rank_seconds" && value.is_object()) {
      add_ranks(name, value, scalars);
    } else if (value.is_array()) {
      add_members(name, value, first, scalars);
    } else if (value.is_number()) {
      const std::string tag = scores && name == "ensemble" ? split + "/ensemble" : name;
      scalars.push_back({tag, value.get<double>()});
    }
  }
  return scalars;
}

std::string event_record(double wall_time, const nlohmann::json& record) {
  const auto step = record.value("step", std::int64_t{0});
  if (record.value("kind", "") != "start")
    return scalar_record(wall_time, step, scalars_of(record));
  Settings settings;
  for (const auto& [key, value] : record.at("settings").items())
    settings.emplace_back(key, value.get<std::string>());
  return settings_record(wall_time, step, settings);
}

void append_events(const std::filesystem::path& file, const nlohmann::json& record) {
  const double time = now();
  std::error_code error;
  std::string bytes = std::filesystem::exists(file, error) ? "" : version_record(time);
  bytes += event_record(time, record);
  append_to_file(file, bytes);
}

void rewind_events(const std::filesystem::path& file, std::int64_t step) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return;
  const std::string bytes = read_text_file(file);
  std::string kept;
  for (const EventRecord& record : whole_records(bytes)) {
    if (record.step <= step) kept += record.record;
  }
  if (kept.empty()) kept = version_record(now());
  write_file_atomically(file, kept);
}

}  // namespace tpudist
