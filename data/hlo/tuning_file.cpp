#include "data/hlo/tuning_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "data/hlo/hlo_features.hpp"
#include "data/hlo/proto_reader.hpp"
#include "data/npz/npz_writer.hpp"
#include "schema/tpugraphs.hpp"

namespace tpudist {
namespace {

using protozero::data_view;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

// Runs `read`, and turns what protozero throws for damaged bytes into a DataError.
template <typename Read>
auto checked(std::string_view where, const Read& read) {
  try {
    return read();
  } catch (const protozero::exception& error) {
    throw DataError(fmt::format("{}: the proto is damaged ({})", where, error.what()));
  }
}

// The value of a field that is a message, else nothing; the field is consumed.
std::optional<data_view> message_of(pbf_reader& field) {
  if (field.has_wire_type(pbf_wire_type::length_delimited)) return field.get_view();
  field.skip();
  return std::nullopt;
}
// The same, also nothing for a field of another number.
std::optional<data_view> message_of(pbf_reader& field, protozero::pbf_tag_type tag) {
  if (field.tag() == tag) return message_of(field);
  field.skip();
  return std::nullopt;
}

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
    switch (field.tag()) {
      case 1:
        run.op_config = message_of(field);
        break;
      case 2:
        run.module_config = message_of(field);
        break;
      case 3:
        run.error = integer_of(field) != 0;
        break;
      case 4:
        run.profile = message_of(field);
        break;
      case 5:
        run.is_default = integer_of(field) != 0;
        break;
      default:
        field.skip();
    }
  }
  return run;
}

// ExecutionProfile.compute_time_ns
std::int64_t nanoseconds_of(const std::optional<data_view>& profile) {
  std::int64_t time = 0;
  if (!profile) return time;
  pbf_reader field{*profile};
  while (field.next()) {
    if (field.tag() == 4) {
      time = static_cast<std::int64_t>(integer_of(field));
    } else {
      field.skip();
    }
  }
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

// The runs that the data set keeps of a module, in the order of the file. Empty where it drops the
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

std::optional<HloFileKind> kind_of(data_view bytes) {
  const auto first = first_message(bytes, 1);
  if (first && is_module(*first)) {
    pbf_reader field{bytes};
    while (field.next()) {
      const bool tuned =
          field.tag() == 4 || (field.tag() == 2 && field.has_wire_type(pbf_wire_type::varint));
      if (tuned) return HloFileKind::tuned_module;
      field.skip();
    }
    return HloFileKind::hlo;
  }
  if (is_module(bytes)) return HloFileKind::module;
  const auto inner = first ? first_message(*first, 1) : std::nullopt;
  if (inner && is_module(*inner)) return HloFileKind::tuned_modules;
  return std::nullopt;
}

HloFileKind known_kind(data_view bytes, const std::string& where) {
  std::optional<HloFileKind> kind;
  try {
    kind = kind_of(bytes);
  } catch (const protozero::exception&) {  // no proto, or a damaged one
  }
  if (kind) return *kind;
  throw DataError(fmt::format(
      "{}: is damaged, or none of HloProto, HloModuleProto, ModuleTuningData and TuningData",
      where));
}

void warn_of_unknown(const HloGraph& graph, const std::string& where) {
  if (!graph.unknown_opcodes.empty())
    spdlog::warn("{}: the features do not know the opcodes {}; they count as number 0", where,
                 fmt::join(graph.unknown_opcodes, ", "));
  if (!graph.unknown_element_types.empty())
    spdlog::warn("{}: the features do not know the element types (xla.PrimitiveType) {}", where,
                 fmt::join(graph.unknown_element_types, ", "));
}

constexpr int kTensors = 3, kDimensions = kLayoutConfigFeatures / kTensors;

}  // namespace

std::string_view kind_name(HloFileKind kind) {
  switch (kind) {
    case HloFileKind::module:
      return "HloModuleProto";
    case HloFileKind::hlo:
      return "HloProto";
    case HloFileKind::tuned_module:
      return "ModuleTuningData";
    default:
      return "TuningData";
  }
}

struct HloFile::Impl {
  std::string where;
  void* mapped = nullptr;
  std::size_t bytes = 0;
  HloFileKind kind = HloFileKind::module;
  std::vector<data_view> modules;  // ModuleTuningData, or the HloModuleProto
  std::vector<int> numbers;        // of these in the file
  std::int64_t dropped = 0;

  ~Impl() {
    if (mapped) ::munmap(mapped, bytes);
  }
  data_view view() const { return {static_cast<const char*>(mapped), bytes}; }
  bool is_tuned() const {
    return kind == HloFileKind::tuned_module || kind == HloFileKind::tuned_modules;
  }

