// The weights of every layer go through safetensors files, and fit no other network.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "models/network/executor.hpp"
#include "results/checkpoints/weights_file.hpp"
#include "tests/models/layers/layer_spellings.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ParameterTable table_of(const LayerSpelling& spelling) {
  ConfigDocument document = ConfigDocument::parse(
      "{encoder: {width: 6}, blocks: [" + spelling.yaml + ", {layer: linear, width: 3}]}",
      "model.yaml");
  const NetworkConfig config = NetworkConfig::read(document.root());
  document.finish();
  return composed_parameters(config, kLayoutSchema);
}

// Names and shapes, which decide whether weights fit.
std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes_of(
    const ParameterTable& table) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes;
  for (const ParameterEntry& entry : table.entries())
    shapes.emplace_back(entry.torch_name, entry.shape);
  std::ranges::sort(shapes);
  return shapes;
}

TEST(LayerWeights, ComeBackAndFitNoOtherNetwork) {
  const tpudist::test::TempDir folder;
  int refused = 0;
  for (const LayerSpelling& spelling : layer_spellings()) {
    SCOPED_TRACE(spelling.name);
    const ParameterTable table = table_of(spelling);
    std::vector<float> flat(table.length()), read(table.length());
    initialise_parameters(table, flat, 5);
    const auto file = folder / (spelling.name + ".safetensors");
    write_weights(file, table, flat, {});
    EXPECT_TRUE(read_weights(file, table, read).empty());
    EXPECT_EQ(read, flat);
    for (const LayerSpelling& other : layer_spellings()) {
      const ParameterTable another = table_of(other);
      if (shapes_of(another) == shapes_of(table)) continue;
      std::vector<float> target(another.length());
      try {
        read_weights(file, another, target);
        ADD_FAILURE() << "fits " << other.name;
      } catch (const DataError& error) {
        EXPECT_THAT(error.what(),
                    AllOf(HasSubstr(file.string()), HasSubstr("blocks."), Not(HasSubstr("\n"))));
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace tpudist::test
