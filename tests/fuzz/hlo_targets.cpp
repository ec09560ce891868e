// Modules of XLA: protos and tuning files, up to made configurations and the arrays of a graph.

#include "data/hlo/hlo_features.hpp"
#include "data/hlo/layout_configs.hpp"
#include "data/hlo/tuned_npz.hpp"
#include "data/hlo/tuning_file.hpp"
#include "tests/data/hlo/hlo_protos.hpp"
#include "tests/data/hlo/sketched_module.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace tpudist::test {
namespace {

constexpr int kMostModules = 4;  // of a file that are read

void make_configs(const LayoutSpace& space) {
  random_configs(space, 20, 1);
  if (space.nodes.size() < 100) neighbour_configs(space);
}

bool read_proto(std::string_view bytes) {
  const auto path = input_file("input.pb", bytes), npz = scratch_file("made.npz");
  std::filesystem::remove(npz);
  const bool read = accepts([&] {
    const HloFile file(path);
    for (int i = 0; i < std::min(file.size(), kMostModules); ++i) {
      file.name(i);
      const TunedModule tuned = file.module(i);
      const HloGraph graph = featurise(tuned.module, file.where(i));
      if (!tuned.runs.empty()) {
        write_tuned_npz(tuned, file.where(i), npz);
        std::filesystem::remove(npz);
      }
      if (tuned.tiles) continue;
      std::vector<std::string> warnings;
      const LayoutSpace space = known_space(tuned, {}, file.where(i), warnings);
      make_configs(space);
      if (!space.nodes.empty()) {
        write_configured_npz(graph, space, {space.standard()}, npz);
        std::filesystem::remove(npz);
      }
    }
  });
  if (std::filesystem::exists(npz)) throw std::logic_error("a refused file left an NPZ behind");
  return read;
}

using Sketches = std::vector<InstructionSketch>;

std::string module_of(const Sketches& instructions, std::int64_t root) {
  return module("m", {computation("main", 1, root, instructions)});
}

// A message that is field 1 of one that is field 1 of ...
std::string nested(const std::string& message, int depth) {
  std::vector<std::string> heads;
  std::size_t bytes = message.size();
  for (int i = 0; i < depth; ++i) {
    std::string head = "\x0a";
    for (std::size_t left = bytes; head.size() == 1 || left > 0; left >>= 7)
      head += static_cast<char>((left & 127) | (left > 127 ? 128 : 0));
    bytes += head.size();
    heads.push_back(std::move(head));
  }
  std::string result;
  for (; !heads.empty(); heads.pop_back()) result += heads.back();
  return result + message;
}

std::vector<std::string> proto_seeds() {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const Sketches reshape = {{"p", "parameter", 1, {}, {}, {4, 6}, {}},
                            {"r", "reshape", 2, {1}, {}, {24}, std::string(40, 'x')}};
  const std::string sound = module_of(reshape, 2);
  std::vector<std::string> seeds{
      sound, proto([&](pbf_writer& to) { to.add_message(1, sound); }),
      tuned(sound, {{70, true, false, {{{0}, {1, 0}}}}, {60, false, false, {{{0}, {0, 1}}}}}, {1},
            false),
      proto([&](pbf_writer& to) {
        to.add_message(1, tuned(sound,
                                {{70, true, false, {{{1, 2}, {3}, {}}}},
                                 {60, false, false, {{{4}, {5}, {6}}}}},
                                {}, true));
      })};
  for (std::string& file : files_below("tests/data/hlo/modules", ".pb"))
    seeds.push_back(std::move(file));
  // Ids that are missing or doubled, roots that are absent, shapes whose product overflows.
  seeds.push_back(module_of({{"a", "add", 1, {7}, {}, {2}, {}}}, 1));
  seeds.push_back(module_of({{"a", "add", 1, {}, {9}, {2}, {}}}, 1));
  seeds.push_back(
      module_of({{"a", "add", 1, {}, {}, {2}, {}}, {"b", "add", 1, {}, {}, {2}, {}}}, 1));
  seeds.push_back(module_of({{"a", "add", 1, {}, {}, {2}, {}}}, 3));
  seeds.push_back(module("m", {computation("c", 1, 1, {{"a", "add", 1, {}, {}, {2}, {}}}),
                               computation("d", 1, 2, {{"b", "add", 2, {}, {}, {2}, {}}})}));
  for (const char* opcode : {"reshape", "dot", "convolution"}) {
    seeds.push_back(module_of({{"p", "parameter", 1, {}, {}, {kHuge, kHuge, 16}, {}},
                               {"r", opcode, 2, {1}, {}, {kHuge, 16, kHuge}, {}}},
                              2));
    seeds.push_back(module_of({{"p", "parameter", 1, {}, {}, {2, 3, 5, 7, 11, 13, 17, 19}, {}},
                               {"r", opcode, 2, {1, 1}, {}, {19, 17, 13, 11, 7, 5, 3, 2}, {}}},
                              2));
  }
  seeds.push_back(sound.substr(0, sound.size() / 2));
  // A number of eleven bytes, a length that wraps around, messages within messages.
  seeds.push_back("\x08" + std::string(10, '\xff') + '\1');
  seeds.push_back("\x0a" + std::string(9, '\xff') + '\1');
  seeds.push_back(nested(sound, 100'000));
  return seeds;
}

bool read_layout_configs(std::string_view bytes) {
  LayoutSpace space = layout_space(sketched_module("a = f32[2,3] parameter(0)\n"
                                                   "b = f32[3,4] parameter(1)\n"
                                                   "d = f32[2,4] dot(a, b)\n"
                                                   "r = f32[8] reshape(d)"),
                                   {}, "m");
  return accepts([&] {
    json_configs(space, bytes, "configs.json");
    make_configs(space);
  });
}

std::vector<std::string> layout_configs_seeds() {
  return {R"([{"d": [[1, 0], [0, 1], [1, 0]], "r": [[0], [0, 1]]}, {"d": [[0, 1]]}, {}])",
          R"([{"d": [[1, 0], [0, 1], [1, 0], [1, 0]]}])",
          R"([{"d": [[9, -1], [1e300, 0.5], [99999999999999999999]]}])",
          R"([{"d": [[1, 1], [0]], "nobody": []}])",
          R"([{"d": null, "r": {}}, [], 3])",
          R"([{"d": [[1, 0]], "d": [[0, 1]]}])",
          std::string(100'000, '['),
          "[{\"d\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}]"};
}

}  // namespace

FuzzTarget layout_configs_target() {
  return {"layout_configs", read_layout_configs, layout_configs_seeds};
}

FuzzTarget hlo_proto_target() {
  return {"hlo_proto", read_proto, proto_seeds};
}

}  // namespace tpudist::test