  void map(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) throw IoError(fmt::format("cannot open {}: {}", where, std::strerror(errno)));
    struct stat status {};
    if (::fstat(file, &status) == 0 && status.st_size > 0 && S_ISREG(status.st_mode)) {
      bytes = static_cast<std::size_t>(status.st_size);
      mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    }
    const int problem = errno;
    ::close(file);
    if (mapped == MAP_FAILED) {
      mapped = nullptr;
      throw IoError(fmt::format("cannot read {}: {}", where, std::strerror(problem)));
    }
    if (!mapped) throw DataError(fmt::format("{}: is empty or no regular file", where));
  }

  void find_modules() {
    kind = known_kind(view(), where);
    if (kind == HloFileKind::module || kind == HloFileKind::tuned_module) {
      modules = {view()};
    } else if (kind == HloFileKind::hlo) {
      modules = {*first_message(view(), 1)};
    } else {
      pbf_reader field{view()};
      for (int number = 0; field.next();) {
        const auto own = message_of(field, 1);
        if (!own) continue;
        if (kept_runs(read_tuned(*own), true).empty()) {
          ++dropped;
        } else {
          modules.push_back(*own);
          numbers.push_back(number);
        }
        ++number;
      }
    }
  }
};

HloFile::HloFile(const std::filesystem::path& path) {
  auto impl = std::make_unique<Impl>();
  impl->where = path.string();
  impl->map(path);
  checked(impl->where, [&] { impl->find_modules(); });
  impl_ = std::move(impl);
}

HloFile::~HloFile() = default;
HloFile::HloFile(HloFile&&) noexcept = default;

HloFileKind HloFile::kind() const {
  return impl_->kind;
}
int HloFile::size() const {
  return static_cast<int>(impl_->modules.size());
}
std::int64_t HloFile::dropped_modules() const {
  return impl_->dropped;
}
std::string HloFile::where(int index) const {
  if (impl_->kind != HloFileKind::tuned_modules) return impl_->where;
  return fmt::format("{}: module {}", impl_->where,
                     impl_->numbers[static_cast<std::size_t>(index)]);
}

std::string HloFile::name(int index) const {
  return checked(where(index), [&] {
    const data_view bytes = impl_->modules.at(static_cast<std::size_t>(index));
    const auto module = impl_->is_tuned() ? first_message(bytes, 1) : bytes;
    const auto name = module ? first_message(*module, 1) : std::nullopt;
    return name ? std::string(*name) : std::string();
  });
}
int HloFile::number(int index) const {
  return impl_->kind == HloFileKind::tuned_modules
             ? impl_->numbers.at(static_cast<std::size_t>(index))
             : index;
}
std::int64_t HloFile::dropped_runs(int index) const {
  if (!impl_->is_tuned()) return 0;
  return checked(where(index), [&] {
    const TunedMessage tuned = read_tuned(impl_->modules.at(static_cast<std::size_t>(index)));
    return static_cast<std::int64_t>(
        tuned.runs.size() - kept_runs(tuned, impl_->kind == HloFileKind::tuned_modules).size());
  });
}

TunedModule HloFile::module(int index) const {
  const data_view bytes = impl_->modules.at(static_cast<std::size_t>(index));
  return checked(where(index), [&] {
    TunedModule result;
    if (!impl_->is_tuned()) {
      result.module = read_module(pbf_reader{bytes});
      return result;
    }
    TunedMessage tuned = read_tuned(bytes);
    if (!tuned.module) throw DataError(fmt::format("{}: has no module", where(index)));
    result.module = read_module(pbf_reader{*tuned.module});
    result.config_nodes = std::move(tuned.config_nodes);
    result.runs = kept_runs(tuned, impl_->kind == HloFileKind::tuned_modules);
    result.dropped_runs = static_cast<std::int64_t>(tuned.runs.size() - result.runs.size());
    result.tiles = impl_->kind == HloFileKind::tuned_modules;
    return result;
  });
}

void write_layout_config(std::span<const char> config, std::span<float> to,
                         std::string_view where) {
  std::ranges::fill(to, -1.0f);
  const std::size_t nodes = to.size() / kLayoutConfigFeatures;
  std::size_t node = 0;
  checked(where, [&] {
    pbf_reader field{config.data(), config.size()};
    while (field.next()) {
      const auto of_node = message_of(field, 1);
      if (!of_node) continue;
      int tensor = 0;
      pbf_reader part{*of_node};
      while (part.next()) {
        const auto of_tensor = message_of(part, 1);
        if (!of_tensor) continue;
        if (tensor == kTensors || node == nodes) {
          throw DataError(
              fmt::format("{}: the layouts of node {} are not those of one of {} nodes "
                          "with at most three tensors",
                          where, node, nodes));
        }
        std::vector<std::int64_t> dimensions;
        pbf_reader layout{*of_tensor};
        while (layout.next())
          layout.tag() == 1 ? append_integers(layout, dimensions) : layout.skip();
        const std::size_t begin =
            node * kLayoutConfigFeatures + static_cast<std::size_t>(tensor) * kDimensions;
        for (std::size_t d = 0; d < std::min<std::size_t>(dimensions.size(), kDimensions); ++d)
          to[begin + d] = static_cast<float>(dimensions[d]);
        ++tensor;
      }
      ++node;
    }
  });
  if (node != nodes)
    throw DataError(fmt::format("{}: has layouts of {} nodes, not {}", where, node, nodes));
}

