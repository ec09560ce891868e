#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_system.hpp"
#include "core/random.hpp"

namespace tpudist::test {

// The number of seeds that a test of damages tries: TPUDIST_DAMAGES, else `fallback`.
inline int damage_count(int fallback) {
  const char* count = std::getenv("TPUDIST_DAMAGES");
  return count ? std::atoi(count) : fallback;
}

// The offsets of the structures of an HDF5 file: superblock, object headers, trees and heaps.
inline std::vector<std::size_t> hdf5_structures(std::string_view bytes) {
  static constexpr std::array<std::string_view, 12> kSignatures = {
      "\x89HDF", "OHDR", "OCHK", "TREE", "SNOD", "HEAP",
      "FRHP",    "FADB", "EAHD", "EADB", "FAHD", "BTHD"};
  std::vector<std::size_t> places;
  for (const std::string_view signature : kSignatures) {
    for (std::size_t at = bytes.find(signature); at != std::string_view::npos;
         at = bytes.find(signature, at + 1))
      places.push_back(at);
  }
  return places;
}

// The bytes with one damage, a function of the seed: bits flipped, bytes overwritten, zeros, blocks
// exchanged, metadata of HDF5 changed, cut short, continued. Never equal to `bytes`, which must not
// be empty.
inline std::string damaged(const std::string& bytes, std::uint64_t seed) {
  CounterRng random(mix_key({seed, 0x64616d616765}));
  const auto place = [&] { return static_cast<std::size_t>(random.below(bytes.size())); };
  const auto byte = [&] { return static_cast<char>(random.below(256)); };
  std::string result = bytes;
  while (result == bytes) {
    switch (random.below(8)) {
      case 0:
        result[place()] ^= static_cast<char>(1 << random.below(8));
        break;
      case 1:
        for (std::uint64_t i = 0, n = 1 + random.below(8); i < n; ++i) result[place()] = byte();
        break;
      case 2: {
        const std::size_t begin = place();
        const std::size_t count =
            std::min<std::size_t>(bytes.size() - begin, 1 + random.below(512));
        std::fill_n(result.begin() + static_cast<std::ptrdiff_t>(begin), count,
                    random.below(2) ? '\0' : '\xff');
        break;
      }
      case 3: {
        const std::size_t count = std::min<std::size_t>(bytes.size() / 2, 64);
        const std::size_t a = random.below(bytes.size() - count),
                          b = random.below(bytes.size() - count);
        result.replace(b, count, bytes, a, count);
        break;
      }
      case 4:
      case 5: {  // within 64 bytes after a signature of HDF5, if there is one
        const std::vector<std::size_t> places = hdf5_structures(bytes);
        const std::size_t begin = places.empty() ? place() : places[random.below(places.size())];
        for (std::uint64_t i = 0, n = 1 + random.below(4); i < n; ++i)
          result[std::min(begin + random.below(64), bytes.size() - 1)] = byte();
        break;
      }
      case 6:
        result.resize(place());
        break;
      default:
        for (std::uint64_t i = 0, n = 1 + random.below(100); i < n; ++i) result += byte();
    }
  }
  return result;
}

inline void overwrite(const std::filesystem::path& path, const std::string& bytes) {
  // Damages the file in place, like a disk, not by rename.
  posix_file_system().create(path)->write(std::as_bytes(std::span(bytes)));
}

// Empty if `message` is one line of text that names `file`; else what is wrong with it.
inline std::string fault_of_message(const std::string& message, const std::filesystem::path& file) {
  if (message.find('\n') != std::string::npos) return "has several lines: " + message;
  if (message.find(file.string()) == std::string::npos) return "does not name the file: " + message;
  return {};
}

}  // namespace tpudist::test
