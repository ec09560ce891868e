#include "data/hlo/tuning_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/mapped_file.hpp"
#include "core/text.hpp"
#include "data/hlo/proto_reader.hpp"

namespace tpudist {
namespace {

using protozero::data_view;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

std::uint64_t integer_of(pbf_reader& field) {
  if (field.has_wire_type(pbf_wire_type::varint)) return field.get_uint64();
  field.skip();
  return 0;
}

// The first field of this number that is a message.
std::optional<data_view> first_message(data_view bytes, protozero::pbf_tag_type tag) {
  pbf_reader message{bytes};
  while (message.next()) {
    if (const auto found = message_of(message, tag)) return found;
  }
  return std::nullopt;
}

// ConfigProfile.
struct RunMessage {
  std::optional<data_view> op_config, module_config, profile;
  bool error = false, is_default = false;
};

RunMessage read_run(data_view bytes) {
  RunMessage run;
  pbf_reader field{bytes};
  while (field.next()) {
    const auto tag = field.tag();
    if (tag == 3 || tag == 5)
      (tag == 3 ? run.error : run.is_default) = integer_of(field) != 0;
    else if (tag == 1 || tag == 2 || tag == 4)
      (tag == 1 ? run.op_config : tag == 2 ? run.module_config : run.profile) = message_of(field);
    else
      field.skip();
  }
  return run;
}

// ExecutionProfile.compute_time_ns
std::int64_t nanoseconds_of(const std::optional<data_view>& profile) {
  std::int64_t time = 0;
  if (!profile) return time;
  pbf_reader field{*profile};
  while (field.next(4)) time = static_cast<std::int64_t>(integer_of(field));
  return time;
}

// ModuleTuningData.
struct TunedMessage {
  std::optional<data_view> module;
  std::vector<RunMessage> runs;
  std::vector<std::int64_t> config_nodes;
};

TunedMessage read_tuned(data_view bytes) {
  TunedMessage tuned;
  pbf_reader field{bytes};
  while (field.next()) {
    if (field.tag() == 1) {
      tuned.module = message_of(field);
    } else if (field.tag() == 3) {
      if (const auto run = message_of(field)) tuned.runs.push_back(read_run(*run));
    } else if (field.tag() == 4) {
      append_integers(field, tuned.config_nodes);
    } else {
      field.skip();
    }
  }
  return tuned;
}

bool has_tile_size(const RunMessage& run) {
  return run.op_config && first_message(*run.op_config, 1);
}

std::span<const char> span_of(data_view bytes) {
  return {bytes.data(), bytes.size()};
}

// The runs of a module that the data set keeps, in the order of the file. Empty if it drops the
// module.
std::vector<TuningRun> kept_runs(const TunedMessage& tuned, bool tiles) {
  if (tiles && (tuned.runs.size() < 2 || !std::ranges::all_of(tuned.runs, has_tile_size)))
    return {};
  std::vector<TuningRun> kept;
  bool has_default = false;
  for (std::size_t i = 0; i < tuned.runs.size(); ++i) {
    const RunMessage& run = tuned.runs[i];
    const std::int64_t time = nanoseconds_of(run.profile);
    if (run.error || (tiles ? time <= 1 : !run.profile || !run.module_config)) continue;
    const auto config = first_message(tiles ? *run.op_config : *run.module_config, 1);
    kept.push_back({static_cast<std::int64_t>(i), time, run.is_default,
                    config ? span_of(*config) : std::span<const char>()});
    has_default = has_default || run.is_default;
  }
  if (!has_default) kept.clear();
  return kept;
}

// Whether a message that begins with a module is a ModuleTuningData: no HloProto has such fields.
bool is_tuned(data_view bytes) {
  pbf_reader field{bytes};
  while (field.next()) {
    if (field.tag() == 4 || (field.tag() == 2 && field.has_wire_type(pbf_wire_type::varint)))
      return true;
    field.skip();
  }
  return std::ranges::any_of(read_tuned(bytes).runs, has_tile_size);
}

// A kind and, for a file with one module, the message with the module.
using Known = std::pair<HloFile::Kind, data_view>;

std::optional<data_view> module_in(data_view bytes) {
  try {
    const auto first = first_message(bytes, 1);
    if (first && is_module(*first)) return first;
  } catch (const protozero::exception&) {  // no proto (such as a name), or damaged
  }
  return std::nullopt;
}

// Looks at outer messages first: buffers of an HloProto look like a module, too.
std::optional<Known> known_proto(data_view bytes) {
  const auto first = first_message(bytes, 1);
  if (const auto inner = first ? module_in(*first) : std::nullopt)
    return is_tuned(*first) ? Known{HloFile::Kind::tuned_modules, bytes}
                            : Known{HloFile::Kind::snapshot, *inner};
  if (const auto own = module_in(bytes))
    return is_tuned(bytes) ? Known{HloFile::Kind::tuned_module, bytes}
                           : Known{HloFile::Kind::hlo, *own};
  if (is_module(bytes)) return Known{HloFile::Kind::module, bytes};
  return std::nullopt;
}

// An HloUnoptimizedSnapshot, with its length before it and the inputs after it.
std::optional<Known> known_after_length(data_view bytes) {
  const char *begin = bytes.data(), *const end = begin + bytes.size();
  const std::uint64_t length = protozero::decode_varint(&begin, end);
  if (length > static_cast<std::uint64_t>(end - begin)) return std::nullopt;
  const auto module = module_in({begin, static_cast<std::size_t>(length)});
  return module ? std::optional(Known{HloFile::Kind::snapshot, *module}) : std::nullopt;
}

// How other files begin.
constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
    {"\x1f\x8b", "compressed by gzip: unpack it (gunzip)"},
    {"\x28\xb5\x2f\xfd", "compressed by zstd: unpack it (unzstd)"},
    {"PK\3\4",
     "a zip file: of a raw NPZ, convert it first (`tpudist convert`) and inspect the shards, or "
     "rank it without --configs"},
    {"\x89HDF", "HDF5: of shards, give the folder with all of them"},
    {"\xff\xfe", "text in UTF-16: save it as UTF-8"},
    {"\xfe\xff", "text in UTF-16: save it as UTF-8"},
    {"\xef\xbb\xbf", "text behind a byte order mark: save it without the mark"},
    {"module ", "MLIR: dump HLO (--xla_dump_hlo_as_proto)"},
    {"ML\xefR", "MLIR: dump HLO (--xla_dump_hlo_as_proto)"},
    {"HloModule ",
     "HLO text: dump the proto (--xla_dump_hlo_as_proto), or make it from the text (`python -m "
     "tpudist.hlo TEXT PROTO`)"},
    {"hlo_module {", "a proto as text: dump the proto (--xla_dump_hlo_as_proto)"}};

Known known_content(data_view bytes, const std::string& where) {
  const std::string_view text(bytes.data(), bytes.size());
  for (const auto& [begin, what] : kOthers)
    if (text.starts_with(begin)) throw DataError(fmt::format("{}: is {}", where, what));
  for (const auto read : {known_proto, known_after_length}) {
    try {
      if (const auto found = read(bytes)) return *found;
    } catch (const protozero::exception&) {  // no proto, or a damaged one
    }
  }
  throw DataError(fmt::format(
      "{}: is damaged, or none of HloProto, HloModuleProto, HloSnapshot, ModuleTuningData and "
      "TuningData",
      where));
}

}  // namespace

