#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/mutex.hpp"

// HDF5 files, groups and attributes. Data sets: data/hdf5/hdf5_dataset.hpp. No header includes
// <hdf5.h>, which is large.

namespace tpudist {

// The HDF5 library, which is not thread-safe: one recursive mutex for the whole process.
class TPUDIST_CAPABILITY Hdf5Mutex : public std::recursive_mutex {};
Hdf5Mutex& hdf5_mutex();

// Hold it around every call into the library. Also turns off the library's error printing in the
// calling thread.
class TPUDIST_SCOPED_CAPABILITY Hdf5Lock {
 public:
  Hdf5Lock() TPUDIST_ACQUIRE(hdf5_mutex());
  ~Hdf5Lock() TPUDIST_RELEASE() {}

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

// Owns one HDF5 identifier of any kind. Move-only; closing takes the lock.
class Hdf5Id {
 public:
  Hdf5Id() = default;
  // A hid_t, and the function of the library that closes it.
  Hdf5Id(std::int64_t id, int (*close)(std::int64_t)) : id_(id), close_(close) {}
  ~Hdf5Id() { reset(); }
  Hdf5Id(Hdf5Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Id& operator=(Hdf5Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }

  std::int64_t get() const { return id_; }
  // Closes now and returns whether it succeeded; the destructor ignores a failure.
  bool close();

 private:
  void reset() noexcept;
  std::int64_t id_ = -1;
  int (*close_)(std::int64_t) = nullptr;
};

// Returns the result of an HDF5 call; a negative one becomes IoError "cannot OPERATION WHERE:
// REASON" with the library's innermost reason.
std::int64_t check_hdf5(std::int64_t result, std::string_view operation, std::string_view where)
    TPUDIST_REQUIRES(hdf5_mutex());

// check_hdf5 for a call that reads: throws DataError if the content of the file is at fault.
std::int64_t check_hdf5_read(std::int64_t result, std::string_view what, std::string_view where)
    TPUDIST_REQUIRES(hdf5_mutex());

// Call it right after a failed read. Throws IoError "cannot read WHERE: REASON" if the system could
// not read the file (failing disk, lost server). Returns if the content of the file is at fault,
// which the caller must report.
void throw_if_unreadable(std::string_view where) TPUDIST_REQUIRES(hdf5_mutex());

// Creates a file of format 1.10 without HDF5's file locks, which many cluster file systems lack. An
// existing file is truncated. `room` bytes (0, or a power of two from 512 on) stay free before the
// library's data.
Hdf5Id create_hdf5(const std::filesystem::path& path, std::size_t room = 0);
// Throws IoError when the file does not exist, DataError when it is damaged or not HDF5.
Hdf5Id open_hdf5(const std::filesystem::path& path);

// Creates a file in memory only. `where` names it in messages. `bytes` is the expected size; HDF5
// allocates and clears memory in steps of this size.
Hdf5Id create_hdf5_in_memory(const std::string& where, std::size_t bytes);
// Opens the bytes of a file for reading. They must outlive the Hdf5Id. Throws DataError if they are
// not HDF5.
Hdf5Id open_hdf5_in_memory(const std::string& where, std::span<const std::byte> bytes);
// Returns the bytes of such a file, with `room` free bytes in front.
std::vector<std::byte> hdf5_image(const Hdf5Id& file, std::size_t room, std::string_view where);

// Throws DataError if the path to `name` is a link to another place or file: through a link, the
// writer of the file could make a reader open anything.
void require_own(const Hdf5Id& parent, const std::string& name, std::string_view where)
    TPUDIST_REQUIRES(hdf5_mutex());

Hdf5Id create_group(const Hdf5Id& parent, const std::string& name, std::string_view where);
// Throws DataError if there is no such group.
Hdf5Id open_group(const Hdf5Id& parent, const std::string& name, std::string_view where);
// Throws IoError when the file cannot be read.
bool has_link(const Hdf5Id& parent, const std::string& name);
// Removes a dataset or group with its content.
void remove_link(const Hdf5Id& parent, const std::string& name, std::string_view where);
// The names of the datasets and groups in a group, in order.
std::vector<std::string> link_names(const Hdf5Id& group, std::string_view where);

// Scalar attributes: 64-bit integers, doubles and UTF-8 text. Reading throws DataError when the
// attribute is missing or of another kind.
void write_attribute(const Hdf5Id& object, const std::string& name, std::int64_t value);
void write_number_attribute(const Hdf5Id& object, const std::string& name, double value);
void write_attribute(const Hdf5Id& object, const std::string& name, std::string_view value);
std::int64_t read_integer_attribute(const Hdf5Id& object, const std::string& name,
                                    std::string_view where);
std::string read_text_attribute(const Hdf5Id& object, const std::string& name,
                                std::string_view where);
bool has_attribute(const Hdf5Id& object, const std::string& name, std::string_view where);
// A hash written as text by to_hex. Throws DataError if the text is not a hash.
std::uint64_t read_hash_attribute(const Hdf5Id& object, const std::string& name,
                                  std::string_view where);
// All attributes of an object, which must be doubles.
std::map<std::string, double> read_number_attributes(const Hdf5Id& object, std::string_view where);

}  // namespace tpudist
