#include "data/hlo/tuning_file.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <protozero/varint.hpp>

#include "core/error.hpp"
#include "data/hlo/hlo_features.hpp"
#include "data/hlo/tuned_npz.hpp"
#include "data/npz/npz_reader.hpp"
#include "data/schema/feature_schema.hpp"
#include "tests/data/hlo/hlo_protos.hpp"
#include "tests/data/hlo/sketched_module.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A loop of a tuple of two numbers around a reshape, as it could be dumped today: ids of 41 bits.
constexpr std::int64_t kBig = std::int64_t{1} << 40;

std::string small_module() {
  return module("m",
                {computation("while_body", 5, kBig + 3,
                             {{"p", "parameter", kBig + 1, {}, {}, {4, 6}, {}},
                              {"r", "reshape", kBig + 2, {kBig + 1}, {}, {24}, {}},
                              {"t", "add", kBig + 3, {kBig + 2, kBig + 2}, {}, {24}, {}}}),
                 computation("main", 6, kBig + 5,
                             {{"c", "constant", kBig + 4, {}, {}, {4, 6}, std::string(96, 'x')},
                              {"w", "while", kBig + 5, {kBig + 4}, {5, 5}, {24}, {}}})});
}

class TuningFileTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& bytes) {
    const auto path = folder_ / "file.pb";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string refusal(const std::string& bytes) {
    const auto path = write(bytes);
    return message_of<DataError>([&] {
      const HloFile file(path);
      for (int i = 0; i < file.size(); ++i) featurise(file.module(i).module, file.where(i));
    });
  }
  std::vector<float> floats(const std::filesystem::path& npz, const char* name) {
    return NpzReader(npz).open(name).read_floats();
  }
  TempDir folder_;
};

TEST_F(TuningFileTest, TellsTheProtosApart) {
  const std::string module = small_module();
  const RunSketch one{5, true, false, {{{0}, {0, 1}}}}, tile{5, true, false, {{{1}, {2}, {3}}}};
  const auto kind = [&](const std::string& bytes) { return HloFile(write(bytes)).kind(); };
  EXPECT_EQ(kind(module), HloFile::Kind::module);
  EXPECT_EQ(kind(proto([&](auto& to) { to.add_message(1, module); })), HloFile::Kind::hlo);
  EXPECT_EQ(kind(tuned(module, {one}, {1}, false)), HloFile::Kind::tuned_module);
  const std::string kernels = proto([&](auto& to) {
    to.add_message(1, tuned(module, {tile, tile}, {}, true));
  });
  EXPECT_EQ(kind(kernels), HloFile::Kind::tuned_modules);
  // Snapshots: a program with literals. XLA writes one of them behind its length, literals behind it.
  const auto nested = [](const std::string& inner) {
    return proto([&](auto& to) {
      to.add_message(1, inner);
      to.add_message(2, std::string(40, '\1'));
    });
  };
  const auto program = proto([&](auto& to) {
    to.add_message(1, module);
    const auto alias = proto([](auto& of) {
      of.add_string(1, "from");
      of.add_string(2, "to");
    });
    to.add_message(3, proto([&](auto& buffers) { buffers.add_message(2, alias); }));
  });
  const std::string unoptimized = nested(module);
  std::string delimited;
  protozero::write_varint(std::back_inserter(delimited), unoptimized.size());
  delimited += unoptimized + std::string(1000, '\xff');
  EXPECT_EQ(kind(nested(program)), HloFile::Kind::snapshot);
  EXPECT_EQ(kind(unoptimized), HloFile::Kind::hlo);
  EXPECT_EQ(kind(delimited), HloFile::Kind::snapshot);
  for (const std::string& bytes : {nested(program), unoptimized, delimited}) {
    const HloFile file(write(bytes));
    ASSERT_EQ(file.size(), 1);
    EXPECT_EQ(file.name(0), "m");
    EXPECT_EQ(file.module(0).module.nodes(), 5);
    EXPECT_EQ(file.dropped_modules(), 0);
  }
  EXPECT_THAT(refusal("\x1f\x8b\x08"), HasSubstr("is compressed by gzip: unpack it"));
  EXPECT_THAT(refusal("module @jit_f {"), HasSubstr("is MLIR: dump HLO"));
  EXPECT_THAT(refusal("HloModule m\n"),
              HasSubstr("is HLO text: dump the proto (--xla_dump_hlo_as_proto), or make it from "));
  EXPECT_THAT(refusal("HloMod"), HasSubstr("none of HloProto"));
  EXPECT_THAT(refusal(std::string(1000, '\xff')), HasSubstr("is damaged"));
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
}

