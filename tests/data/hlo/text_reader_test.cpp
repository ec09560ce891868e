#include "data/hlo/text_reader.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zlib.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "core/error.hpp"
#include "data/hlo/hlo_features.hpp"
#include "data/hlo/tuning_file.hpp"
#include "data/schema/feature_schema.hpp"
#include "tests/data/hlo/hlo_protos.hpp"
#include "tests/support/real_data.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::string crc(const std::vector<T>& values) {
  return fmt::format("{:08x}", ::crc32(0, reinterpret_cast<const Bytef*>(values.data()),
                                       static_cast<uInt>(values.size() * sizeof(T))));
}

std::vector<std::string> names_of(const HloModule& module) {
  std::vector<std::string> names;
  for (const HloComputation& computation : module.computations) {
    for (const HloInstruction& own : computation.instructions)
      names.push_back(computation.name + "/" + own.name);
  }
  return names;
}

// By name: opcode and features; and the edges.
using Row = std::pair<int, std::vector<float>>;
std::map<std::string, Row> rows_of(const HloModule& module) {
  const HloGraph graph = featurise(module, "m");
  std::map<std::string, Row> rows;
  auto row = graph.node_features.begin();
  for (std::size_t i = 0; const std::string& name : names_of(module)) {
    rows[name] = {graph.opcodes[i++], std::vector<float>(row, row + kNodeFeatures)};
    row += kNodeFeatures;
  }
  return rows;
}
std::multiset<std::pair<std::string, std::string>> edges_of(const HloModule& module) {
  const HloGraph graph = featurise(module, "m");
  const std::vector<std::string> names = names_of(module);
  std::multiset<std::pair<std::string, std::string>> edges;
  for (std::size_t e = 0; e < graph.edges.size(); e += 2)
    edges.emplace(names[graph.edges[e]], names[graph.edges[e + 1]]);
  return edges;
}

// tests/golden/hlo_modules.py made the modules with JAX, and reads them by the rules on its own.
TEST(TextReader, ModulesOfJaxHaveTheGoldenArraysAsProtoAndTheSameByNameAsText) {
  std::ifstream golden(jax_modules() / "golden.txt");
  int modules = 0;
  for (std::string name; golden >> name; ++modules) {
    std::int64_t nodes = 0, edges = 0;
    std::string features, opcodes, pairs, splits;
    golden >> nodes >> edges >> features >> opcodes >> pairs >> splits;
    const HloModule proto = HloFile(jax_modules() / (name + ".pb")).module(0).module;
    const HloGraph graph = featurise(proto, name);
    EXPECT_EQ(graph.nodes(), nodes) << name;
    EXPECT_EQ(std::ssize(graph.edges), 2 * edges) << name;
    EXPECT_EQ(crc(graph.node_features), features) << name;
    EXPECT_EQ(crc(graph.opcodes), opcodes) << name;
    EXPECT_EQ(crc(graph.edges), pairs) << name;
    EXPECT_EQ(crc(graph.node_splits), splits) << name;

    const HloFile file(jax_modules() / (name + ".txt"));
    EXPECT_EQ(file.kind(), HloFile::Kind::text);
    EXPECT_EQ(file.name(0), proto.name);
    const HloModule text = file.module(0).module;
    EXPECT_EQ(rows_of(text), rows_of(proto)) << name;
    EXPECT_EQ(edges_of(text), edges_of(proto)) << name;
  }
  EXPECT_EQ(modules, 22);
}

// Dumps of training steps, before and after XLA's passes.
TEST(TextReader, LargeDumpsAreTheSameAsTextAndAsProto) {
  const auto root = real_data_root();
  if (!root || !std::filesystem::exists(*root / "../hlo"))
    GTEST_SKIP() << "the dumped modules are not on this machine (TPUDIST_REAL_DATA)";
  for (const auto& file : std::filesystem::directory_iterator(*root / "../hlo")) {
    if (file.path().extension() != ".txt") continue;
    auto pb = file.path();
    const HloModule proto = HloFile(pb.replace_extension(".pb")).module(0).module;
    const HloModule text = HloFile(file.path()).module(0).module;
    EXPECT_EQ(rows_of(text), rows_of(proto)) << file.path();
    EXPECT_EQ(edges_of(text), edges_of(proto)) << file.path();
  }
}

