#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace tpudist {

// Held around every call into the HDF5 library, which is not thread-safe: one recursive mutex for
// the whole process. Also turns off the library's own error printing in the calling thread.
class Hdf5Lock {
 public:
  Hdf5Lock();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

// Owns one HDF5 identifier of any kind. Move-only; closing takes the lock.
class Hdf5Id {
 public:
  Hdf5Id() = default;
  Hdf5Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Hdf5Id() { reset(); }
  Hdf5Id(Hdf5Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Id& operator=(Hdf5Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }

  hid_t get() const { return id_; }
  // Closes now and returns whether it succeeded; the destructor ignores a failure.
  bool close();

 private:
  void reset() noexcept;
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

// Returns the result of an HDF5 call; a negative one becomes IoError "cannot OPERATION WHERE:
// REASON" with the library's innermost reason. Call with the lock held.
std::int64_t check_hdf5(std::int64_t result, std::string_view operation, std::string_view where);

// Call it right after a call that failed to read, with the lock still held. Throws IoError "cannot
// read WHERE: REASON" where the system could not read the file (failing disk, lost server). Returns
// where the content of the file is at fault; the caller must report that.
void throw_if_unreadable(std::string_view where);

// Creates a file of format 1.10, without HDF5's file locks, which many cluster file systems lack.
// An existing file is truncated. `room` bytes (0, or a power of two from 512 on) stay free before
// the library's data.
Hdf5Id create_hdf5(const std::filesystem::path& path, std::size_t room = 0);
// Throws IoError when the file does not exist, DataError when it is damaged or not HDF5.
Hdf5Id open_hdf5(const std::filesystem::path& path);

Hdf5Id create_group(const Hdf5Id& parent, const std::string& name, std::string_view where);
// Throws DataError when there is no such group.
Hdf5Id open_group(const Hdf5Id& parent, const std::string& name, std::string_view where);
// Throws IoError when the file cannot be read.
bool has_link(const Hdf5Id& parent, const std::string& name);

// Scalar attributes: 64-bit integers, doubles and UTF-8 text. Reading throws DataError when the
// attribute is missing or of another kind.
void write_attribute(const Hdf5Id& object, const std::string& name, std::int64_t value);
void write_number_attribute(const Hdf5Id& object, const std::string& name, double value);
void write_attribute(const Hdf5Id& object, const std::string& name, std::string_view value);
std::int64_t read_integer_attribute(const Hdf5Id& object, const std::string& name,
                                    std::string_view where);
std::string read_text_attribute(const Hdf5Id& object, const std::string& name,
                                std::string_view where);
bool has_attribute(const Hdf5Id& object, const std::string& name);
// A hash written as text by to_hex. Throws DataError where the text is not a hash.
std::uint64_t read_hash_attribute(const Hdf5Id& object, const std::string& name,
                                  std::string_view where);

}  // namespace tpudist
