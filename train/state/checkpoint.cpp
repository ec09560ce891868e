#include "train/state/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"
#include "data/hdf5/sealed_file.hpp"
#include "train/state/checkpoint_file.hpp"

namespace tpudist {
namespace {

constexpr std::string_view kFormat = "tpudist-checkpoint";
constexpr std::int64_t kVersion = 1;

bool fits(const SavedWeights& weights, std::size_t members, std::size_t floats) {
  return weights.parameters.size() == floats && weights.first_moment.size() == floats &&
         weights.second_moment.size() == floats && weights.optimizer_steps.size() == members &&
         weights.average.size() == (weights.average_points.empty() ? 0 : floats) &&
         (weights.average_points.empty() || weights.average_points.size() == members);
}

void check_sizes(const Checkpoint& checkpoint, const ParameterTable& table) {
  const auto members = static_cast<std::size_t>(checkpoint.members);
  const std::size_t floats = members * static_cast<std::size_t>(table.length());
  if (checkpoint.members < 1 || !fits(checkpoint, members, floats) ||
      (checkpoint.roll_back && !fits(*checkpoint.roll_back, members, floats)) ||
      checkpoint.best_score.size() != members || checkpoint.best_step.size() != members ||
      checkpoint.failed.size() != members ||
      (!checkpoint.stopped_at.empty() && checkpoint.stopped_at.size() != members) ||
      checkpoint.stop_best.size() != checkpoint.stopped_at.size() ||
      checkpoint.stop_waited.size() != checkpoint.stopped_at.size()) {
    throw Error(ErrorKind::failed, fmt::format("checkpoint: sizes do not fit {} members of {} "
                                               "parameters",
                                               members, table.length()));
  }
}

std::size_t bytes_of(const SavedWeights& weights) {
  return sizeof(float) * (weights.parameters.size() + weights.first_moment.size() +
                          weights.second_moment.size() + weights.average.size());
}

void write_roll_back(CheckpointWriter& writer, const SavedWeights& weights, int members,
                     const ParameterTable& table) {
  const Hdf5Id group = writer.group(writer.file(), "roll_back");
  writer.write_flat(writer.group(group, "parameters"), table, weights.parameters, members);
  writer.write_flat(writer.group(group, "first"), table, weights.first_moment, members);
  writer.write_flat(writer.group(group, "second"), table, weights.second_moment, members);
  writer.write_values(group, "optimizer_steps", weights.optimizer_steps);
  if (weights.average_points.empty()) return;
  writer.write_flat(writer.group(group, "average"), table, weights.average, members);
  writer.write_values(group, "average_points", weights.average_points);
}

SavedWeights read_roll_back(const CheckpointReader& reader, int members,
                            const ParameterTable& table) {
  const Hdf5Id group = reader.group(reader.file(), "roll_back");
  SavedWeights weights;
  weights.parameters = reader.flat(reader.group(group, "parameters"), table, members);
  weights.first_moment = reader.flat(reader.group(group, "first"), table, members);
  weights.second_moment = reader.flat(reader.group(group, "second"), table, members);
  weights.optimizer_steps = reader.values<std::int64_t>(group, "optimizer_steps", members);
  if (reader.holds(group, "average_points")) {
    weights.average = reader.flat(reader.group(group, "average"), table, members);
    weights.average_points = reader.values<std::int64_t>(group, "average_points", members);
  }
  return weights;
}

// The number of members in the file, checked to be plausible: allocations are bounded by the file's
// size.
int read_members(const CheckpointReader& reader, const std::filesystem::path& path,
                 const ParameterTable& table) {
  const std::int64_t members = reader.integer("members");
  const auto floats = static_cast<std::int64_t>(std::filesystem::file_size(path) / sizeof(float));
  if (members < 1 || members > floats / std::max<std::int64_t>(1, table.parameters())) {
    reader.refuse(
        fmt::format("{} members of {} parameters do not fit a file of its size; was "
                    "another network trained?",
                    members, table.parameters()));
  }
  return static_cast<int>(members);
}

CheckpointSummary read_summary(const CheckpointReader& reader) {
  if (reader.text("format") != kFormat) reader.refuse("not a checkpoint of tpudist");
  if (const std::int64_t version = reader.integer("version"); version < 1 || version > kVersion) {
    reader.refuse(fmt::format("has version {}, this program reads up to {}; use a newer tpudist",
                              version, kVersion));
  }
  CheckpointSummary summary;
  summary.step = reader.integer("step");
  summary.config_hash = reader.hash("config_hash");
  summary.selection_hash = reader.hash("selection_hash");
  summary.config = reader.text("config");
  if (reader.has("changed_keys")) summary.changed_keys = reader.text("changed_keys");
  if (reader.has("fold_hash")) summary.fold_hash = reader.hash("fold_hash");
  return summary;
}

}  // namespace

std::vector<ConfigEntry> CheckpointSummary::entries() const {
  std::vector<ConfigEntry> entries = read_resolved_entries(
      config, fmt::format("the configuration in the checkpoint of step {}", step));
  if (!changed_keys) return entries;
  const std::vector<std::string> changed = split(*changed_keys, '\n');
  for (ConfigEntry& entry : entries) {
    entry.is_default = std::ranges::find(changed, entry.key) == changed.end();
  }
  return entries;
}

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                     const ParameterTable& table, FileSystem& files) {
  check_sizes(checkpoint, table);
  std::vector<std::byte> image;
  {
    const Hdf5Lock lock;
    CheckpointWriter writer(
        path.string(),
        bytes_of(checkpoint) + (checkpoint.roll_back ? bytes_of(*checkpoint.roll_back) : 0));
    write_attribute(writer.file(), "format", kFormat);
    write_attribute(writer.file(), "version", kVersion);
    write_attribute(writer.file(), "step", checkpoint.step);
    write_attribute(writer.file(), "config_hash", to_hex(checkpoint.config_hash));
    write_attribute(writer.file(), "selection_hash", to_hex(checkpoint.selection_hash));
    write_attribute(writer.file(), "config", checkpoint.config);
    if (checkpoint.changed_keys) {
      write_attribute(writer.file(), "changed_keys", *checkpoint.changed_keys);
    }
    if (checkpoint.fold_hash) {
      write_attribute(writer.file(), "fold_hash", to_hex(*checkpoint.fold_hash));
    }
    write_attribute(writer.file(), "members", static_cast<std::int64_t>(checkpoint.members));

    writer.write_flat(writer.group(writer.file(), "parameters"), table, checkpoint.parameters,
                      checkpoint.members);
    const Hdf5Id optimizer = writer.group(writer.file(), "optimizer");
    writer.write_flat(writer.group(optimizer, "first"), table, checkpoint.first_moment,
                      checkpoint.members);
    writer.write_flat(writer.group(optimizer, "second"), table, checkpoint.second_moment,
                      checkpoint.members);

    const Hdf5Id members = writer.group(writer.file(), "members");
    writer.write_values(members, "optimizer_steps", checkpoint.optimizer_steps);
    writer.write_values(members, "best_score", checkpoint.best_score);
    writer.write_values(members, "best_step", checkpoint.best_step);
    writer.write_values(members, "failed", checkpoint.failed);
    if (!checkpoint.average_points.empty()) {
      writer.write_flat(writer.group(writer.file(), "average"), table, checkpoint.average,
                        checkpoint.members);
      writer.write_values(members, "average_points", checkpoint.average_points);
    }

    if (!checkpoint.stopped_at.empty()) {
      writer.write_values(members, "stop_best", checkpoint.stop_best);
      writer.write_values(members, "stop_waited", checkpoint.stop_waited);
      writer.write_values(members, "stopped_at", checkpoint.stopped_at);
    }

    if (checkpoint.roll_back)
      write_roll_back(writer, *checkpoint.roll_back, checkpoint.members, table);
    const Hdf5Id numbers = writer.group(writer.file(), "numbers");
    for (const auto& [name, value] : checkpoint.numbers)
      write_number_attribute(numbers, name, value);
    image = writer.image(kSealBytes);
  }
  write_sealed_file(path, image, files);
}