void write_tile_config(std::span<const char> config, std::span<float> to, std::string_view where) {
  std::vector<std::int64_t> bounds[kTensors];
  checked(where, [&] {
    pbf_reader field{config.data(), config.size()};
    while (field.next()) {
      if (field.tag() <= kTensors) {
        append_integers(field, bounds[field.tag() - 1]);
      } else {
        field.skip();
      }
    }
  });
  float* next = to.data();
  for (const std::vector<std::int64_t>& list : bounds) {
    std::uint64_t sum = 0, product = list.empty() ? 0 : 1;
    for (const std::int64_t value : list) {
      sum += static_cast<std::uint64_t>(value);
      product *= static_cast<std::uint64_t>(value);
    }
    for (std::size_t d = 0; d < kDimensions; ++d)
      *next++ = d < list.size() ? static_cast<float>(list[d]) : 0.0f;
    *next++ = static_cast<float>(static_cast<std::int64_t>(sum));
    *next++ = static_cast<float>(static_cast<std::int64_t>(product));
  }
}

void write_tuned_npz(const TunedModule& tuned, const std::string& where,
                     const std::filesystem::path& npz, FileSystem& files) {
  if (tuned.runs.empty())
    throw DataError(where + ": has no measured default configuration, so nothing to compare with");
  const HloGraph graph = featurise(tuned.module, where);
  const auto rows = static_cast<std::int64_t>(tuned.runs.size());
  std::vector<std::int64_t> runtime;
  for (const TuningRun& run : tuned.runs) runtime.push_back(run.nanoseconds);

  warn_of_unknown(graph, where);
  NpzWriter writer(npz, {.deflate_level = 1}, files);
  writer.add("node_feat", {graph.nodes(), kNodeFeatures}, graph.node_features);
  writer.add("node_opcode", {graph.nodes()}, graph.opcodes);
  writer.add("edge_index", {static_cast<std::int64_t>(graph.edges.size() / 2), 2}, graph.edges);
  const auto where_run = [&](std::int64_t row) {
    return fmt::format("{}: run {}", where, tuned.runs[static_cast<std::size_t>(row)].number);
  };
  if (tuned.tiles) {
    writer.add_streamed<float>(
        "config_feat", {rows, kTileConfigFeatures},
        [&](std::int64_t first, std::span<float> values) {
          for (; !values.empty(); values = values.subspan(kTileConfigFeatures), ++first)
            write_tile_config(tuned.runs[static_cast<std::size_t>(first)].config,
                              values.first(kTileConfigFeatures), where_run(first));
        });
    const auto standard = std::ranges::find(tuned.runs, true, &TuningRun::is_default);
    writer.add("config_runtime", {rows}, runtime);
    writer.add("config_runtime_normalizers", {rows},
               std::vector<std::int64_t>(runtime.size(), standard->nanoseconds));
    return writer.finish();
  }
  for (const std::int64_t node : tuned.config_nodes) {
    if (node < 0 || node >= graph.nodes())
      throw DataError(
          fmt::format("{}: configurable node {} is none of {}", where, node, graph.nodes()));
  }
  const auto nodes = static_cast<std::int64_t>(tuned.config_nodes.size());
  const auto width = static_cast<std::size_t>(nodes) * kLayoutConfigFeatures;
  writer.add("node_config_ids", {nodes}, tuned.config_nodes);
  writer.add_streamed<float>("node_config_feat", {rows, nodes, kLayoutConfigFeatures},
                             [&](std::int64_t first, std::span<float> values) {
                               for (; !values.empty(); values = values.subspan(width), ++first)
                                 write_layout_config(
                                     tuned.runs[static_cast<std::size_t>(first)].config,
                                     values.first(width), where_run(first));
                             });
  writer.add("config_runtime", {rows}, runtime);
  writer.add("node_splits", {1, static_cast<std::int64_t>(graph.node_splits.size())},
             graph.node_splits);
  writer.finish();
}

}  // namespace tpudist