template <typename T>
std::string crc(const std::vector<T>& values) {
  return fmt::format("{:08x}", ::crc32(0, reinterpret_cast<const Bytef*>(values.data()),
                                       static_cast<uInt>(values.size() * sizeof(T))));
}

// tests/golden/hlo_modules.py made the modules with JAX, and reads them by the rules on its own.
TEST_F(TuningFileTest, ModulesOfJaxHaveTheGoldenArrays) {
  std::ifstream golden(jax_modules() / "golden.txt");
  int modules = 0;
  for (std::string name; golden >> name; ++modules) {
    std::int64_t nodes = 0, edges = 0;
    std::string features, opcodes, pairs, splits;
    golden >> nodes >> edges >> features >> opcodes >> pairs >> splits;
    const HloGraph graph =
        featurise(HloFile(jax_modules() / (name + ".pb")).module(0).module, name);
    EXPECT_EQ(graph.nodes(), nodes) << name;
    EXPECT_EQ(std::ssize(graph.edges), 2 * edges) << name;
    EXPECT_EQ(crc(graph.node_features), features) << name;
    EXPECT_EQ(crc(graph.opcodes), opcodes) << name;
    EXPECT_EQ(crc(graph.edges), pairs) << name;
    EXPECT_EQ(crc(graph.node_splits), splits) << name;
  }
  EXPECT_EQ(modules, 22);
}

TEST_F(TuningFileTest, RefusesWhatXlaWouldNotCompile) {
  // Of a module with this instruction b, which `change` changes.
  const auto of = [](const std::string& b, const auto& change) {
    HloModule module = sketched_module("a = f32[2,3] parameter(0)\n" + b);
    change(module.computations[0].instructions[1]);
    return message_of<DataError>([&] { featurise(module, "f"); });
  };
  const auto dimensions = [](std::vector<std::int64_t> all) {
    return [=](HloInstruction& b) { b.dimensions = all; };
  };
  const auto contracted = [](std::int64_t lhs, std::int64_t rhs) {
    return [=](HloInstruction& b) { b.lhs_dimensions = {lhs}, b.rhs_dimensions = {rhs}; };
  };
  const auto same = [](HloInstruction&) {};
  const std::string none = "f: b in main: names dimensions twice, or others than those of a tensor";
  EXPECT_EQ(of("b = f32[2,2] dot(a, a)", contracted(1, 1)), "");
  EXPECT_EQ(of("b = f32[2,2] dot(a, a)", contracted(9, 1)), none + " of 2");
  EXPECT_EQ(of("b = f32[2,2] dot(a, a)", contracted(1, -1)), none + " of 2");
  EXPECT_EQ(of("b = f32[2,9,3] broadcast(a)", dimensions({0, 2})), "");
  EXPECT_EQ(of("b = f32[2,9,3] broadcast(a)", dimensions({0, 3})), none + " of 3");
  EXPECT_EQ(of("b = f32[3,2] transpose(a)", dimensions({1, 1})), none + " of 2");
  EXPECT_EQ(of("b = f32[2,3] iota()", dimensions({2})), none + " of 2");
  EXPECT_EQ(of("b = f32[2,3] convolution(a, a), dim_labels=bf_io->bf", same), "");
  EXPECT_EQ(of("b = f32[2,3] convolution(a, a), dim_labels=b0f_0io->b0f", same), none + " of 2");
  EXPECT_EQ(of("b = f32[2] unknown(a)", dimensions({7})), "");  // may mean others
  EXPECT_EQ(of("b = f32[2,3] add(a)", same), "f: b in main: add takes 2 operands, not 1");
  EXPECT_EQ(of("b = f32[2,3] parameter(0)", same),
            "f: b in main: two parameters have the number 0");
}

