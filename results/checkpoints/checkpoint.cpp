#include "results/checkpoints/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"
#include "data/hdf5/hdf5_dataset.hpp"
#include "data/hdf5/sealed_file.hpp"

namespace tpudist {
namespace {

constexpr std::string_view kFormat = "tpudist-checkpoint";
constexpr std::int64_t kVersion = 1;
constexpr const char* kSegmentScores = "segment_scores";
constexpr std::int64_t kLossNumbers = 30;  // of a member
constexpr std::pair<const char*, std::optional<std::uint64_t> CheckpointSummary::*> kHashes[] = {
    {"fold_hash", &CheckpointSummary::fold_hash},
    {"segment_hash", &CheckpointSummary::segment_hash},
    {"metis_hash", &CheckpointSummary::metis_hash},
    {"init_hash", &CheckpointSummary::init_hash}};

template <typename List>
constexpr bool kOfParameters = std::is_same_v<std::remove_cvref_t<List>, std::vector<float>>;

// Whether every list has its length. The lists of one ListKept are all filled or all empty.
bool fits(const Checkpoint& checkpoint, const ParameterTable& table) {
  const auto members = static_cast<std::size_t>(checkpoint.members);
  const std::size_t floats = members * static_cast<std::size_t>(table.length());
  bool fits = checkpoint.members >= 1 && checkpoint.losses.size() == members * kLossNumbers;
  std::array<std::optional<bool>, 3> kept = {true};
  visit_lists(
      [&](const char*, ListKept when, const auto& list) {
        std::optional<bool>& there = kept[static_cast<std::size_t>(when)];
        if (!there) there = !list.empty();
        const std::size_t wanted = kOfParameters<decltype(list)> ? floats : members;
        fits &= list.size() == (*there ? wanted : 0);
      },
      checkpoint);
  return fits;
}

std::size_t list_bytes(const Checkpoint& checkpoint) {
  std::size_t bytes = checkpoint.segment_scores.size() * sizeof(float);
  visit_lists(
      [&](const char*, ListKept, const auto& list) { bytes += list.size() * sizeof list[0]; },
      checkpoint);
  return bytes;
}

std::vector<std::int64_t> stored_shape(const ParameterEntry& entry, int members) {
  std::vector<std::int64_t> shape{members};
  shape.insert(shape.end(), entry.shape.begin(), entry.shape.end());
  return shape;
}

// The offset of an entry of a member in a list of floats [M, P].
template <typename Floats>
auto part_of(Floats& flat, const ParameterTable& table, const ParameterEntry& entry, int member) {
  return std::span(flat).subspan(static_cast<std::size_t>(member * table.length() + entry.offset),
                                 static_cast<std::size_t>(entry.size()));
}

// The group of this path. Creates the group and its parents if they do not exist.
Hdf5Id made_group(const Hdf5Id& file, const std::string& path, std::string_view where) {
  for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (!has_link(file, part)) create_group(file, part, where);
    if (end == std::string::npos) return open_group(file, path, where);
  }
}

void write_lists(const Hdf5Id& file, const Checkpoint& checkpoint, const ParameterTable& table,
                 const std::string& where) {
  const int members = checkpoint.members;
  visit_lists(
      [&](const std::string& path, ListKept, const auto& list) {
        if (list.empty()) return;
        if constexpr (kOfParameters<decltype(list)>) {
          const Hdf5Id group = made_group(file, path, where);
          for (const ParameterEntry& entry : table.entries()) {
            auto dataset =
                Hdf5Dataset::create(group, entry.name, ElementType::f32,
                                    stored_shape(entry, members), where + ":/" + path, kPlain);
            for (int m = 0; m < members; ++m) dataset.write(m, part_of(list, table, entry, m));
          }
        } else {
          const std::size_t slash = path.rfind('/');
          write_plain(made_group(file, path.substr(0, slash), where), path.substr(slash + 1),
                      std::span(list), {members}, where + ":/" + path.substr(0, slash));
        }
      },
      checkpoint);
}

[[noreturn]] void refuse(std::string_view where, std::string_view what) {
  throw DataError(fmt::format("{}: {}", where, what));
}

// Names the first parameter that only the file or only the table has.
void check_names(const std::vector<std::string>& names, const ParameterTable& table,
                 std::string_view where) {
  const auto& entries = table.entries();
  for (const std::string& name : names) {
    if (std::ranges::find(entries, name, &ParameterEntry::name) == entries.end())
      refuse(where, "the network has no parameter " + name + "; was another one trained?");
  }
  for (const ParameterEntry& entry : entries) {
    if (std::ranges::find(names, entry.name) == names.end())
      refuse(where, "there is no " + entry.name + "; was another network trained?");
  }
}

void read_lists(const Hdf5Id& file, Checkpoint& checkpoint, const ParameterTable& table,
                const std::string& where) {
  const int members = checkpoint.members;
  visit_lists(
      [&](const std::string& path, ListKept when, auto& list) {
        if (when != ListKept::always && !has_link(file, path)) return;
        if constexpr (kOfParameters<decltype(list)>) {
          const Hdf5Id group = open_group(file, path, where);
          check_names(link_names(group, where), table, where);
          list.resize(static_cast<std::size_t>(table.length() * members));
          for (const ParameterEntry& entry : table.entries()) {
            const auto dataset = Hdf5Dataset::open(group, entry.name, where + ":/" + path);
            const auto shape = stored_shape(entry, members);
            if (dataset.type() != ElementType::f32 || dataset.shape() != shape) {
              refuse(dataset.where(),
                     fmt::format("is {} [{}], not f32 [{}]; was another network trained?",
                                 element_name(dataset.type()), fmt::join(dataset.shape(), ", "),
                                 fmt::join(shape, ", ")));
            }
            for (int m = 0; m < members; ++m) dataset.read(m, 1, part_of(list, table, entry, m));
          }
        } else {
          using Value = std::remove_cvref_t<decltype(list[0])>;
          list = read_array<Value>(file, path, {members}, where + ":");
        }
      },
      checkpoint);
}

// The number of members in the file, checked against the file's size: a damaged number must not
// cause a huge allocation.
int read_members(const Hdf5Id& file, const std::string& where, std::size_t file_bytes,
                 const ParameterTable& table) {
  const std::int64_t members = read_integer_attribute(file, "members", where);
  const auto floats = static_cast<std::int64_t>(file_bytes / sizeof(float));
  if (members < 1 || members > floats / std::max<std::int64_t>(1, table.parameters())) {
    refuse(where, fmt::format("{} members of {} parameters do not fit a file of its size; was "
                              "another network trained?",
                              members, table.parameters()));
  }
  return static_cast<int>(members);
}

// Checked to be plausible, as read_members.
std::vector<float> read_scores(const Hdf5Id& file, int members, const std::string& where,
                               std::size_t file_bytes) {
  const auto dataset = Hdf5Dataset::open(file, kSegmentScores, where + ":");
  const std::vector<std::int64_t>& shape = dataset.shape();
  const auto floats = static_cast<std::int64_t>(file_bytes / sizeof(float));
  if (dataset.type() != ElementType::f32 || shape.size() != 2 || shape[0] != members ||
      shape[1] < 1 || shape[1] > floats / members) {
    refuse(dataset.where(),
           fmt::format("is {} [{}], not f32 of {} members", element_name(dataset.type()),
                       fmt::join(shape, ", "), members));
  }
  return read_array<float>(file, kSegmentScores, shape, where + ":");
}

CheckpointSummary read_summary(const Hdf5Id& file, const std::string& where) {
  if (read_text_attribute(file, "format", where) != kFormat)
    refuse(where, "not a checkpoint of tpudist");
  const std::int64_t version = read_integer_attribute(file, "version", where);
  if (version < 1 || version > kVersion) {
    refuse(where, fmt::format("has version {}, this program reads up to {}; use a newer tpudist",
                              version, kVersion));
  }
  CheckpointSummary summary;
  summary.step = read_integer_attribute(file, "step", where);
  summary.config_hash = read_hash_attribute(file, "config_hash", where);
  summary.selection_hash = read_hash_attribute(file, "selection_hash", where);
  summary.config = read_text_attribute(file, "config", where);
  summary.changed_keys = read_text_attribute(file, "changed_keys", where);
  for (const auto& [name, hash] : kHashes)
    if (has_attribute(file, name, where)) summary.*hash = read_hash_attribute(file, name, where);
  return summary;
}

}  // namespace

