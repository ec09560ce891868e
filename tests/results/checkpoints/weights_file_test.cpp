#include "results/checkpoints/weights_file.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include "core/error.hpp"
#include "core/safetensors/safetensors_file.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

// A weight [3, 2] that PyTorch stores as [2, 3], a bias, an embedding and a statistic.
ParameterTable table() {
  ParameterTable table;
  table.add({"embedding.weight", {2, 2}, ParameterGroup::embeddings, {}, "", false});
  table.add({"layer.weight", {3, 2}, ParameterGroup::weights, {}, "layer.lin.weight", true});
  table.add({"layer.bias", {2}, ParameterGroup::biases, {}, "layer.lin.bias", false});
  table.add({"input.mean", {2}, ParameterGroup::statistics, {}, "", false});
  return table;
}

// Entry e holds 10 e + 0, 1, 2, ...; padding is zero.
std::vector<float> numbers(const ParameterTable& table) {
  std::vector<float> flat(static_cast<std::size_t>(table.length()));
  int e = 0;
  for (const ParameterEntry& entry : table.entries()) {
    for (std::int64_t i = 0; i < entry.size(); ++i)
      flat[entry.offset + i] = static_cast<float>(10 * e + i);
    ++e;
  }
  return flat;
}

TEST(WeightsFile, HasTheNamesAndLayoutsOfPyTorch) {
  const TempDir folder;
  const auto path = folder / "w.safetensors";
  write_weights(path, table(), numbers(table()), {{"member", "3"}});
  SafetensorsFile file(path);
  EXPECT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.tensor("layer.lin.weight").shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_THAT(file.floats("layer.lin.weight"), ElementsAre(10, 12, 14, 11, 13, 15));
  EXPECT_THAT(file.floats("embedding.weight"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(file.floats("layer.lin.bias"), ElementsAre(20, 21));
  EXPECT_THAT(file.floats("input.mean"), ElementsAre(30, 31));
  EXPECT_EQ(file.metadata().at("member"), "3");
}

TEST(WeightsFile, ComesBackBitByBit) {
  const TempDir folder;
  const auto path = folder / "w.safetensors";
  std::vector<float> flat = numbers(table());
  flat[0] = -0.0f;
  flat[1] = std::numeric_limits<float>::denorm_min();
  flat[2] = 0.1f;
  write_weights(path, table(), flat, {});
  std::vector<float> read(flat.size());
  EXPECT_TRUE(read_weights(path, table(), read).empty());
  EXPECT_EQ(read, flat);
  EXPECT_TRUE(std::signbit(read[0]));
}

// A file of all that the table has, changed by `change`, and what is said of it.
class Refusals : public FolderTest {
 protected:
  using Tensors = std::map<std::string, std::vector<std::int64_t>>;

  std::string said_of(const std::function<void(Tensors&)>& change, float value = 1) {
    Tensors tensors{{"embedding.weight", {2, 2}},
                    {"layer.lin.weight", {2, 3}},
                    {"layer.lin.bias", {2}},
                    {"input.mean", {2}}};
    change(tensors);
    SafetensorsWriter writer;
    for (const auto& [name, shape] : tensors) {
      std::int64_t size = 1;
      for (const std::int64_t axis : shape) size *= axis;
      writer.add(name, shape, std::vector<float>(static_cast<std::size_t>(size), value));
    }
    writer.write(folder_ / "w.safetensors");
    read_.assign(static_cast<std::size_t>(table().length()), 5);
    const std::string message = message_of<DataError>(
        [&] { absent_ = read_weights(folder_ / "w.safetensors", table(), read_); });
    EXPECT_THAT(message, Not(HasSubstr("\n")));
    return message;
  }
  std::vector<float> read_;
  std::vector<std::string> absent_;
};

TEST_F(Refusals, TakeWhatFitsAndStatisticsThatAreAbsent) {
  EXPECT_EQ(said_of([](Tensors&) {}), "");
  EXPECT_EQ(said_of([](Tensors& tensors) { tensors.erase("input.mean"); }), "");
  EXPECT_THAT(absent_, ElementsAre("input.mean"));
  EXPECT_EQ(read_[static_cast<std::size_t>(table().find("input.mean").offset)], 5);
}

TEST_F(Refusals, NameTheFirstTensorThatDoesNotFit) {
  EXPECT_THAT(said_of([](Tensors& tensors) { tensors.erase("layer.lin.bias"); }),
              HasSubstr("w.safetensors: holds no tensor \"layer.lin.bias\", which the network has "
                        "with the shape [2]"));
  EXPECT_THAT(said_of([](Tensors& tensors) {
                tensors.erase("layer.lin.bias");
                tensors["layer.lin.bia"] = {2};
              }),
              HasSubstr("(did it mean \"layer.lin.bia\"?)"));
  EXPECT_THAT(said_of([](Tensors& tensors) {
                tensors["layer.lin.weight"] = {3, 2};
              }),
              HasSubstr("tensor \"layer.lin.weight\" has the shape [3, 2], but the network's has "
                        "[2, 3] (as PyTorch has it: outputs, inputs)"));
  EXPECT_THAT(said_of([](Tensors& tensors) { tensors["input.mean"] = {3}; }),
              HasSubstr("\"input.mean\" has the shape [3]"));
  EXPECT_THAT(said_of([](Tensors& tensors) { tensors["layer.1.weight"] = {1}; }),
              HasSubstr("tensor \"layer.1.weight\" of shape [1] is of another network: this one "
                        "has 4 tensors"));
  EXPECT_THAT(said_of([](Tensors&) {}, std::nanf("")),
              HasSubstr("is not finite in float32 at index 0"));
  EXPECT_THAT(said_of([](Tensors&) {}, INFINITY), HasSubstr("(inf)"));
}

TEST(WeightsFile, RefusesScalesAndTemperaturesWithoutMeaning) {
  const TempDir folder;
  ParameterTable table;
  table.add({"encoder.node.scale", {2}, ParameterGroup::statistics});
  table.add({"blocks.1.config_attention.temperature", {1}, ParameterGroup::norms});
  const auto said_of = [&](float scale, float temperature) {
    SafetensorsWriter writer;
    writer.add("encoder.node.scale", {2}, std::vector<float>{0, scale});
    writer.add("blocks.1.config_attention.temperature", {1}, std::vector<float>{temperature});
    writer.write(folder / "w.safetensors");
    std::vector<float> flat(static_cast<std::size_t>(table.length()));
    return message_of<DataError>([&] { read_weights(folder / "w.safetensors", table, flat); });
  };
  EXPECT_EQ(said_of(0, 0.5f), "");
  EXPECT_EQ(said_of(0, -0.5f), "");  // training may end there
  EXPECT_THAT(
      said_of(-2, 1),
      HasSubstr("w.safetensors: tensor \"encoder.node.scale\" is negative at index 1 (-2)"));
  for (const float zero : {0.0f, -0.0f, 1e-45f}) {
    EXPECT_THAT(said_of(1, zero), HasSubstr("states are divided by it, so it must not be 0"));
  }
}

TEST(WeightsFile, RefusesWholeNumbers) {
  const TempDir folder;
  SafetensorsWriter writer;
  const std::vector<std::int64_t> numbers(4);
  writer.add("embedding.weight", TensorType::i64, {2, 2}, std::as_bytes(std::span(numbers)));
  writer.write(folder / "w.safetensors");
  std::vector<float> flat(static_cast<std::size_t>(table().length()));
  EXPECT_THROW(read_weights(folder / "w.safetensors", table(), flat), DataError);
}

}  // namespace
}  // namespace tpudist::test