TEST_F(TuningFileTest, MakesTheGraphOfAModule) {
  const TunedModule tuned = HloFile(write(small_module())).module(0);
  const HloGraph graph = featurise(tuned.module, "m");
  EXPECT_THAT(graph.opcodes, ElementsAre(63, 75, 2, 24, 102));
  // Distinct operands, then the root of each call; equal calls are not merged.
  EXPECT_THAT(graph.edges, ElementsAre(1, 0, 2, 1, 4, 2, 4, 2, 4, 3));
  EXPECT_THAT(graph.node_splits, ElementsAre(0, 3, 5));
  const auto at = [&](std::size_t node, std::size_t column) {
    return graph.node_features[node * kNodeFeatures + column];
  };
  EXPECT_EQ(at(0, 0), 0);
  EXPECT_EQ(at(2, 0), 1);   // root
  EXPECT_EQ(at(0, 13), 1);  // f32
  EXPECT_EQ(at(0, 21), 4);
  EXPECT_EQ(at(0, 22), 6);
  EXPECT_EQ(at(0, 27), 10);
  EXPECT_EQ(at(0, 28), 24);
  EXPECT_EQ(at(0, 52), 1);   // product of no strides
  EXPECT_EQ(at(0, 134), 1);  // minor to major
  EXPECT_EQ(at(0, 135), 0);
}

// OpMetadata, and StackFrameIndexProto with two files, lines and frames.
TEST_F(TuningFileTest, ReadsTheSourceOfAnOperation) {
  const auto row = [](std::int64_t first, std::int64_t third) {
    return proto([&](auto& to) {
      to.add_int64(1, first);
      to.add_int64(3, third);
    });
  };
  const std::string tables = proto([&](auto& to) {
    to.add_string(1, "a.py");
    to.add_string(1, "b.py");
    to.add_string(2, "f");
    to.add_message(3, row(2, 7));
    to.add_message(3, row(9, 8));
    to.add_message(4, row(1, 0));
    to.add_message(4, row(2, 0));
  });
  const auto source = [&](const std::string& file, std::int64_t line, std::int64_t frame) {
    const std::string own =
        instruction({"a", "parameter", 1, {}, {}, {}, {}}) + proto([&](auto& to) {
          to.add_message(7, proto([&](auto& metadata) {
                           metadata.add_string(2, "jit(f)/dot");
                           metadata.add_string(3, file);
                           metadata.add_int64(4, line);
                           metadata.add_int64(15, frame);
                         }));
        });
    const std::string main =
        computation("main", 1, 1, {}) + proto([&](auto& to) { to.add_message(2, own); });
    const HloModule read =
        HloFile(write(module("m", {main}) + proto([&](auto& to) { to.add_message(17, tables); })))
            .module(0)
            .module;
    return read.computations.at(0).instructions.at(0).source;
  };
  EXPECT_EQ(source("model.py", 12, 0), "model.py:12");
  EXPECT_EQ(source("model.py", 0, 1), "model.py");
  EXPECT_EQ(source("", 0, 1), "b.py:7");
  EXPECT_EQ(source("", 0, 2), "");  // of a file that the table lacks
  EXPECT_EQ(source("", 0, 3), "");
  const HloModule dump = HloFile(jax_modules() / "layouts_after.pb").module(0).module;
  EXPECT_TRUE(std::ranges::any_of(dump.computations.back().instructions, [](const auto& own) {
    return own.name == "tanh.1" && own.source == "<string>:6";
  }));
}

