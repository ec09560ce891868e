// Each target of the fuzzer on its seeds, on the inputs that were found to be faults once (found/), and on
// seeded mutations of them: what is not sound is refused in one line.

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "core/random.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/support/damage.hpp"
#include "tests/support/paths.hpp"

namespace tpudist::test {
namespace {

constexpr std::size_t kLargestMutated = 16 << 10;

class Fuzz : public ::testing::TestWithParam<FuzzTarget> {
 protected:
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
  void TearDown() override { spdlog::set_level(spdlog::level::info); }

  // Of what a fault was made, in bytes that can be written to a file.
  static bool read(const std::string& bytes, const std::string& what) {
    try {
      return GetParam().read(bytes);
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": " << error.what();
      return false;
    }
  }
};

TEST_P(Fuzz, ReadsOrRefusesSeeds) {
  const std::vector<std::string> seeds = GetParam().seeds();
  ASSERT_FALSE(seeds.empty());
  EXPECT_TRUE(read(seeds.front(), "the first seed"));
  int refused = 0;
  for (std::size_t i = 0; i < seeds.size(); ++i)
    refused += !read(seeds[i], fmt::format("seed {}", i));
  EXPECT_LT(refused, static_cast<int>(seeds.size()));
}

TEST_P(Fuzz, ReadsOrRefusesWhatWasFound) {
  const auto folder = fmt::format("tests/fuzz/found/{}", GetParam().name);
  if (!std::filesystem::is_directory(source_folder() / folder)) return;
  int number = 0;
  for (const std::string& bytes : files_below(folder, "", 1 << 20))
    read(bytes, fmt::format("file {} of {}", number++, folder));
}

TEST_P(Fuzz, ReadsOrRefusesWhatIsCutShort) {
  const std::string whole = GetParam().seeds().front();
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 1 + whole.size() / 500)
    read(whole.substr(0, bytes), fmt::format("the first {} bytes", bytes));
}

// One or two damages each; TPUDIST_DAMAGES says how many are tried.
TEST_P(Fuzz, ReadsOrRefusesMutations) {
  std::vector<std::string> seeds = GetParam().seeds();
  std::erase_if(
      seeds, [](const std::string& seed) { return seed.empty() || seed.size() > kLargestMutated; });
  int refused = 0;
  const int count = damage_count(1000);
  for (int seed = 0; seed < count; ++seed) {
    const auto number = static_cast<std::uint64_t>(seed);
    CounterRng random(mix_key({number, 0x66757a7a}));
    std::string bytes = damaged(seeds[random.below(seeds.size())], number);
    if (!bytes.empty() && random.below(2)) bytes = damaged(bytes, number + 1'000'000);
    refused += !read(bytes, fmt::format("mutation {}", seed));
  }
  EXPECT_GT(refused, count / 20);
}

INSTANTIATE_TEST_SUITE_P(Targets, Fuzz, ::testing::ValuesIn(fuzz_targets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tpudist::test
