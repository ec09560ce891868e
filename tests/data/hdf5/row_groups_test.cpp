#include "data/hdf5/row_groups.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "core/hash.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;

// Groups rows with hashes of only so many bits, so that unequal rows meet in one bucket.
std::vector<std::int32_t> grouped(const std::vector<std::vector<std::uint8_t>>& rows, int hash_bits,
                                  std::size_t budget = 1 << 20) {
  const TempDir folder;
  ThreadPool pool(1);
  const Hdf5Id file = create_hdf5(folder / "x.h5");
  const auto count = static_cast<std::int64_t>(rows.size());
  const auto width = static_cast<std::int64_t>(rows.at(0).size());
  Hdf5Dataset dataset = Hdf5Dataset::create(file, "x", ElementType::u8, {count, width}, "x");
  std::vector<std::uint8_t> all;
  std::vector<std::uint64_t> hashes;
  for (const auto& row : rows) {
    all.insert(all.end(), row.begin(), row.end());
    const std::uint64_t hash = hash64(std::as_bytes(std::span(row)));
    hashes.push_back(hash_bits == 0 ? 0 : hash >> (64 - hash_bits));
  }
  dataset.write_all(std::as_bytes(std::span(all)), pool);
  return group_equal_rows(dataset, hashes, budget);
}

TEST(RowGroups, NumbersByFirstOccurrence) {
  EXPECT_THAT(grouped({{5}, {9}, {5}, {1}, {9}, {5}}, 64), ElementsAre(0, 1, 0, 2, 1, 0));
}

TEST(RowGroups, EqualHashesDoNotMakeRowsEqual) {
  EXPECT_THAT(grouped({{5}, {9}, {5}, {1}, {9}, {1}, {7}}, 0), ElementsAre(0, 1, 0, 2, 1, 2, 3));
}

RC_GTEST_PROP(RowGroups, AgreeWithAMapOfRows, ()) {
  const auto width = *rc::gen::inRange<std::size_t>(1, 40);
  const auto values = *rc::gen::inRange(2, 6);
  const auto rows = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::vector<std::uint8_t>>>(
      rc::gen::map(rc::gen::inRange(0, values), [&](int value) {
        std::vector<std::uint8_t> row(width, 3);
        row.back() = static_cast<std::uint8_t>(value);
        return row;
      })));
  const auto bits = *rc::gen::element(0, 1, 8, 64);
  const auto budget = *rc::gen::element<std::size_t>(1, 100, 1 << 20);
  std::map<std::vector<std::uint8_t>, std::int32_t> numbers;
  std::vector<std::int32_t> expected;
  for (const auto& row : rows) {
    expected.push_back(
        numbers.try_emplace(row, static_cast<std::int32_t>(numbers.size())).first->second);
  }
  RC_ASSERT(grouped(rows, bits, budget) == expected);
}

TEST(RowGroups, GoThroughManyChunksWithALittleMemory) {
  std::vector<std::vector<std::uint8_t>> rows;
  for (int i = 0; i < 3000; ++i) rows.emplace_back(1000, static_cast<std::uint8_t>(i * 7 % 130));
  const auto groups = grouped(rows, 4, 5000);
  for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(groups[i], static_cast<int>(i % 130));
}

}  // namespace
}  // namespace tpudist::test
