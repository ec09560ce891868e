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
// the whole process. Also silences the library's own error printing in the calling thread.
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
  // Closes now and reports failure, which the destructor can only swallow.
  bool close();

 private:
  void reset() noexcept;
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

// Passes on the result of an HDF5 call; a negative one becomes IoError "cannot OPERATION WHERE:
// REASON" with the library's innermost reason. Call with the lock held.
std::int64_t check_hdf5(std::int64_t result, std::string_view operation, std::string_view where);

// To be asked right behind a call that failed to read, with the lock still held: throws IoError
// "cannot read WHERE: REASON" where the system refused to read the file (a disk that fails, a server that
// is gone). Returns where the fault lies in what the file holds, which is for the caller to tell.
void throw_if_unreadable(std::string_view where);

// Files of format 1.10, without HDF5's file locks (which many cluster file systems lack).
// `create_hdf5` truncates, and leaves `room` bytes (0, or a power of two from 512 on) in front of what
// the library writes.
Hdf5Id create_hdf5(const std::filesystem::path& path, std::size_t room = 0);
// Throws IoError when the file is not there, DataError when it is not HDF5 or damaged.
Hdf5Id open_hdf5(const std::filesystem::path& path);

Hdf5Id create_group(const Hdf5Id& parent, const std::string& name, std::string_view where);
// Throws DataError when there is none.
Hdf5Id open_group(const Hdf5Id& parent, const std::string& name, std::string_view where);
// Throws IoError when the file cannot be read.
bool has_link(const Hdf5Id& parent, const std::string& name);

// Scalar attributes: 64-bit integers, doubles and UTF-8 text. Reading throws DataError when it is
// missing or of another kind.
void write_attribute(const Hdf5Id& object, const std::string& name, std::int64_t value);
void write_number_attribute(const Hdf5Id& object, const std::string& name, double value);
void write_attribute(const Hdf5Id& object, const std::string& name, std::string_view value);
std::int64_t read_integer_attribute(const Hdf5Id& object, const std::string& name,
                                    std::string_view where);
std::string read_text_attribute(const Hdf5Id& object, const std::string& name,
                                std::string_view where);
bool has_attribute(const Hdf5Id& object, const std::string& name);
// A hash that was written as text, by to_hex. Throws DataError where the text is none.
std::uint64_t read_hash_attribute(const Hdf5Id& object, const std::string& name,
                                  std::string_view where);

}  // namespace tpudist