std::string_view kind_name(HloFile::Kind kind) {
  // In the order of HloFile::Kind.
  constexpr std::string_view kNames[] = {"HloModuleProto", "HloProto", "HloSnapshot",
                                         "ModuleTuningData", "TuningData"};
  return kNames[static_cast<std::size_t>(kind)];
}

struct HloFile::Impl {
  const std::string where;
  const MappedFile file;
  HloFile::Kind kind = HloFile::Kind::module;
  std::vector<data_view> modules;  // ModuleTuningData, or one HloModuleProto
  std::vector<int> numbers;        // their numbers in the file
  std::int64_t dropped = 0;

  bool has_tiles() const { return kind == HloFile::Kind::tuned_modules; }
  bool is_tuned() const { return kind == HloFile::Kind::tuned_module || has_tiles(); }

  // Returns what use() reads of the file.
  template <typename Use>
  auto read(const std::string& place, const Use& use) const {
    try {
      auto result = checked(place, use);
      file.require_unchanged();
      return result;
    } catch (const DataError&) {
      file.require_unchanged();
      throw;
    }
  }

  std::vector<data_view> find_modules() {
    const auto [own_kind, content] =
        known_content({file.bytes().data(), file.bytes().size()}, where);
    kind = own_kind;
    if (!has_tiles()) return {content};
    std::vector<data_view> found;
    pbf_reader field{content};
    for (int number = 0; field.next();) {
      const auto own = message_of(field, 1);
      if (!own) continue;
      if (kept_runs(read_tuned(*own), true).empty()) {
        ++dropped;
      } else {
        found.push_back(*own);
        numbers.push_back(number);
      }
      ++number;
    }
    return found;
  }

