#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace tpudist {

// Streaming XXH3 (64 bit). Not thread-safe; one object per stream.
class Hasher {
 public:
  explicit Hasher(std::uint64_t seed = 0);
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);  // length first: {"ab", "c"} and {"a", "bc"} differ

  // The value's bytes; integers, floats and enums only (no padding).
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void update(T value) { update(std::as_bytes(std::span(&value, 1))); }

  template <typename T>
  requires std::is_arithmetic_v<T>
  void update(std::span<const T> values) { update(std::as_bytes(values)); }

  std::uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t hash64(std::string_view text, std::uint64_t seed = 0);

// Hash of a file's content, which is read in pieces. Throws IoError.
std::uint64_t hash_file(const std::filesystem::path& path);

// 16 lower-case hexadecimal digits.
std::string to_hex(std::uint64_t value);
// The inverse of to_hex; nothing for any other text.
std::optional<std::uint64_t> from_hex(std::string_view text);

}  // namespace tpudist