TEST_F(TuningFileTest, SaysWhatTheFeaturesDoNotKnow) {
  const std::string odd =
      module("m", {computation("main", 1, 1, {{"a", "ragged-dot", 1, {}, {}, {}, {}}})});
  const HloGraph graph = featurise(HloFile(write(odd)).module(0).module, "m");
  EXPECT_THAT(graph.unknown_opcodes, ElementsAre("ragged-dot"));
  EXPECT_THAT(graph.opcodes, ElementsAre(0));
  EXPECT_EQ(opcode_number("abs"), 1);
  EXPECT_EQ(opcode_number("stochastic-convert"), 119);
  EXPECT_EQ(opcode_number("tan"), 0);
}

TEST_F(TuningFileTest, KeepsTheRunsThatTheDataSetKeeps) {
  const std::vector<std::vector<std::vector<std::int64_t>>> first{{{0}, {0, 1}}},
      other{{{0}, {1, 0}}};
  const auto path = write(tuned(small_module(),
                                {{70, true, false, first},
                                 {60, false, true, other},  // failed
                                 {50, false, false, other}},
                                {1}, false));
  const HloFile file(path);
  const TunedModule tuned = file.module(0);
  std::int64_t dropped = 0;
  EXPECT_EQ(file.runs(0, &dropped).size(), 2u);
  EXPECT_EQ(dropped, 1);
  write_tuned_npz(tuned, "m", folder_ / "m.npz");
  EXPECT_THAT(floats(folder_ / "m.npz", "config_runtime"), ElementsAre(70, 50));
  EXPECT_THAT(floats(folder_ / "m.npz", "node_config_ids"), ElementsAre(1));
  EXPECT_THAT(floats(folder_ / "m.npz", "node_config_feat"),
              ElementsAre(0, -1, -1, -1, -1, -1, 0, 1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                          0, -1, -1, -1, -1, -1, 1, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
}

TEST_F(TuningFileTest, KeepsTheKernelsThatTheDataSetKeeps) {
  const auto kernel = [&](std::vector<RunSketch> runs) {
    return tuned(small_module(), runs, {}, true);
  };
  const std::vector<std::vector<std::vector<std::int64_t>>> tile{{{}, {4, 8}, {3}}};
  const auto path = write(proto([&](auto& to) {
    to.add_message(1, kernel({{5, true, false, tile}}));                            // one run
    to.add_message(1, kernel({{5, false, false, tile}, {6, false, false, tile}}));  // no default
    to.add_message(
        1, kernel({{9, true, false, tile}, {1, false, false, tile}, {7, false, false, tile}}));
  }));
  const HloFile file(path);
  ASSERT_EQ(file.size(), 1);
  EXPECT_EQ(file.dropped_modules(), 2);
  const TunedModule tuned = file.module(0);
  EXPECT_EQ(file.number(0), 2);
  EXPECT_EQ(file.name(0), "m");
  EXPECT_EQ(tuned.runs.back().number, 2);
  std::int64_t dropped = 0;
  EXPECT_EQ(file.runs(0, &dropped).size(), 2u);
  EXPECT_EQ(dropped, 1);  // of 1 ns
  write_tuned_npz(tuned, "m", folder_ / "m.npz");
  EXPECT_THAT(floats(folder_ / "m.npz", "config_runtime"), ElementsAre(9, 7));
  EXPECT_THAT(floats(folder_ / "m.npz", "config_runtime_normalizers"), ElementsAre(9, 9));
  const std::vector<float> features = floats(folder_ / "m.npz", "config_feat");
  EXPECT_THAT(
      std::vector<float>(features.begin(), features.begin() + 24),
      ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 4, 8, 0, 0, 0, 0, 12, 32, 3, 0, 0, 0, 0, 0, 3, 3));
}

TEST_F(TuningFileTest, RefusesModulesThatAreNone) {
  const auto with = [](std::vector<InstructionSketch> own, std::int64_t root = 1) {
    return module("m", {computation("main", 1, root, own)});
  };
  const InstructionSketch one{"one", "after-all", 1, {}, {}, {}, {}};
  EXPECT_THAT(refusal(with({one, one})),
              HasSubstr("one in main: another instruction has its name or id"));
  EXPECT_THAT(refusal(with({one, {"one", "tuple", 2, {}, {}, {}, {}}})),
              HasSubstr("one in main: another instruction has its name or id"));
  EXPECT_THAT(refusal(with({one}, 9)), HasSubstr("computation main lacks its root"));
  EXPECT_THAT(refusal(with({{"one", "tuple", 1, {8}, {}, {}, {}}})),
              HasSubstr("its operand 8 does not stand above"));
  EXPECT_THAT(refusal(with({{"one", "tuple", 1, {1}, {}, {}, {}}})),
              HasSubstr("operand 1 does not"));
  EXPECT_THAT(refusal(with({{"one", "call", 1, {}, {8}, {}, {}}})),
              HasSubstr("computation that it calls does not stand"));
  EXPECT_THAT(refusal(with({{"one", "call", 1, {}, {1}, {}, {}}})),
              HasSubstr("computation that it calls does not stand"));
  EXPECT_THAT(refusal(with({{"one", "parameter", 1, {}, {}, {}, {}},
                            {"two", "parameter", 2, {}, {}, {}, {}}})),
              HasSubstr("two parameters have the number 0"));
  EXPECT_THAT(refusal(with({{"one", "negate", 1, {}, {}, {}, {}}})),
              HasSubstr("negate takes 1 operands, not 0"));
  // The operand, and the root, of another computation.
  const InstructionSketch use{"two", "tuple", 2, {1}, {}, {}, {}};
  const std::string first = computation("first", 1, 1, {one});
  EXPECT_THAT(refusal(module("m", {first, computation("main", 2, 2, {use})})),
              HasSubstr("two in main: its operand 1 does not stand above"));
  EXPECT_THAT(refusal(module(
                  "m", {first, computation("main", 2, 1, {{"two", "tuple", 2, {}, {}, {}, {}}})})),
              HasSubstr("computation main lacks its root"));
  EXPECT_THAT(refusal(module(
                  "m", {first, computation("main", 1, 2, {{"two", "tuple", 2, {}, {}, {}, {}}})})),
              HasSubstr("computation main lacks its root, or another has its id"));
}

// Dimensions of a dot stand in the proto alone: 30.1 to 30.4.
TEST_F(TuningFileTest, RefusesDimensionsOfADotThatItsOperandsDoNotHave) {
  const auto dot_over = [&](std::int64_t left, std::int64_t right) {
    const std::string dimensions = proto([&](auto& to) {
      to.add_int64(1, left);
      to.add_packed_int64(2, &right, &right + 1);
    });
    const std::string dot = instruction({"d", "dot", 2, {1, 1}, {}, {4, 4}, {}}) +
                            proto([&](auto& to) { to.add_message(30, dimensions); });
    return refusal(
        module("m", {proto([&](auto& to) {
                 to.add_string(1, "main");
                 to.add_message(2, instruction({"p", "parameter", 1, {}, {}, {4, 6}, {}}));
                 to.add_message(2, dot);
                 to.add_int64(5, 1);
                 to.add_int64(6, 2);
               })}));
  };
  EXPECT_EQ(dot_over(1, 1), "");
  EXPECT_THAT(
      dot_over(2, 1),
      HasSubstr("d in main: names dimensions twice, or others than those of a tensor of 2"));
  EXPECT_THAT(dot_over(1, -1), HasSubstr("or others than those of a tensor of 2"));
}

// A reshape of XLA may have one dimension, inferred_dimension: of its result.
TEST_F(TuningFileTest, TakesTheInferredDimensionOfAReshape) {
  const auto inferred = [&](std::int64_t dimension) {
    const std::string reshape =
        instruction({"r", "reshape", 2, {1}, {}, {2, 3, 4}, {}}) +
        proto([&](auto& to) { to.add_packed_int64(14, &dimension, &dimension + 1); });
    return refusal(module("m", {proto([&](auto& to) {
                            to.add_string(1, "main");
                            to.add_message(2, instruction({"p", "parameter", 1, {}, {}, {24}, {}}));
                            to.add_message(2, reshape);
                            to.add_int64(5, 1);
                            to.add_int64(6, 2);
                          })}));
  };
  EXPECT_EQ(inferred(2), "");
  EXPECT_THAT(inferred(3), HasSubstr("r in main: names dimensions twice, or others than those"));
}

TEST_F(TuningFileTest, ShowsNamesOfAnyBytesAsPrintableOnes) {
  const std::string odd =
      module("m\x1b[1m\n",
             {computation("c\xe2\x80\xae", 1, 1,
                          {{std::string("a\0\xff\xc3\xa4", 5), "tuple", 1, {}, {}, {}, {}}})});
  const HloFile file(write(odd));
  EXPECT_EQ(file.name(0), "m?[1m?");
  const HloModule module = file.module(0).module;
  EXPECT_EQ(module.computations[0].name, "c?");
  EXPECT_EQ(module.computations[0].instructions[0].name, "a??\xc3\xa4");
}

TEST_F(TuningFileTest, RefusesConfigurationsThatDoNotFit) {
  const auto refused = [&](const std::vector<std::vector<std::vector<std::int64_t>>>& config,
                           std::uint64_t node = 1) {
    const auto path = write(tuned(small_module(), {{70, true, false, config}}, {node}, false));
    const HloFile file(path);
    const std::string message = message_of<DataError>(
        [&] { write_tuned_npz(file.module(0), file.where(0), folder_ / "m.npz"); });
    EXPECT_FALSE(std::filesystem::exists(folder_ / "m.npz"));
    return message;
  };
  EXPECT_THAT(refused({}), HasSubstr("run 0: has layouts of 0 nodes, not 1"));
  EXPECT_THAT(refused({{}, {}}), HasSubstr("has layouts of 2 nodes, not 1"));
  EXPECT_THAT(refused({{{0}, {0}, {0}, {0}}}), HasSubstr("at most three tensors"));
  EXPECT_THAT(refused({{{0}}}, 5), HasSubstr("configurable node 5 is none of 5"));
  const auto path = write(tuned(small_module(), {{7, false, false, {{{0}}}}}, {1}, false));
  const HloFile file(path);
  EXPECT_THAT(
      message_of<DataError>([&] { write_tuned_npz(file.module(0), "m", folder_ / "m.npz"); }),
      HasSubstr("no measured default configuration"));
}

// As when the dump of a compiler is not complete yet.
TEST_F(TuningFileTest, RefusesAFileThatIsCutWhileItIsRead) {
  std::vector<RunSketch> runs(5000, {70, false, false, {{{0}, {0, 1}}}});
  runs.front().is_default = true;
  const auto path = write(tuned(small_module(), runs, {1}, false));
  const HloFile file(path);
  const TunedModule tuned = file.module(0);
  std::filesystem::resize_file(path, 100);
  EXPECT_THAT(message_of<DataError>([&] { file.module(0); }),
              HasSubstr("was written while it was read"));
  EXPECT_THAT(message_of<DataError>([&] { file.runs(0); }), HasSubstr("was written while"));
  EXPECT_THROW(write_tuned_npz(tuned, "m", folder_ / "m.npz"), DataError);
  EXPECT_THROW(file.require_unchanged(), DataError);
}

}  // namespace
}  // namespace tpudist::test
