#include "core/hash.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(Hash, IsXxh3) {
  // From the reference implementation's own sanity checks.
  EXPECT_EQ(to_hex(hash64(std::string_view())), "2d06800538d394c2");
  EXPECT_EQ(hash64(std::string_view()), hash64(std::span<const std::byte>()));
}

TEST(Hash, ComesBackFromItsText) {
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{255}, ~std::uint64_t{0}}) {
    EXPECT_EQ(from_hex(to_hex(value)), value);
  }
  for (const char* text : {"", "ff", "00000000000000FF", " 0000000000000ff", "0x000000000000ff",
                           "-000000000000001", "00000000000000ff0", "000000000000000g"}) {
    EXPECT_EQ(from_hex(text), std::nullopt) << text;
  }
}

TEST(Hash, DependsOnSeed) {
  EXPECT_NE(hash64("text", 1), hash64("text", 2));
}

RC_GTEST_PROP(Hasher, DoesNotSeeHowBytesAreCut, (const std::string& text, std::uint64_t seed)) {
  const std::size_t cut = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
  Hasher hasher(seed);
  hasher.update(bytes_of(text).first(cut));
  hasher.update(bytes_of(text).subspan(cut));
  RC_ASSERT(hasher.digest() == hash64(text, seed));
}

TEST(Hasher, DigestLeavesTheStreamOpen) {
  Hasher hasher;
  hasher.update(bytes_of("ab"));
  const std::uint64_t middle = hasher.digest();
  EXPECT_EQ(hasher.digest(), middle);
  hasher.update(bytes_of("c"));
  EXPECT_EQ(hasher.digest(), hash64("abc"));
}

TEST(Hasher, KeepsNeighbouringTextsApart) {
  Hasher one, other;
  one.update("ab");
  one.update("c");
  other.update("a");
  other.update("bc");
  EXPECT_NE(one.digest(), other.digest());
}

TEST(Hasher, TakesNumbersByTheirBytes) {
  Hasher one, other;
  one.update(std::int32_t{1});
  one.update(std::int32_t{2});
  const std::vector<std::int32_t> values = {1, 2};
  other.update(std::span<const std::int32_t>(values));
  EXPECT_EQ(one.digest(), other.digest());
}

TEST(Hasher, MovesWithItsState) {
  Hasher hasher;
  hasher.update(bytes_of("a"));
  Hasher moved = std::move(hasher);
  moved.update(bytes_of("b"));
  EXPECT_EQ(moved.digest(), hash64("ab"));
}

TEST(HashFile, ReadsInPieces) {
  const test::TempDir folder;
  std::string content(3'000'000, 'x');
  content[2'000'000] = 'y';
  std::ofstream(folder / "file") << content;
  std::ofstream(folder / "empty");
  EXPECT_EQ(hash_file(folder / "file"), hash64(content));
  EXPECT_EQ(hash_file(folder / "empty"), hash64(""));
}

TEST(HashFile, FailsOnWhatCannotBeRead) {
  const test::TempDir folder;
  EXPECT_THROW(hash_file(folder / "absent"), IoError);
  EXPECT_THROW(hash_file(folder.path()), IoError);
}

TEST(ToHex, HasSixteenDigits) {
  EXPECT_EQ(to_hex(0), "0000000000000000");
  EXPECT_EQ(to_hex(0xDEADBEEF), "00000000deadbeef");
}

}  // namespace
}  // namespace tpudist
