#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct zip;

namespace tpudist {

// The meaning of a libzip error code.
std::string zip_reason(int code);

// Throws DataError for a pipe or a terminal: a zip file's directory is at its end, so the file must
// be seekable.
void require_searchable(const std::filesystem::path& path);

// An untrusted zip file opened for reading through libzip. Skips libzip's consistency checks, which
// refuse files of sound packers: a Stream checks sizes and CRCs. Not thread-safe.
class ZipArchive {
 public:
  struct Member {
    std::string name;
    std::uint64_t bytes = 0;  // inflated size, as stated; reading checks it
    std::uint32_t crc = 0;
    bool deflated = false;
  };

  // The bytes of one zip member (stored or deflated), inflated on demand. libzip delivers the
  // compressed bytes, zlib inflates them, and libdeflate computes the CRC, which is faster than
  // libzip alone with zlib's CRC. Must not outlive its archive; one thread at a time per archive.
  class Stream {
   public:
    ~Stream();
    Stream(Stream&&) noexcept;
    Stream& operator=(Stream&&) noexcept;

    // Fills `out` and returns the number of bytes read, which is smaller only at the end. Reading
    // past the last byte checks the CRC and the size. Throws DataError.
    std::size_t read(std::span<std::byte> out);

   private:
    friend class ZipArchive;
    struct Impl;
    explicit Stream(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
  };

  // Throws IoError when the file cannot be opened. Throws DataError if the file is no valid zip
  // file or not seekable, or has members that are encrypted, compressed by another method than
  // deflate, or of equal names.
  explicit ZipArchive(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<Member>& members() const { return members_; }
  Stream open(std::size_t member) const;

 private:
  struct Close {
    void operator()(zip* archive) const;
  };
  std::filesystem::path path_;
  std::unique_ptr<zip, Close> zip_;
  std::vector<Member> members_;
};

}  // namespace tpudist
