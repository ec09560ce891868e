#include "results/records/tensorboard_file.hpp"

#include <fmt/format.h>

#include <bit>
#include <boost/crc.hpp>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "core/config/yaml_scalar.hpp"
#include "core/file_system.hpp"

namespace tpudist {
namespace {

static_assert(std::endian::native == std::endian::little);

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

// An Event with its time and step; the caller adds what happened.
class Event {
 public:
  Event(double wall_time, std::int64_t step) {
    fields_.add_double(1, wall_time);
    if (step != 0) fields_.add_int64(2, step);  // a missing field means 0
  }
  protozero::pbf_writer& fields() { return fields_; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  protozero::pbf_writer fields_{bytes_};
};

std::string framed(std::string_view event) {
  std::string record;
  append_fixed(record, static_cast<std::uint64_t>(event.size()));
  append_fixed(record, masked_crc32c(bytes_of(record)));
  record += event;
  append_fixed(record, masked_crc32c(bytes_of(event)));
  return record;
}

// The step of an Event, 0 if it has none; nothing if the bytes are not a message.
std::optional<std::int64_t> step_of(std::string_view event) {
  std::int64_t step = 0;
  try {
    protozero::pbf_reader fields(event.data(), event.size());
    while (fields.next()) {
      if (fields.tag_and_type() == protozero::tag_and_type(2, protozero::pbf_wire_type::varint)) {
        step = fields.get_int64();
      } else {
        fields.skip();
      }
    }
  } catch (const protozero::exception&) {
    return std::nullopt;
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
  boost::crc_optimal<32, 0x1edc6f41, 0xffffffff, 0xffffffff, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

std::string version_record(double wall_time) {
  Event event(wall_time, 0);
  event.fields().add_string(3, "brain.Event:2");
  return framed(event.bytes());
}

std::string scalar_record(double wall_time, std::int64_t step, std::span<const Scalar> scalars) {
  Event event(wall_time, step);
  {
    protozero::pbf_writer summary(event.fields(), 5);
    for (const Scalar& scalar : scalars) {
      protozero::pbf_writer value(summary, 1);
      value.add_string(1, scalar.tag);
      value.add_float(2, static_cast<float>(scalar.value));
    }
  }
  return framed(event.bytes());
}

std::string settings_record(double wall_time, std::int64_t step, const Settings& settings) {
  std::string session;
  protozero::pbf_writer session_fields(session);
  for (const auto& [key, text] : settings) {
    protozero::pbf_writer entry(session_fields, 1);
    entry.add_string(1, key);
    protozero::pbf_writer value(entry, 2);
    const auto number = parse_number(text);
    if (text == "true" || text == "false") {
      value.add_bool(4, text == "true");
    } else if (!number.error) {
      value.add_double(2, number.value);
    } else {
      value.add_string(3, text);
    }
  }
  std::string content;
  protozero::pbf_writer(content).add_message(3, session);
  Event event(wall_time, step);
  {
    protozero::pbf_writer summary(event.fields(), 5);
    protozero::pbf_writer value(summary, 1);
    value.add_string(1, "_hparams_/session_start_info");
    protozero::pbf_writer metadata(value, 9);
    protozero::pbf_writer plugin(metadata, 1);
    plugin.add_string(1, "hparams");
    plugin.add_bytes(2, content);
  }
  return framed(event.bytes());
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
