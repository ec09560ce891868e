#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "core/file_system.hpp"

namespace tpudist {

// Bytes before the HDF5 data, which the library does not use (a "user block").
inline constexpr std::size_t kSealBytes = 512;

// Writes `sealed` (kSealBytes of any content, followed by an HDF5 file) atomically. Sets the first
// line of the file to the size and XXH3 of the HDF5 part. Throws IoError.
void write_sealed_file(const std::filesystem::path& path, std::span<std::byte> sealed,
                       FileSystem& files = posix_file_system());

// Seals a closed file that HDF5 wrote with kSealBytes of room at its start (create_hdf5): reads the
// file once and sets its first line. Throws IoError.
void seal_file(const std::filesystem::path& path);

// Reads the file once and throws DataError unless size and XXH3 are those of its first line, so
// that damaged bytes never reach HDF5. Throws IoError if the file cannot be read.
void check_sealed_file(const std::filesystem::path& path);
// check_sealed_file for a file that fits into memory: returns its bytes, for open_hdf5_in_memory.
std::vector<std::byte> read_sealed_file(const std::filesystem::path& path);

}  // namespace tpudist