HloInstruction only(const std::string& instruction) {
  const std::string text =
      "HloModule m\nless {\n  l = pred[] parameter(0)\n}\nmain {\n  a = f32[] parameter(0)\n" +
      instruction + "\n}\n";
  return read_text_module(text, "m").computations.at(1).instructions.at(1);
}

TEST(TextReader, ReadsTheLongFormAndWhatTextLeavesOut) {
  const HloModule module = read_text_module(R"(// a comment
HloModule m.1, is_scheduled=true, entry_computation_layout={(f32[]{:T(128)})->f32[]}

FileNames
1 "a } file.py"

StackFrames
1 {file_location_id=1}

%later (x: f32[], y: (s32[], /*index=1*/pred[])) -> f32[] {
  ROOT %x = f32[] parameter(1)
}, execution_thread="main"
ENTRY %main {
  %c = f32[2,3]{0,1:T(8,128)(2,1)S(1)} constant({ {1, 2.5e+3, 3}, { /*i1=1*/ -inf, -nan(0x1), nan } })
  %t = ((f32[], s32[2]), token[]) custom-call(f32[2,3]{0,1} %c, /*index=1*/%c), custom_call_target="a\"),{", metadata={op_name="}"}
  ROOT %w = f32[<=4,?] call(((f32[], s32[2]), token[]) %t), to_apply=%later
  %d = f32[5]{0} iota(), iota_dimension=0
})",
                                            "m");
  EXPECT_EQ(module.name, "m.1");
  ASSERT_EQ(module.computations.size(), 2u);
  EXPECT_EQ(module.computations[0].name, "later");
  const auto& own = module.computations[1].instructions;
  ASSERT_EQ(own.size(), 4u);
  EXPECT_THAT(own[0].shape.minor_to_major, ElementsAre(0, 1));
  EXPECT_EQ(own[1].shape.tuple_shapes, 2);
  EXPECT_EQ(own[1].feature_group_count, 1);
  EXPECT_THAT(own[1].operands, ElementsAre(2, 2));
  EXPECT_THAT(own[2].shape.dimensions, ElementsAre(4, INT64_MIN));
  EXPECT_THAT(own[2].shape.minor_to_major, ElementsAre(1, 0));
  EXPECT_THAT(own[2].called_computations, ElementsAre(module.computations[0].id));
  EXPECT_EQ(module.computations[1].root, own[2].id);
  EXPECT_THAT(own[3].dimensions, ElementsAre(0));
}

// The source of an operation with this metadata. Newer dumps have tables of stack frames.
std::string source(const std::string& metadata) {
  return read_text_module(
             "HloModule m\n\nFileNames\n1 \"a.py\"\n2 \"b \\\" c.py\"\n\n"
             "FunctionNames\n1 \"f\"\n\nFileLocations\n"
             "1 {file_name_id=2 function_name_id=1 line=7 end_line=9 column=0}\n"
             "2 {file_name_id=9 function_name_id=1 line=8}\n"
             "3 {file_name_id=1 end_line=9 line=7}\n\n"
             "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n"
             "2 {file_location_id=2}\n3 {file_location_id=5}\n5 {file_location_id=3}\n\n"
             "c {\n  a = f32[] parameter(0), metadata={" +
                 metadata + "}\n}\n",
             "m")
      .computations[0]
      .instructions[0]
      .source;
}

TEST(TextReader, ReadsTheSourceOfAnOperation) {
  EXPECT_EQ(source("op_name=\"x\" source_file=\"model.py\" source_line=12"), "model.py:12");
  EXPECT_EQ(source("source_file=\"model.py\""), "model.py");
  EXPECT_EQ(source("source_line=12"), "");
  EXPECT_EQ(source("op_name=\"x\" stack_frame_id=1"), "b \\\" c.py:7");
  EXPECT_EQ(source("source_file=\"model.py\" source_line=3 stack_frame_id=1"), "model.py:3");
  for (const char* without : {"2", "3", "4", "0", "-1", "99999999999999999999"})
    EXPECT_EQ(source(std::string("stack_frame_id=") + without), "") << without;
}

