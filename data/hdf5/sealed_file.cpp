#include "data/hdf5/sealed_file.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"

namespace tpudist {
namespace {

// The whole block: one line of text, then zeros.
std::array<char, kSealBytes> make_seal(std::uint64_t bytes, std::uint64_t hash) {
  std::array<char, kSealBytes> block{};
  fmt::format_to_n(block.begin(), block.size(), "tpudist-sealed 1 bytes={} xxh3={}\n", bytes,
                   to_hex(hash));
  return block;
}

}  // namespace

void write_sealed_file(const std::filesystem::path& path, std::span<std::byte> sealed,
                       FileSystem& files) {
  const std::span<const std::byte> content = sealed.subspan(kSealBytes);
  const auto seal = make_seal(content.size(), hash64(content));
  std::memcpy(sealed.data(), seal.data(), seal.size());
  write_file_atomically(path, std::span<const std::byte>(sealed), files);
}

namespace {

// The content of a file after its seal.
struct Content {
  std::array<char, kSealBytes> seal{};
  std::uint64_t bytes = 0, hash = 0;
};

std::ifstream open_sealed_file(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw IoError(fmt::format("cannot open {}: it is no regular file", path.string()));
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw_io_error("open", path, errno);
  return file;
}

Content read_content(const std::filesystem::path& path) {
  std::ifstream file = open_sealed_file(path);
  Content content;
  file.read(content.seal.data(), content.seal.size());

  Hasher hasher;
  std::vector<char> buffer(std::size_t{1} << 20);
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto count = static_cast<std::size_t>(file.gcount());
    hasher.update(std::as_bytes(std::span(buffer).first(count)));
    content.bytes += count;
  }
  if (file.bad()) throw_io_error("read", path, errno);
  content.hash = hasher.digest();
  return content;
}

[[noreturn]] void refuse(const std::filesystem::path& path) {
  throw DataError(fmt::format(
      "{}: damaged or cut short: size or hash are not those of its first line", path.string()));
}

}  // namespace

void seal_file(const std::filesystem::path& path) {
  const Content content = read_content(path);
  const auto seal = make_seal(content.bytes, content.hash);
  errno = 0;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.write(seal.data(), seal.size());
  file.close();
  if (!file) throw_io_error("write", path, errno);
}

void check_sealed_file(const std::filesystem::path& path) {
  const Content content = read_content(path);
  if (content.seal != make_seal(content.bytes, content.hash)) refuse(path);
}

std::vector<std::byte> read_sealed_file(const std::filesystem::path& path) {
  std::ifstream file = open_sealed_file(path);
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw_io_error("read", path, error.value());
  std::vector<std::byte> bytes(size);
  file.read(reinterpret_cast<char*>(bytes.data()), std::ssize(bytes));
  if (file.bad()) throw_io_error("read", path, errno);
  if (bytes.size() < kSealBytes || file.gcount() != std::ssize(bytes)) refuse(path);
  const auto content = std::span<const std::byte>(bytes).subspan(kSealBytes);
  const auto seal = make_seal(content.size(), hash64(content));
  if (std::memcmp(bytes.data(), seal.data(), seal.size()) != 0) refuse(path);
  return bytes;
}

}  // namespace tpudist