  // Members of type auto must be defined before.
  explicit Impl(const std::filesystem::path& path) : where(path.string()), file(path) {
    modules = read(where, [&] { return find_modules(); });
  }
};

HloFile::HloFile(const std::filesystem::path& path) : impl_(std::make_unique<const Impl>(path)) {}

HloFile::~HloFile() = default;
HloFile::HloFile(HloFile&&) noexcept = default;

HloFile::Kind HloFile::kind() const {
  return impl_->kind;
}
int HloFile::size() const {
  return static_cast<int>(impl_->modules.size());
}
std::int64_t HloFile::dropped_modules() const {
  return impl_->dropped;
}
void HloFile::require_unchanged() const {
  impl_->file.require_unchanged();
}
std::string HloFile::where(int index) const {
  if (!impl_->has_tiles()) return impl_->where;
  return fmt::format("{}: module {}", impl_->where, number(index));
}

std::string HloFile::name(int index) const {
  return impl_->read(where(index), [&] {
    const data_view bytes = impl_->modules.at(index);
    const auto module = impl_->is_tuned() ? first_message(bytes, 1) : bytes;
    const auto name = module ? first_message(*module, 1) : std::nullopt;
    return name ? printable(std::string(*name)) : std::string();
  });
}
int HloFile::number(int index) const {
  return impl_->has_tiles() ? impl_->numbers.at(index) : index;
}
std::vector<TuningRun> HloFile::runs(int index, std::int64_t* dropped) const {
  if (!impl_->is_tuned()) return {};
  return impl_->read(where(index), [&] {
    const TunedMessage tuned = read_tuned(impl_->modules.at(index));
    std::vector<TuningRun> kept = kept_runs(tuned, impl_->has_tiles());
    if (dropped) *dropped += static_cast<std::int64_t>(tuned.runs.size() - kept.size());
    return kept;
  });
}

TunedModule HloFile::module(int index) const {
  const data_view bytes = impl_->modules.at(index);
  return impl_->read(where(index), [&] {
    TunedModule result;
    if (!impl_->is_tuned()) {
      result.module = read_module(pbf_reader{bytes});
      return result;
    }
    TunedMessage tuned = read_tuned(bytes);
    if (!tuned.module) throw DataError(fmt::format("{}: has no module", where(index)));
    result.module = read_module(pbf_reader{*tuned.module});
    result.config_nodes = std::move(tuned.config_nodes);
    result.runs = kept_runs(tuned, impl_->has_tiles());
    result.tiles = impl_->has_tiles();
    return result;
  });
}

}  // namespace tpudist