TEST(TextReader, ReadsAttributes) {
  const HloInstruction conv = only(
      "c = f32[1,2,3,4] convolution(a, a), window={size=3x2 pad=0_-1x2_0 rhs_reversal=1x0}, "
      "dim_labels=b10f_0i1o->f01b, feature_group_count=4");
  EXPECT_THAT(conv.window.stride, ElementsAre(1, 1));
  EXPECT_THAT(conv.window.padding_high, ElementsAre(-1, 0));
  EXPECT_THAT(conv.window.reversed, ElementsAre(1, 0));
  EXPECT_THAT(conv.convolution.input_spatial, ElementsAre(2, 1));
  EXPECT_THAT(conv.convolution.kernel_spatial, ElementsAre(0, 2));
  EXPECT_EQ(conv.convolution.kernel_output_feature, 3);
  EXPECT_EQ(conv.convolution.output_batch, 3);
  EXPECT_EQ(conv.feature_group_count, 4);
  EXPECT_EQ(conv.batch_group_count, 1);
  const HloInstruction slice = only("s = f32[2,2] slice(a), slice={[1:3], [0:9:4]}");
  EXPECT_THAT(slice.slice_start, ElementsAre(1, 0));
  EXPECT_THAT(slice.slice_limit, ElementsAre(3, 9));
  EXPECT_THAT(slice.slice_stride, ElementsAre(1, 4));
  const HloInstruction pad = only("p = f32[2,2] pad(a, a), padding=1_-2_3x4_5");
  EXPECT_THAT(pad.edge_padding_low, ElementsAre(1, 4));
  EXPECT_THAT(pad.edge_padding_high, ElementsAre(-2, 5));
  EXPECT_EQ(only("s = f32[2] sort(a), dimensions={0}, is_stable=true, to_apply=less").is_stable, 1);
  EXPECT_TRUE(only("b = f32[2] broadcast(a)").dimensions.empty());
  EXPECT_THAT(only("r = f32[2] reshape(a), inferred_dimension=0").dimensions, ElementsAre(0));
  EXPECT_THAT(
      only("g = f32[2] transpose(a), replica_groups=[2,4]<=[8]T(1,0), dimensions={1,0}").dimensions,
      ElementsAre(1, 0));
  EXPECT_THAT(
      only("g = f32[2] all-gather(a), replica_groups=mesh['x'=2,'y'=1] {'x'}, dimensions={1}")
          .dimensions,
      ElementsAre(1));
  EXPECT_NO_THROW(
      only("c = f32[2] collective-permute(a), source_target_pairs={{0,1}}, slice_sizes={{1},{1}}"));
}

// jaxlib makes type 34 and one part of it.
TEST(TextReader, ReadsBuffers) {
  const HloInstruction buffer =
      only("p = b(f32[4,8]{1,0:T(8,128)}) custom-call(a), custom_call_target=\"x\"");
  EXPECT_EQ(buffer.shape.element_type, 34);
  EXPECT_EQ(buffer.shape.tuple_shapes, 1);
  EXPECT_TRUE(buffer.shape.dimensions.empty());
  EXPECT_TRUE(buffer.shape.minor_to_major.empty());
  EXPECT_EQ(only("t = (b(f32[4]), s32[]) custom-call(f32[] a), custom_call_target=\"x\"")
                .shape.tuple_shapes,
            2);
  const std::string use =
      "HloModule m\nc {\n  b = f32[] parameter(0)\n  p = b(f32[]) custom-call(b), "
      "custom_call_target=\"x\"\n"
      "  q = f32[] custom-call(b(f32[]) %p, f32[] b), custom_call_target=\"x\"\n}\n";
  EXPECT_THAT(read_text_module(use, "m").computations.at(0).instructions.at(2).operands,
              ElementsAre(2, 1));
}

