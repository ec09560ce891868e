#include "data/npz/npz_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "core/error.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kPieceBytes = 64 << 10;
constexpr std::size_t kGrowthElements = 1 << 18;

// Converts raw elements of type `Stored`; false at the first that does not fit (its number in
// `bad`).
template <typename Stored, typename T>
bool convert(std::span<const std::byte> raw, std::span<T> out, std::size_t& bad) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, raw.data() + i * sizeof(Stored), sizeof(Stored));
    if constexpr (std::is_same_v<Stored, std::uint64_t>) {
      if (value > std::numeric_limits<std::int64_t>::max()) return bad = i, false;
    } else if constexpr (std::is_same_v<Stored, double>) {
      if (std::abs(value) > std::numeric_limits<float>::max() && std::isfinite(value)) {
        return bad = i, false;
      }
    }
    out[i] = static_cast<T>(value);
  }
  return true;
}

bool convert_integers(const NpyHeader& header, std::span<const std::byte> raw,
                      std::span<std::int64_t> out, std::size_t& bad) {
  const bool is_signed = header.kind == 'i';
  switch (header.item_bytes) {
    case 1:
      return is_signed ? convert<std::int8_t>(raw, out, bad) : convert<std::uint8_t>(raw, out, bad);
    case 2:
      return is_signed ? convert<std::int16_t>(raw, out, bad)
                       : convert<std::uint16_t>(raw, out, bad);
    case 4:
      return is_signed ? convert<std::int32_t>(raw, out, bad)
                       : convert<std::uint32_t>(raw, out, bad);
    default:
      return is_signed ? convert<std::int64_t>(raw, out, bad)
                       : convert<std::uint64_t>(raw, out, bad);
  }
}

// Reads all that remains, a piece at a time.
template <typename T>
std::vector<T> read_all(NpzArray& array) {
  std::vector<T> values;
  values.reserve(std::min<std::uint64_t>(array.remaining(), kGrowthElements));
  while (array.remaining() > 0) {
    const std::size_t count = std::min<std::uint64_t>(array.remaining(), kGrowthElements);
    if (values.capacity() < values.size() + count) {  // at most twice what has come, at most all
      values.reserve(std::min<std::uint64_t>(2 * values.capacity() + count,
                                             values.size() + array.remaining()));
    }
    values.resize(values.size() + count);
    array.read(std::span<T>(values).last(count));
  }
  return values;
}

}  // namespace

NpzArray::NpzArray(ZipStream stream, std::uint64_t member_bytes, std::string file, std::string name)
    : stream_(std::move(stream)), file_(std::move(file)), name_(std::move(name)) {
  const std::string place = file_ + ": " + name_;
  std::vector<std::byte> prefix(kNpyPreambleBytes);
  prefix.resize(stream_.read(prefix));
  const std::size_t prefix_bytes = npy_prefix_bytes(prefix, place);
  prefix.resize(prefix_bytes);
  const auto rest = std::span(prefix).subspan(kNpyPreambleBytes);
  if (stream_.read(rest) != rest.size()) fail("ends within its .npy header");
  header_ = parse_npy_prefix(prefix, place);
  if (member_bytes < prefix_bytes || member_bytes - prefix_bytes != header_.data_bytes) {
    fail(fmt::format(
        "says in its header that it has {} bytes of elements, but the zip member has {}",
        header_.data_bytes, member_bytes - std::min<std::uint64_t>(prefix_bytes, member_bytes)));
  }
  if (header_.elements == 0) check_end();
}

void NpzArray::read_bytes(std::span<std::byte> out) {
  if (stream_.read(out) != out.size()) fail("ends before its last element");
}

void NpzArray::check_end() {
  std::byte extra;
  if (stream_.read({&extra, 1}) != 0) fail("goes on after its last element");
}

void NpzArray::read(std::span<float> out) {
  if (header_.kind != 'f') fail(fmt::format("has dtype '{}' but must be float32", header_.descr));
  if (out.size() > remaining()) fail("is read beyond its end");
  if (header_.item_bytes == 4) {
    read_bytes(std::as_writable_bytes(out));
    position_ += out.size();
  } else {
    std::vector<std::byte> raw(std::min(out.size() * 8, kPieceBytes));
    for (std::size_t done = 0; done < out.size();) {
      const std::size_t count = std::min(out.size() - done, kPieceBytes / 8);
      const auto piece = std::span(raw).first(count * 8);
      read_bytes(piece);
      std::size_t bad = 0;
      if (!convert<double>(piece, out.subspan(done, count), bad)) {
        throw DataError(where(position_ + bad) + " is beyond the range of float32");
      }
      done += count;
      position_ += count;
    }
  }
  if (remaining() == 0 && !out.empty()) check_end();
}

void NpzArray::read(std::span<std::int64_t> out) {
  if (header_.kind == 'f') fail(fmt::format("has dtype '{}' but must be integer", header_.descr));
  if (out.size() > remaining()) fail("is read beyond its end");
  const std::size_t item = static_cast<std::size_t>(header_.item_bytes);
  std::vector<std::byte> raw(std::min(out.size() * item, kPieceBytes));
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t count = std::min(out.size() - done, kPieceBytes / item);
    const auto piece = std::span(raw).first(count * item);
    read_bytes(piece);
    std::size_t bad = 0;
    if (!convert_integers(header_, piece, out.subspan(done, count), bad)) {
      throw DataError(where(position_ + bad) + " is beyond the range of int64");
    }
    done += count;
    position_ += count;
  }
  if (remaining() == 0 && !out.empty()) check_end();
}

std::vector<float> NpzArray::read_floats() {
  return read_all<float>(*this);
}
std::vector<std::int64_t> NpzArray::read_integers() {
  return read_all<std::int64_t>(*this);
}

std::string NpzArray::where(std::uint64_t element) const {
  std::vector<std::uint64_t> index(shape().size());
  for (std::size_t axis = index.size(); axis-- > 0;) {
    const auto dim = static_cast<std::uint64_t>(std::max<std::int64_t>(shape()[axis], 1));
    index[axis] = element % dim;
    element /= dim;
  }
  return fmt::format("{}: {}[{}]", file_, name_, fmt::join(index, ", "));
}

void NpzArray::fail(std::string_view message) const {
  throw DataError(fmt::format("{}: {} {}", file_, name_, message));
}

NpzReader::NpzReader(const std::filesystem::path& path) : archive_(path) {}

bool NpzReader::contains(std::string_view name) const {
  const std::string member = std::string(name) + ".npy";
  return std::ranges::any_of(archive_.members(), [&](const auto& m) { return m.name == member; });
}

std::vector<std::string> NpzReader::names() const {
  std::vector<std::string> names;
  for (const auto& member : archive_.members()) {
    if (member.name.ends_with(".npy"))
      names.push_back(member.name.substr(0, member.name.size() - 4));
  }
  return names;
}

NpzArray NpzReader::open(std::string_view name) const {
  const std::string member = std::string(name) + ".npy";
  const auto& members = archive_.members();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].name == member) {
      return NpzArray(archive_.open(i), members[i].bytes, path().string(), std::string(name));
    }
  }
  throw DataError(fmt::format("{}: array {} is missing", path().string(), name));
}

}  // namespace tpudist