Checkpoint load_checkpoint(const std::filesystem::path& path, const ParameterTable& table) {
  check_sealed_file(path);
  const Hdf5Lock lock;
  const CheckpointReader reader(path);
  Checkpoint checkpoint;
  static_cast<CheckpointSummary&>(checkpoint) = read_summary(reader);
  const int members = checkpoint.members = read_members(reader, path, table);

  const Hdf5Id parameters = reader.group(reader.file(), "parameters");
  checkpoint.parameters = reader.flat(parameters, table, members);
  const Hdf5Id optimizer = reader.group(reader.file(), "optimizer");
  checkpoint.first_moment = reader.flat(reader.group(optimizer, "first"), table, members);
  checkpoint.second_moment = reader.flat(reader.group(optimizer, "second"), table, members);

  const Hdf5Id of_members = reader.group(reader.file(), "members");
  checkpoint.optimizer_steps = reader.values<std::int64_t>(of_members, "optimizer_steps", members);
  checkpoint.best_score = reader.values<double>(of_members, "best_score", members);
  checkpoint.best_step = reader.values<std::int64_t>(of_members, "best_step", members);
  checkpoint.failed = reader.values<int>(of_members, "failed", members);
  if (reader.holds(of_members, "average_points")) {
    checkpoint.average = reader.flat(reader.group(reader.file(), "average"), table, members);
    checkpoint.average_points = reader.values<std::int64_t>(of_members, "average_points", members);
  }
  if (reader.holds(of_members, "stopped_at")) {
    checkpoint.stop_best = reader.values<double>(of_members, "stop_best", members);
    checkpoint.stop_waited = reader.values<std::int64_t>(of_members, "stop_waited", members);
    checkpoint.stopped_at = reader.values<std::int64_t>(of_members, "stopped_at", members);
  }
  if (reader.holds(reader.file(), "roll_back"))
    checkpoint.roll_back = read_roll_back(reader, members, table);
  checkpoint.numbers = reader.numbers(reader.group(reader.file(), "numbers"));
  return checkpoint;
}

CheckpointSummary read_checkpoint_summary(const std::filesystem::path& path) {
  check_sealed_file(path);
  const Hdf5Lock lock;
  return read_summary(CheckpointReader(path));
}

std::uint64_t parameter_hash(std::span<const float> flat, int members,
                             const ParameterTable& table) {
  std::vector<const ParameterEntry*> entries;
  for (const ParameterEntry& entry : table.entries()) entries.push_back(&entry);
  std::ranges::sort(entries, {}, &ParameterEntry::name);
  Hasher hasher;
  hasher.update(static_cast<std::int64_t>(members));
  for (const ParameterEntry* entry : entries) {
    hasher.update(std::string_view(entry->name));
    hasher.update(static_cast<std::uint64_t>(entry->shape.size()));
    hasher.update(std::span<const std::int64_t>(entry->shape));
    for (int member = 0; member < members; ++member) {
      hasher.update(flat.subspan(static_cast<std::size_t>(member * table.length() + entry->offset),
                                 static_cast<std::size_t>(entry->size())));
    }
  }
  return hasher.digest();
}

}  // namespace tpudist