std::string refusal(const std::string& text) {
  return message_of<DataError>(
      [&] { featurise(read_text_module("HloModule m\n" + text, "f.txt"), "f.txt"); });
}

TEST(TextReader, RefusesWhatIsNoModule) {
  EXPECT_THAT(refusal(""), HasSubstr("f.txt: line 2: the module has no computation"));
  EXPECT_THAT(refusal("c {\n}"), HasSubstr("computation c is empty"));
  EXPECT_THAT(refusal("c {a = f32[] after-all()\na = f32[] after-all()}"),
              HasSubstr("two instructions"));
  EXPECT_THAT(refusal("c {a = f32[] iota(), iota_dimension=0} c {a = token[] after-all()}"),
              HasSubstr("two computations"));
  EXPECT_THAT(refusal("ENTRY c {a = token[] after-all()} ENTRY d {a = token[] after-all()}"),
              HasSubstr("two ENTRY computations"));
  EXPECT_THAT(refusal("c {a = b((f32[])) after-all()}"), HasSubstr("a buffer holds no array"));
  EXPECT_THAT(refusal("c {a = " +
                      [] {
                        std::string deep;
                        for (int i = 0; i < 100'000; ++i) deep += "b(";
                        return deep;
                      }()),
              HasSubstr("within"));
  EXPECT_THAT(refusal("c {ROOT a = token[] after-all()\nROOT b = token[] after-all()}"),
              HasSubstr("two roots"));
  EXPECT_THAT(refusal("c {a = f99[] after-all()}"), HasSubstr("f99 is no element type"));
  EXPECT_THAT(refusal("c {a = f32[2,3]{1} after-all()}"), HasSubstr("a layout of 2 dimensions"));
  EXPECT_THAT(refusal("c {a = f32[2,3]{1,1} after-all()}"), HasSubstr("a layout of 2 dimensions"));
  EXPECT_THAT(refusal("c {a = f32[99999999999999999999] after-all()}"), HasSubstr("64 bits"));
  EXPECT_THAT(refusal("c {a = f32[-1] after-all()}"), HasSubstr("negative"));
  EXPECT_THAT(refusal("c {a = f32[] custom-call(), window={size=2x2 stride=1}}"),
              HasSubstr("lengths"));
  EXPECT_THAT(refusal("c {a = f32[] custom-call(), dim_labels=b0f_0i->b0f}"), HasSubstr("lacks"));
  EXPECT_THAT(refusal("c {a = f32[] custom-call(), dim_labels=b0f_io->bf}"),
              HasSubstr("different numbers of dimensions"));
  EXPECT_THAT(refusal("c {a = f32[] custom-call(), dim_labels=b0ff_0io->b0f}"),
              HasSubstr("the label b0ff of a convolution"));
  EXPECT_THAT(refusal("c {a = f32[] call-start()}"), HasSubstr("dump the module as a proto"));
  EXPECT_THAT(refusal("c {a = " + std::string(100'000, '(')), HasSubstr("tuples within tuples"));
  EXPECT_THAT(refusal("c {a = (f32[]) constant" + std::string(100'000, '(')),
              HasSubstr("brackets"));
  EXPECT_THAT(refusal("c {a = f32[] after-all(), m={\"x"), HasSubstr("no end"));
  EXPECT_THAT(refusal("c {a = f32[] after-all(), m={\"\\"), HasSubstr("no end"));
  EXPECT_THAT(refusal("/* x"), HasSubstr("comment"));
}

TEST(TextReader, RefusesDimensionsThatATensorDoesNotHave) {
  const auto of_a = [](const std::string& text) {
    return refusal(
        "less {l = pred[] parameter(0)}\nc {a = f32[2,3] parameter(0)\nz = f32[] constant(0)\nb "
        "= " +
        text + "}");
  };
  EXPECT_EQ(of_a("f32[2,2] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}"), "");
  EXPECT_THAT(
      of_a("f32[2,2] dot(a, a), lhs_contracting_dims={9}, rhs_contracting_dims={1}"),
      HasSubstr("f.txt: b in c: names dimensions twice, or others than those of a tensor of 2"));
  EXPECT_EQ(of_a("f32[2,9,3] broadcast(a), dimensions={0,2}"), "");
  EXPECT_EQ(of_a("f32[2,3] convolution(a, a), dim_labels=bf_io->bf"), "");
  for (const char* text :
       {"f32[2,2] dot(a, a), rhs_batch_dims={0}, rhs_contracting_dims={0}",
        "f32[3,2] transpose(a), dimensions={2,0}", "f32[3,2] transpose(a), dimensions={1,1}",
        "f32[2,9,3] broadcast(a), dimensions={0,3}",
        "f32[2] reduce(a, z), dimensions={2}, to_apply=less", "f32[2,3] iota(), iota_dimension=2",
        "f32[2,3] convolution(a, a), window={size=2}, dim_labels=b0f_0io->b0f"})
    EXPECT_THAT(of_a(text), HasSubstr("f.txt: b in c: names dimensions twice, or others")) << text;
  // Opcodes that are not known may mean others.
  EXPECT_EQ(of_a("f32[2] unknown(a), dimensions={7}"), "");
}

// As XLA's parser does.
TEST(TextReader, RefusesNamesThatDoNotStandAbove) {
  EXPECT_THAT(refusal("c {\na = f32[] negate(b)\nb = f32[] parameter(0)}"),
              HasSubstr("line 3: no operand b stands above"));
  EXPECT_THAT(refusal("c {\na = f32[] call(), to_apply=d}\nd {a = token[] after-all()}"),
              HasSubstr("line 3: no computation d stands above"));
  EXPECT_THAT(refusal("c {\na = f32[] call(), to_apply=c}"), HasSubstr("no computation c"));
  EXPECT_THAT(refusal("c {\n1a = f32[] parameter(0)}"), HasSubstr("line 3: expected a name"));
  EXPECT_THAT(refusal("c {a= f32[] parameter(0)}"), HasSubstr("no space between a and \"=\""));
  EXPECT_THAT(refusal("c {a = f32[] % negate()}"), HasSubstr("expected a name"));
}

TEST(TextReader, RefusesAttributesOfOtherOpcodes) {
  const auto of_a = [](const std::string& text) {
    return refusal("c {a = f32[2] parameter(0)\n" + text + "}");
  };
  EXPECT_THAT(of_a("b = f32[] convolution(a, a)"), HasSubstr("lacks its attribute dim_labels"));
  EXPECT_THAT(of_a("b = f32[] transpose(a)"), HasSubstr("lacks its attribute dimensions"));
  EXPECT_THAT(of_a("b = f32[2] broadcast(a)"), HasSubstr("lacks its attribute dimensions"));
  EXPECT_THAT(of_a("b = f32[] conditional(a)"), HasSubstr("lacks its attribute true_comp"));
  EXPECT_THAT(of_a("b = f32[] get-tuple-element(a)"), HasSubstr("lacks its attribute index"));
  EXPECT_THAT(of_a("b = f32[] add(a, a), dimensions={0}"), HasSubstr("takes no attribute"));
  EXPECT_THAT(of_a("b = f32[] add(a, a), index=0"), HasSubstr("add takes no attribute index"));
  EXPECT_THAT(of_a("b = f32[] add(a, a), n=1, m=2, n=1"), HasSubstr("attribute n stands twice"));
  EXPECT_THAT(of_a("b = f32[] add(a)"), HasSubstr("add takes 2 operands, not 1"));
  EXPECT_THAT(refusal("c {a = f32[] parameter(0)}, index=0"), HasSubstr("computation takes no"));
  // Other versions of XLA: opcodes with any, and attributes that are not known, for any opcode.
  EXPECT_EQ(of_a("b = f32[2] unknown(a), dimensions={0}, index={x}"), "");
  EXPECT_EQ(of_a("b = f32[2] add(a, a), new_one={x=\"}\"}"), "");
}

TEST(TextReader, RefusesValuesOfOtherForms) {
  const auto of_a = [](const std::string& text) {
    return refusal("c {a = f32[2] parameter(0)\nb = f32[] " + text + "}");
  };
  EXPECT_THAT(of_a("get-tuple-element(a), index=x"), HasSubstr("an integer"));
  EXPECT_THAT(of_a("dot(a, a), lhs_contracting_dims=0"), HasSubstr("expected \"{\""));
  EXPECT_THAT(of_a("compare(a, a), direction=EE"), HasSubstr("EE is no direction"));
  EXPECT_THAT(of_a("cholesky(a), lower=1"), HasSubstr("expected a name"));
  EXPECT_THAT(of_a("cholesky(a), lower=yes"), HasSubstr("expected true or false"));
  EXPECT_THAT(of_a("custom-call(a), custom_call_target=x"), HasSubstr("expected a string"));
  EXPECT_THAT(of_a("custom-call(a), custom_call_target=\"x\", operand_layout_constraints={f3[2]}"),
              HasSubstr("f3 is no element type"));
  EXPECT_THAT(of_a("cosine(a), metadata="), HasSubstr("a value is missing"));
  EXPECT_THAT(of_a("parameter(0)"), HasSubstr("two parameters have the number 0"));
  EXPECT_THAT(of_a("parameter(-1)"), HasSubstr("a parameter has the number -1"));
}

TEST(TextReader, RefusesLiteralsOfOtherShapes) {
  const auto of = [](const std::string& text) { return refusal("c {a = " + text + "}"); };
  EXPECT_EQ(of("s32[2,0,1] constant({{}, {}})"), "");
  EXPECT_EQ(of("c64[2] constant({(1, -2), (nan, -inf)})"), "");
  EXPECT_EQ(of("f32[2,3] constant({...})"), "");
  EXPECT_EQ(of("pred[9] constant(true)"), "");
  EXPECT_EQ(of("(f32[], s32[2]) constant((1, {2, 3}))"), "");
  EXPECT_THAT(of("s32[2,2] constant({{1, 2}, {3}})"), HasSubstr("1 elements in a literal"));
  EXPECT_THAT(of("s32[] constant()"), HasSubstr("expected a number"));
  EXPECT_THAT(of("s32[] constant(b)"), HasSubstr("expected a number, not \"b\""));
  std::string ones = "1";
  for (int i = 0; i < 300; ++i) ones += ",1";
  EXPECT_THAT(of("s32[" + ones + "] constant(" + std::string(301, '{')),
              HasSubstr("more than 200 dimensions"));
}

TEST(TextReader, RefusesHeadsOfOtherForms) {
  const auto with = [](const std::string& head, const std::string& signature = "") {
    return message_of<DataError>([&] {
      read_text_module("HloModule m" + head + "\nc " + signature + "{a = f32[] parameter(0)}", "f");
    });
  };
  EXPECT_EQ(with(", a_new_one={1}, is_scheduled=true", "(a: f32[], b: (s32[])) -> f32[] "), "");
  EXPECT_THAT(with(", entry_computation_layout={(f32[2]{1})->f32[]}"), HasSubstr("a layout of 1"));
  EXPECT_THAT(with(", entry_computation_layout={(f32[2]}"), HasSubstr("expected \")\""));
  EXPECT_THAT(with(", slice={[0:1]}"), HasSubstr("HloModule takes no attribute slice"));
  EXPECT_THAT(with(", x"), HasSubstr("expected \"=\" right behind x"));
  EXPECT_THAT(with("", "(a f32[]) -> f32[] "), HasSubstr("expected \":\""));
  EXPECT_THAT(with("\nStackFrames\n1 {file_location_id 1}"), HasSubstr("expected \"=\""));
}

// A key within a name, or as the end of another key, is no key.
TEST(TextReader, TakesNoSourceFromAName) {
  EXPECT_EQ(
      source(R"(op_name="f( source_line=5 \" source_file=x" source_file="b.py" source_line=12)"),
      "b.py:12");
  EXPECT_EQ(source("op_name=\"{stack_frame_id=2\" stack_frame_id=5"), "a.py:7");
}

}  // namespace
}  // namespace tpudist::test
