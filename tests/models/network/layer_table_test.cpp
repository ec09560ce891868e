#include "models/network/network_config.hpp"

#include <gtest/gtest.h>

#include "models/network/executor.hpp"

namespace tpudist {
namespace {

TEST(LayerTable, CountsWhatLayersHold) {
  ConfigDocument document = ConfigDocument::parse(
      "encoder: {opcode_width: 4, node_columns: 0-9, node_width: 0, node_transform: standardised, "
      "width: 8}\n"
      "blocks: [{layer: residual, blocks: [{layer: instance_norm}, {layer: gcn, width: 8}]}, "
      "{layer: gin, width: 6, hidden: 5}]\n"
      "readout: {pool: max+mean, widths: [3]}\n",
      "table.yaml");
  const NetworkConfig config = NetworkConfig::read(document.root(), kLayoutSchema);
  document.finish();
  const ParameterTable parameters = composed_parameters(config, kLayoutSchema);
  const std::vector<LayerRow> rows = layer_table(config, kLayoutSchema, parameters);
  ASSERT_EQ(rows.size(), 6u);
  // Statistics are measured and not counted.
  EXPECT_EQ(rows[0].parameters, kOpcodes * 4 + (4 + 10 + kLayoutConfigFeatures) * 8 + 8);
  EXPECT_EQ(rows[1].name, "residual");
  EXPECT_EQ(rows[1].parameters, 8 * 8 + 8);
  EXPECT_EQ(rows[1].steps, 3);
  EXPECT_EQ(rows[2].name, "instance_norm");
  EXPECT_EQ(rows[2].depth, 1);
  EXPECT_EQ(rows[2].parameters, 0);
  EXPECT_EQ(rows[3].first_step, 1);
  EXPECT_EQ(rows[3].steps, 2);  // counts neighbours, then adds them up
  EXPECT_EQ(rows[4].name, "gin 6 through 5, sum from consumers, relu");
  EXPECT_EQ(rows[4].first_step, 3);
  EXPECT_EQ(rows[4].parameters, 8 * 5 + 5 + 5 * 6 + 6);
  EXPECT_EQ(rows[5].name, "readout max+mean, linear 3, linear 1");
  EXPECT_EQ(rows[5].parameters, 12 * 3 + 3 + 3 + 1);
  std::int64_t sum = 0;
  for (const LayerRow& row : rows) sum += row.depth == 0 ? row.parameters : 0;
  EXPECT_EQ(sum, parameters.parameters());
}

}  // namespace
}  // namespace tpudist
