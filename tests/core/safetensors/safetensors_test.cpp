#include <gmock/gmock.h>

#include <rapidcheck.h>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/safetensors/safetensors_file.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

// The files are those of tests/golden/safetensors_files.py, written by the safetensors package.

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tpudist::test::TempDir;

std::filesystem::path golden(const std::string& name) {
  return test::source_folder() / "tests/core/safetensors/files" / name;
}

TEST(Safetensors, ReadsEveryTypeThatThePackageWrites) {
  SafetensorsFile file(golden("all_types.safetensors"));
  EXPECT_TRUE(file.metadata().empty());
  const double largest[] = {std::numeric_limits<double>::max(), std::numeric_limits<float>::max(),
                            65504, std::ldexp(255.0, 120)};
  const char* const names[] = {"f64", "f32", "f16", "bf16"};
  for (int t = 0; t < 4; ++t) {
    EXPECT_EQ(file.tensor(names[t]).shape, (std::vector<std::int64_t>{3, 4}));
    const std::vector<double> values = file.doubles(names[t]);
    const std::vector<float> narrow = file.floats(names[t]);
    ASSERT_EQ(values.size(), 12u);
    for (int i = 0; i < 11; ++i) {
      EXPECT_EQ(values[i], (i - 3) * 0.375) << names[t];
      EXPECT_EQ(narrow[i], static_cast<float>((i - 3) * 0.375)) << names[t];
    }
    EXPECT_EQ(values[11], largest[t]) << names[t];
  }
  for (const char* name : {"i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"})
    EXPECT_THAT(file.integers(name), ElementsAre(0, 1, 2, 3, 4, 5)) << name;
  EXPECT_THAT(file.integers("boolean"), ElementsAre(1, 0, 1));
  EXPECT_THAT(file.integers("i64.ends"), ElementsAre(std::numeric_limits<std::int64_t>::min(),
                                                     std::numeric_limits<std::int64_t>::max()));
  EXPECT_THROW(file.integers("u64.large"), DataError);
}

TEST(Safetensors, ReadsTheEndsOfHalfPrecision) {
  SafetensorsFile file(golden("all_types.safetensors"));
  const std::vector<float> small = file.floats("f16.small");
  EXPECT_EQ(std::bit_cast<std::uint32_t>(small[0]), 0u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(small[1]), 0x80000000u);
  EXPECT_EQ(small[2], std::ldexp(1.0f, -24));
  EXPECT_EQ(small[3], -3 * std::ldexp(1.0f, -24));
  EXPECT_EQ(small[4], std::ldexp(1.0f, -14));
  EXPECT_EQ(small[5], INFINITY);
  EXPECT_EQ(small[6], -INFINITY);
  EXPECT_TRUE(std::isnan(small[7]));
}

TEST(Safetensors, WritesTheBytesOfThePackage) {
  SafetensorsWriter writer;
  std::vector<float> weight;
  for (int i = 0; i < 6; ++i) weight.push_back(static_cast<float>(i) / 8 - 0.25f);
  writer.add("blocks.0.weight", {2, 3}, weight);
  writer.add("blocks.0.bias", {3}, std::vector<float>{1.5f, -2.0f, 1e-40f});
  writer.add("scalar", {}, std::vector<float>{0.1f});
  writer.add("empty", {0, 4}, std::vector<float>{});
  writer.add("counts", {3}, std::vector<std::int64_t>{3, -1, std::int64_t{1} << 40});
  writer.add("mean", {2}, std::vector<double>{0.1, 1e300});
  writer.add("a \"quoted\" n\xc3\xa4me", {1}, std::vector<float>{7});
  writer.add_metadata("format", "pt");
  EXPECT_EQ(writer.bytes(), read_text_file(golden("written_here.safetensors")));
}

TEST(Safetensors, RefusesTensorsThatDoNotFitTheirShape) {
  SafetensorsWriter writer;
  EXPECT_THROW(writer.add("a", {2, 3}, std::vector<float>(5)), Error);
  writer.add("a", {5}, std::vector<float>(5));
  EXPECT_THROW(writer.add("a", {5}, std::vector<float>(5)), Error);
}

TEST(Safetensors, NamesWhatIsNotThere) {
  SafetensorsFile file(golden("written_here.safetensors"));
  EXPECT_EQ(file.find("blocks.0.weights"), nullptr);
  EXPECT_THAT(test::message_of<DataError>([&] { file.floats("blocks.0.weights"); }),
              HasSubstr("written_here.safetensors: holds no tensor \"blocks.0.weights\" (there is "
                        "\"blocks.0.weight\")"));
  EXPECT_THROW(file.floats("counts"), DataError);
  EXPECT_THROW(file.integers("scalar"), DataError);
  EXPECT_THROW(SafetensorsFile(golden("missing.safetensors")), IoError);
  EXPECT_THROW(SafetensorsFile(golden("")), IoError);
}

// All tensors of random names, shapes and bits come back.
TEST(Safetensors, ReadsWhatItWrote) {
  const TempDir folder;
  const auto holds = [&](const std::map<std::string, std::vector<float>>& floats,
                         const std::map<std::string, std::vector<double>>& doubles,
                         const std::vector<std::int64_t>& integers) {
    SafetensorsWriter writer;
    for (const auto& [name, values] : floats)
      writer.add("f" + name, {1, static_cast<std::int64_t>(values.size())}, values);
    for (const auto& [name, values] : doubles)
      writer.add("d" + name, {static_cast<std::int64_t>(values.size()), 1, 1}, values);
    writer.add("integers", {static_cast<std::int64_t>(integers.size())}, integers);
    const auto path = folder / "random.safetensors";
    writer.write(path);
    SafetensorsFile file(path);
    RC_ASSERT(file.tensors().size() == floats.size() + doubles.size() + 1);
    const auto same = [](const auto& a, const auto& b) {
      return a.size() == b.size() &&
             (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
    };
    for (const auto& [name, values] : floats) RC_ASSERT(same(file.floats("f" + name), values));
    for (const auto& [name, values] : doubles) RC_ASSERT(same(file.doubles("d" + name), values));
    RC_ASSERT(file.integers("integers") == integers);
  };
  EXPECT_TRUE(rc::check("what was written is read", [&] {
    const auto printable = rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
    holds(*rc::gen::container<std::map<std::string, std::vector<float>>>(
              printable, rc::gen::arbitrary<std::vector<float>>()),
          *rc::gen::container<std::map<std::string, std::vector<double>>>(
              printable, rc::gen::arbitrary<std::vector<double>>()),
          *rc::gen::arbitrary<std::vector<std::int64_t>>());
  }));
}

}  // namespace
}  // namespace tpudist
