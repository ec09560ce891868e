// .npy arrays, and the zip files that hold them.

#include <libdeflate.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "core/file_system.hpp"
#include "data/convert/graph_converter.hpp"
#include "data/convert/verifier.hpp"
#include "data/loading/module_file.hpp"
#include "data/npz/npz_reader.hpp"
#include "tests/data/npz/npz_fixture.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace tpudist::test {
namespace {

constexpr const char* kTypes[] = {"<f4", "<f2", "<f8", "|i1", "|u1", "<i2",
                                  "<u2", "<i4", "<u4", "<i8", "<u8"};

bool read_npy(std::string_view bytes) {
  const auto path = scratch_file("npy.npz");
  NpzWriter writer(path, {.deflate_level = 0});
  writer.add_raw("x.npy", bytes);
  writer.finish();
  return accepts([&] {
    const NpzReader reader(path);
    NpzArray array = reader.open("x");
    if (array.header().kind == 'f') {
      array.read_floats();
      return;
    }
    reader.open("x").read_floats();
    std::vector<std::int64_t> values(array.remaining());  // as many as the file has
    array.read(values);
  });
}

std::string npy(std::string_view descr, std::vector<std::int64_t> shape, std::size_t bytes) {
  return npy_header(descr, shape) + std::string(bytes, '\1');
}

// Another header of the same length, with the length that it has.
std::string with_header(std::string dictionary) {
  std::string bytes = "\x93NUMPY\1";
  bytes += '\0';
  dictionary += '\n';
  bytes += static_cast<char>(dictionary.size() & 255);
  bytes += static_cast<char>(dictionary.size() >> 8);
  return bytes + dictionary;
}

std::vector<std::string> npy_seeds() {
  std::vector<std::string> seeds;
  for (const std::string descr : kTypes)
    seeds.push_back(npy(descr, {2, 3}, 6 * static_cast<std::size_t>(descr[2] - '0')));
  seeds.push_back(npy("<f4", {}, 4));
  seeds.push_back(npy("<i8", {0, 5}, 0));
  for (const char* shape :
       {"(4294967296, 4294967296)", "(9223372036854775807, 2)", "(99999999999999999999,)", "(-1,)",
        "((((((1,))))))", "(True,)", "(1", "(1,)}, {", "(0, 9223372036854775807, 9)"}) {
    seeds.push_back(with_header(std::string("{'descr': '<f4', 'fortran_order': False, 'shape': ") +
                                shape + ", }") +
                    std::string(16, '\1'));
  }
  seeds.push_back(with_header("{'descr': '" + std::string(60'000, '(')));
  return seeds;
}

// A fixture with whole, positive features, which every type of number holds.
NpzFixture fixture_of(bool tile, const std::string& type) {
  NpzFixture fixture = tile ? NpzFixture::make_tile() : NpzFixture::layout();
  if (type == "<f4") return fixture;
  for (float& value : fixture.node_feat) value = std::fmod(std::floor(value), 100.0f);
  for (float& value : fixture.features) value = std::abs(value);
  fixture.node_type = fixture.feature_type = type;
  return fixture;
}

std::string npz_bytes(bool tile, const std::string& type, int level) {
  const auto path = scratch_file("seed.npz");
  fixture_of(tile, type).write(path, {.deflate_level = level});
  return read_text_file(path);
}

std::vector<std::string> npz_seeds() {
  std::vector<std::string> seeds;
  for (const bool tile : {false, true}) {
    for (const char* type : kTypes) seeds.push_back(npz_bytes(tile, type, 0));
    seeds.push_back(npz_bytes(tile, "<f4", 6));
  }
  NpzFixture unmeasured = NpzFixture::layout();
  unmeasured.without = "config_runtime";
  unmeasured.write(scratch_file("seed.npz"), {.deflate_level = 0});
  seeds.push_back(read_text_file(scratch_file("seed.npz")));
  return seeds;
}

template <typename T>
T number_at(std::string_view bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Gives each stored member of a zip file the CRC of its bytes, so that damage of them is read.
std::string with_right_crcs(std::string_view bytes) {
  std::string result(bytes);
  for (std::size_t at = 0; (at = bytes.find("PK\1\2", at)) != std::string_view::npos; ++at) {
    if (bytes.size() - at < 46 || number_at<std::uint16_t>(bytes, at + 10) != 0) continue;
    const std::size_t size = number_at<std::uint32_t>(bytes, at + 20);
    const std::size_t local = number_at<std::uint32_t>(bytes, at + 42);
    if (local + 30 > bytes.size()) continue;
    const std::size_t begin = local + 30 + number_at<std::uint16_t>(bytes, local + 26) +
                              number_at<std::uint16_t>(bytes, local + 28);
    if (begin + size > bytes.size()) continue;
    const std::uint32_t crc = libdeflate_crc32(0, bytes.data() + begin, size);
    std::memcpy(result.data() + at + 16, &crc, sizeof crc);
    std::memcpy(result.data() + local + 14, &crc, sizeof crc);
  }
  return result;
}

// As a module to be ranked; one that can be is also converted, and its shard must be sound.
bool read_npz(std::string_view bytes) {
  const auto npz = input_file("input.npz", with_right_crcs(bytes));
  const bool tile = bytes.find("node_config_feat") == std::string_view::npos;
  const Collection collection{tile ? "tile:xla" : "layout:xla:random"};
  if (!accepts([&] { read_module(npz, collection); })) return false;
  static ThreadPool pool(1);
  const auto path = scratch_file("converted.h5");
  ShardWriter shard(path, collection, "train", pool);
  if (!accepts([&] { convert_graph(NpzReader(npz), collection, "train", {}, shard); }))
    return false;
  shard.close();
  try {
    verify_graph(path, summarize_shard(path).graphs.at(0), collection, "train", npz);
  } catch (const Error& error) {
    throw std::logic_error(std::string("the shard is not sound: ") + error.what());
  }
  return true;
}

}  // namespace

FuzzTarget npy_target() {
  return {"npy", read_npy, npy_seeds};
}

FuzzTarget npz_target() {
  return {"npz", read_npz, npz_seeds};
}

}  // namespace tpudist::test