std::vector<ConfigEntry> CheckpointSummary::entries() const {
  std::vector<ConfigEntry> entries = read_resolved_entries(
      config, fmt::format("the configuration in the checkpoint of step {}", step));
  const std::vector<std::string> changed = split(changed_keys, '\n');
  for (ConfigEntry& entry : entries) {
    entry.is_default = std::ranges::find(changed, entry.key) == changed.end();
  }
  return entries;
}

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                     const ParameterTable& table, FileSystem& files) {
  if (!fits(checkpoint, table)) {
    throw Error(ErrorKind::failed, fmt::format("checkpoint: sizes do not fit {} members of {} "
                                               "parameters",
                                               checkpoint.members, table.length()));
  }
  const std::string where = path.string();
  std::vector<std::byte> image;
  {
    const Hdf5Lock lock;
    const Hdf5Id file = create_hdf5_in_memory(where, list_bytes(checkpoint));
    write_attribute(file, "format", kFormat);
    write_attribute(file, "version", kVersion);
    write_attribute(file, "step", checkpoint.step);
    write_attribute(file, "config_hash", to_hex(checkpoint.config_hash));
    write_attribute(file, "selection_hash", to_hex(checkpoint.selection_hash));
    write_attribute(file, "config", checkpoint.config);
    write_attribute(file, "changed_keys", checkpoint.changed_keys);
    for (const auto& [name, hash] : kHashes)
      if (checkpoint.*hash) write_attribute(file, name, to_hex(*(checkpoint.*hash)));
    write_attribute(file, "members", static_cast<std::int64_t>(checkpoint.members));
    write_lists(file, checkpoint, table, where);
    write_plain(open_group(file, "members", where), "losses", std::span(checkpoint.losses),
                {checkpoint.members, kLossNumbers}, where + ":/members");
    if (!checkpoint.segment_scores.empty())
      write_plain(file, kSegmentScores, std::span(checkpoint.segment_scores),
                  {checkpoint.members, std::ssize(checkpoint.segment_scores) / checkpoint.members},
                  where);
    const Hdf5Id numbers = create_group(file, "numbers", where);
    for (const auto& [name, value] : checkpoint.numbers)
      write_number_attribute(numbers, name, value);
    image = hdf5_image(file, kSealBytes, where);
  }
  write_sealed_file(path, image, files);
}

