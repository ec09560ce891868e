#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "core/file_system.hpp"

namespace tpudist {

// Bytes in front of an HDF5 file that the library leaves alone (a "user block").
inline constexpr std::size_t kSealBytes = 512;

// Writes `sealed`, kSealBytes of any content followed by an HDF5 file, atomically, with the first
// line of the file set to the size and XXH3 of what follows. Throws IoError.
void write_sealed_file(const std::filesystem::path& path, std::span<std::byte> sealed,
                       FileSystem& files = posix_file_system());

// The same for a file that HDF5 wrote by itself, with kSealBytes of room in front (create_hdf5), and
// that is closed: reads it once and sets its first line. Throws IoError.
void seal_file(const std::filesystem::path& path);

// Reads the file once and throws DataError unless size and XXH3 are those of its first line, so
// that no damaged byte ever gets to HDF5. Throws IoError when it cannot be read.
void check_sealed_file(const std::filesystem::path& path);

}  // namespace tpudist
