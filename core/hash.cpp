#include "core/hash.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <new>
#include <vector>

#include "core/descriptor.hpp"
#include "core/numbers.hpp"

namespace tpudist {

struct Hasher::State {
  explicit State(std::uint64_t seed) : xxh3(XXH3_createState()) {
    if (!xxh3) throw std::bad_alloc();
    XXH3_64bits_reset_withSeed(xxh3, seed);
  }
  ~State() { XXH3_freeState(xxh3); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  XXH3_state_t* xxh3;
};

Hasher::Hasher(std::uint64_t seed) : state_(std::make_unique<State>(seed)) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_64bits_update(state_->xxh3, bytes.data(), bytes.size());
}

void Hasher::update(std::string_view text) {
  update(static_cast<std::uint64_t>(text.size()));
  update(std::as_bytes(std::span(text)));
}

std::uint64_t Hasher::digest() const {
  return XXH3_64bits_digest(state_->xxh3);
}

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t hash64(std::string_view text, std::uint64_t seed) {
  return hash64(std::as_bytes(std::span(text)), seed);
}

std::uint64_t hash_file(const std::filesystem::path& path) {
  const Descriptor file = open_file(path, O_RDONLY);
  Hasher hasher;
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  for (;;) {
    const ssize_t count =
        check_posix(uninterrupted([&] { return ::read(file.get(), buffer.data(), buffer.size()); }),
                    "read", path);
    if (count == 0) return hasher.digest();
    hasher.update(std::span<const std::byte>(buffer).first(static_cast<std::size_t>(count)));
  }
}

std::string to_hex(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

std::optional<std::uint64_t> from_hex(std::string_view text) {
  const auto value = number_of<std::uint64_t>(text, 16);
  return value && to_hex(*value) == text ? value : std::nullopt;
}

}  // namespace tpudist