CheckpointFile::CheckpointFile(std::filesystem::path path)
    : CheckpointFile(path, read_sealed_file(path)) {}

CheckpointFile::CheckpointFile(std::filesystem::path path, std::vector<std::byte> bytes)
    : path_(std::move(path)), bytes_(std::move(bytes)) {
  const Hdf5Lock lock;
  summary_ = read_summary(open_hdf5_in_memory(path_.string(), bytes_), path_.string());
}

Checkpoint CheckpointFile::load(const ParameterTable& table, bool segment_scores) const {
  const Hdf5Lock lock;
  const std::string where = path_.string();
  const Hdf5Id file = open_hdf5_in_memory(where, bytes_);
  Checkpoint checkpoint;
  static_cast<CheckpointSummary&>(checkpoint) = summary_;
  const int members = checkpoint.members = read_members(file, where, bytes_.size(), table);
  read_lists(file, checkpoint, table, where);
  checkpoint.losses =
      read_array<double>(file, "members/losses", {members, kLossNumbers}, where + ":");
  if (segment_scores && has_link(file, kSegmentScores))
    checkpoint.segment_scores = read_scores(file, members, where, bytes_.size());
  if (!fits(checkpoint, table)) refuse(where, "lacks lists that belong together");
  checkpoint.numbers = read_number_attributes(open_group(file, "numbers", where), where);
  return checkpoint;
}

ParameterTable CheckpointFile::parameters() const {
  const Hdf5Lock lock;
  const std::string where = path_.string() + ":/parameters";
  const Hdf5Id file = open_hdf5_in_memory(path_.string(), bytes_);
  const Hdf5Id group = open_group(file, "parameters", path_.string());
  ParameterTable table;
  for (const std::string& name : link_names(group, path_.string())) {
    const auto dataset = Hdf5Dataset::open(group, name, where);
    if (std::ranges::find(dataset.shape(), 0) != dataset.shape().end())
      refuse(dataset.where(), "has no elements");
    table.add(name, {dataset.shape().begin() + 1, dataset.shape().end()});
  }
  return table;
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
