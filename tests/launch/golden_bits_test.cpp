#include <map>
#include <string>

#include "tests/launch/ranks_case.hpp"

// Every x86-64 CPU with fused multiply-adds trains the same parameters, whatever vectors it has.
namespace tpudist::test {
namespace {

// The parameters after four steps of small networks, made once and kept here.
struct Golden {
  const char *model, *parameters;
};

const std::map<std::string, Golden> kGolden{
    {"SAGE, mean",
     {"{encoder: {opcode_width: 4, node_width: 6, width: 8}, blocks: [{layer: sage, width: 24, "
      "repeat: 2}], readout: {pool: sum, scale: 0.1}}",
      "bebf2b3b79b325c0"}},
    {"SAGE, maximum, GELU and a norm of layers",
     {"{encoder: {opcode_width: 4, node_transform: log, width: 12}, blocks: [{layer: sage, width: "
      "20, aggregation: max, activation: gelu}, {layer: layer_norm}, {layer: prelu}], "
      "readout: {pool: mean}}",
      "83cae914c2a61b84"}},
    {"GIN and GCN with norms of graphs",
     {"{encoder: {opcode_width: 4, width: 12}, blocks: [{layer: gin, width: 12, activation: silu}, "
      "{layer: graph_norm}, {layer: gcn, width: 20, activation: elu}, {layer: instance_norm}, "
      "{layer: l2_norm}], readout: {pool: sum, scale: 0.1}}",
      "bd251e5d905ff457"}},
    {"a gate over configurations",
     {"{encoder: {opcode_width: 4, width: 12}, blocks: [{layer: sage, width: 12}, {layer: "
      "config_attention}, {layer: channel_attention}, {layer: dropout, rate: 0.2}], readout: "
      "{pool: sum, scale: 0.1}}",
      "e7d2d8bc3d53c8a8"}},
    {"PNA",
     {"{encoder: {opcode_width: 4, width: 8}, blocks: [{layer: pna, width: 12}], readout: {pool: "
      "max}}",
      "e35f9cc63ccd60b3"}},
    {"attention between nodes",
     {"{encoder: {opcode_width: 4, width: 12}, blocks: [{layer: self_attention, width: 12, heads: 2, "
      "others: 0.5}, {layer: linear_attention, width: 12, heads: 2}], readout: {pool: sum, scale: "
      "0.1}}",
      "451b6c2d54f9e89b"}},
    {"GAT, both versions",
     {"{encoder: {opcode_width: 4, width: 12}, blocks: [{layer: gat, width: 6, heads: 2}, {layer: "
      "gatv2, width: 6, heads: 2, join: mean}], readout: {pool: sum, scale: 0.1}}",
      "de1c7d27d6fdb6e8"}},
    {"an MLP of edges",
     {"{encoder: {opcode_width: 4, width: 12}, blocks: [{layer: edge_mlp, width: 4, config_width: "
      "4}], readout: {pool: sum, scale: 0.1}}",
      "f1b5b18204895fe9"}},
};

class GoldenBits : public Ranks {
 protected:
  // The parameters on a CPU that is held to `vectors`; "": to none.
  static std::string parameters(const std::string& vectors, const Golden& golden, int number) {
    const std::string run = "golden-" + vectors + std::to_string(number),
                      prefix = vectors.empty() ? "" : "TPUDIST_CPU=" + vectors + " ";
    const Outcome outcome = run_program(
        train_arguments(run, "'model=" + std::string(golden.model) +
                                 "' 'evaluate.slate={configs: 8}'") +
            " 2>&1",
        prefix);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return value_of(outcome.output, "parameters: ");
  }
};

TEST_F(GoldenBits, AreThoseOfEveryCpu) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("fma")) GTEST_SKIP() << "this CPU has no fused multiply-adds";
  int number = 0;
  for (const auto& [name, golden] : kGolden) {
    ++number;
    for (const char* vectors : {"", "avx2", "plain"})
      EXPECT_EQ(parameters(vectors, golden, number), golden.parameters) << name << " " << vectors;
  }
#else
  GTEST_SKIP() << "the bits are those of x86-64";
#endif
}

TEST_F(Ranks, OnDifferentCpusTrainTogether) {
  const std::string arguments = train_arguments("mixed");
  const std::string mixed =
      output_of(run_ranks({{arguments}, {arguments, "-x TPUDIST_CPU=plain"}}));
  EXPECT_EQ(value_of(mixed, "parameters: "),
            value_of(output_of(train(0, "alone")), "parameters: "));
  EXPECT_EQ(count_of(mixed, "kernels"), 0) << mixed;
}

}  // namespace
}  // namespace tpudist::test
