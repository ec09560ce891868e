#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct zip;
struct zip_file;

namespace tpudist {

// The bytes of one zip member, inflated as they are asked for. Must not outlive its archive; one
// thread at a time per archive.
class ZipStream {
 public:
  ZipStream(zip_file* file, std::string where);

  // Fills `out` and returns how many bytes there were: fewer only at the end. Reading past the last
  // byte checks the CRC and the size. Throws DataError.
  std::size_t read(std::span<std::byte> out);

 private:
  struct Close {
    void operator()(zip_file* file) const;
  };
  std::unique_ptr<zip_file, Close> file_;
  std::string where_;
};

// An untrusted zip file opened for reading through libzip, with its consistency checks. Not
// thread-safe.
class ZipArchive {
 public:
  struct Member {
    std::string name;
    std::uint64_t bytes;  // inflated, as the archive claims; reading checks it
  };

  // Throws IoError when the file cannot be opened, DataError when it is not a sound zip file, holds
  // two members of one name, or an encrypted one.
  explicit ZipArchive(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<Member>& members() const { return members_; }
  ZipStream open(std::size_t member) const;

 private:
  struct Close {
    void operator()(zip* archive) const;
  };
  std::filesystem::path path_;
  std::unique_ptr<zip, Close> zip_;
  std::vector<Member> members_;
};

}  // namespace tpudist
