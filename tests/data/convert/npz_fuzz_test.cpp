// Damaged NPZ files must either be refused with DataError or be read as valid ones: never a crash,
// a hang, or another exception.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <fstream>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "data/convert/graph_converter.hpp"
#include "data/convert/graph_verifier.hpp"
#include "tests/data/npz/npz_fixture.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

// A fixture with whole, positive features, which every type of number holds.
test::NpzFixture fixture_of(bool tile, const std::string& type) {
  auto fixture = tile ? test::NpzFixture::make_tile() : test::NpzFixture::layout();
  if (type == "<f4") return fixture;
  for (float& value : fixture.node_feat) value = std::fmod(std::floor(value), 100.0f);
  for (float& value : fixture.features) value = std::abs(value);
  fixture.node_type = fixture.feature_type = type;
  return fixture;
}

std::string any_type() {
  return *rc::gen::element<std::string>("<f2", "<f4", "<f8", "|i1", "|u1", "<i2", "<u2", "<i4",
                                        "<u4", "<i8", "<u8");
}

std::string valid_npz(bool tile, int level, const std::string& type = "<f4") {
  const test::TempDir folder;
  const auto fixture = fixture_of(tile, type);
  fixture.write(folder / "x.npz", {.deflate_level = level});
  return read_text_file(folder / "x.npz");
}

// True when the file was converted; its shard is then sound. Whatever is not DataError gets out and
// fails the test.
bool converts(const std::string& bytes, bool tile) {
  const test::TempDir folder;
  const Collection collection{tile ? "tile:xla" : "layout:xla:random"};
  const auto npz = folder / "x.npz", path = folder / "x.h5";
  std::ofstream(npz, std::ios::binary) << bytes;
  ThreadPool pool(1);
  ShardWriter shard(path, collection, "train", pool);
  try {
    convert_graph(NpzReader(npz), collection, "train", {}, shard);
  } catch (const DataError&) {
    return false;
  }
  shard.close();
  verify_graph(path, summarize_shard(path).graphs.at(0), collection, "train", npz);
  return true;
}

TEST(NpzFuzz, TheFilesAreValidToBeginWith) {
  for (const bool tile : {false, true}) {
    EXPECT_TRUE(converts(valid_npz(tile, 0), tile));
    EXPECT_TRUE(converts(valid_npz(tile, 6), tile));
    for (const char* type :
         {"<f2", "<f8", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8"}) {
      EXPECT_TRUE(converts(valid_npz(tile, 6, type), tile)) << type;
    }
  }
}

RC_GTEST_PROP(NpzFuzz, AnyChangedBytes, ()) {
  const bool tile = *rc::gen::arbitrary<bool>();
  std::string bytes = valid_npz(tile, *rc::gen::element(0, 6), any_type());
  const auto count = *rc::gen::inRange(1, 6);
  for (int i = 0; i < count; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ *rc::gen::inRange(1, 256));
  }
  converts(bytes, tile);
}

// The headers of members and the directory, where a change is not caught by a CRC.
RC_GTEST_PROP(NpzFuzz, ChangedZipStructures, ()) {
  const bool tile = *rc::gen::arbitrary<bool>();
  std::string bytes = valid_npz(tile, *rc::gen::element(0, 6), any_type());
  std::vector<std::size_t> headers;
  for (std::size_t at = 0; (at = bytes.find("PK", at)) != std::string::npos; ++at) {
    headers.push_back(at);
  }
  const auto count = *rc::gen::inRange(1, 4);
  for (int i = 0; i < count; ++i) {
    const auto at = *rc::gen::elementOf(headers) + *rc::gen::inRange<std::size_t>(2, 60);
    if (at < bytes.size()) bytes[at] = *rc::gen::arbitrary<char>();
  }
  converts(bytes, tile);
}

RC_GTEST_PROP(NpzFuzz, TruncatedFiles, ()) {
  const bool tile = *rc::gen::arbitrary<bool>();
  std::string bytes = valid_npz(tile, *rc::gen::element(0, 6), any_type());
  bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size()));
  RC_ASSERT(!converts(bytes, tile));
}

// Arrays with sound zip members but damaged headers and elements.
RC_GTEST_PROP(NpzFuzz, ChangedMembersWithARightCrc, ()) {
  const bool tile = *rc::gen::arbitrary<bool>();
  const test::TempDir folder;
  fixture_of(tile, any_type()).write(folder / "x.npz");
  NpzWriter changed(folder / "y.npz");
  const ZipArchive archive(folder / "x.npz");
  const auto victim = *rc::gen::inRange<std::size_t>(0, archive.members().size());
  std::vector<std::vector<std::byte>> members;
  for (std::size_t i = 0; i < archive.members().size(); ++i) {
    std::vector<std::byte>& bytes = members.emplace_back(archive.members()[i].bytes);
    archive.open(i).read(bytes);
    if (i != victim) continue;
    const auto count = *rc::gen::inRange(1, 4);
    for (int k = 0; k < count; ++k) {
      const auto limit = *rc::gen::element<std::size_t>(128, bytes.size());
      bytes[*rc::gen::inRange<std::size_t>(0, std::min(limit, bytes.size()))] =
          std::byte(*rc::gen::inRange(0, 256));
    }
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    changed.add_raw(archive.members()[i].name, members[i]);
  }
  changed.finish();
  converts(read_text_file(folder / "y.npz"), tile);
}

}  // namespace
}  // namespace tpudist
