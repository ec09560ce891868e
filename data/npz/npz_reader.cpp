#include "data/npz/npz_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kPieceBytes = 64 << 10;
constexpr std::size_t kGrowthElements = 1 << 18;

// Whether an integer keeps its value as float32: its significant bits fit into 24.
template <std::integral Integer>
bool is_exact(Integer value) {
  if constexpr (sizeof(Integer) <= 2) return true;
  using Unsigned = std::make_unsigned_t<Integer>;
  const auto bits = static_cast<Unsigned>(value);
  const Unsigned magnitude = value < 0 ? static_cast<Unsigned>(0 - bits) : bits;
  return magnitude == 0 || std::bit_width(magnitude) - std::countr_zero(magnitude) <= 24;
}

// Returns false if float32 cannot represent the number exactly, or does not reach it.
bool to_float(double value, float& out) {
  const bool in_range = std::abs(value) <= std::numeric_limits<float>::max();
  if (!in_range && std::isfinite(value)) return false;
  out = static_cast<float>(value);
  return std::isnan(value) || static_cast<double>(out) == value;
}

template <std::integral Integer>
bool to_float(Integer value, float& out) {
  out = static_cast<float>(value);
  return is_exact(value);
}

bool to_integer(std::uint64_t value, std::int64_t& out) {
  out = static_cast<std::int64_t>(value);
  return out >= 0;
}

template <std::integral Integer>
bool to_integer(Integer value, std::int64_t& out) {
  out = value;
  return true;
}

// The index of the first raw element for which `take(element)` is false; the number of elements if
// there is none.
template <typename Stored, typename Take>
std::size_t each_element(std::span<const std::byte> raw, const Take& take) {
  const std::size_t count = raw.size() / sizeof(Stored);
  for (std::size_t i = 0; i < count; ++i) {
    Stored value;
    std::memcpy(&value, raw.data() + i * sizeof(Stored), sizeof(Stored));
    if (!take(value, i)) return i;
  }
  return count;
}

// Calls `each.operator()<T>()` with the integer type T of the header.
template <typename Each>
auto with_integer_type(const NpyHeader& header, const Each& each) {
  const bool is_signed = header.kind == 'i';
  switch (header.item_bytes) {
    case 1:
      return is_signed ? each.template operator()<std::int8_t>()
                       : each.template operator()<std::uint8_t>();
    case 2:
      return is_signed ? each.template operator()<std::int16_t>()
                       : each.template operator()<std::uint16_t>();
    case 4:
      return is_signed ? each.template operator()<std::int32_t>()
                       : each.template operator()<std::uint32_t>();
    default:
      return is_signed ? each.template operator()<std::int64_t>()
                       : each.template operator()<std::uint64_t>();
  }
}

// Elements as float32. Returns the index of the first inexact element; out.size() if all are exact.
std::size_t convert(const NpyHeader& header, std::span<const std::byte> raw, std::span<float> out) {
  if (header.kind == 'f' && header.item_bytes == 2) {
    return each_element<std::uint16_t>(raw, [&](std::uint16_t half, std::size_t i) {
      out[i] = half_to_float(half);
      return true;
    });
  }
  const auto take = [&](auto value, std::size_t i) { return to_float(value, out[i]); };
  if (header.kind == 'f') return each_element<double>(raw, take);
  return with_integer_type(header, [&]<typename T>() { return each_element<T>(raw, take); });
}

// Elements as int64. Returns the index of the first element out of range; out.size() if none.
std::size_t convert(const NpyHeader& header, std::span<const std::byte> raw,
                    std::span<std::int64_t> out) {
  const auto take = [&](auto value, std::size_t i) { return to_integer(value, out[i]); };
  return with_integer_type(header, [&]<typename T>() { return each_element<T>(raw, take); });
}

// An element as stored, for a message.
std::string text_of(const NpyHeader& header, std::span<const std::byte> raw) {
  std::string text;
  const auto take = [&](auto value, std::size_t) {
    text = fmt::format("{}", value);
    return true;
  };
  if (header.kind == 'f') {
    each_element<double>(raw, take);
  } else {
    with_integer_type(header, [&]<typename T>() { return each_element<T>(raw, take); });
  }
  return text;
}

}  // namespace

NpzArray::NpzArray(ZipArchive::Stream stream, std::uint64_t member_bytes, std::string file,
                   std::string name)
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

template <typename T>
void NpzArray::read_converted(std::span<T> out, std::string_view complaint) {
  const auto item = static_cast<std::size_t>(header_.item_bytes);
  std::vector<std::byte> raw(std::min(out.size() * item, kPieceBytes));
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t count = std::min(out.size() - done, kPieceBytes / item);
    const auto piece = std::span(raw).first(count * item);
    read_bytes(piece);
    const std::size_t good = convert(header_, piece, out.subspan(done, count));
    if (good < count) {
      throw DataError(fmt::format("{} = {} {}", where(position_ + good),
                                  text_of(header_, piece.subspan(good * item, item)), complaint));
    }
    done += count;
    position_ += count;
  }
}

void NpzArray::read(std::span<float> out) {
  if (out.size() > remaining()) fail("is read beyond its end");
  if (header_.kind == 'f' && header_.item_bytes == 4) {
    read_bytes(std::as_writable_bytes(out));
    position_ += out.size();
  } else {
    read_converted(out, "is not exact in float32; round it or scale it to what float32 holds");
  }
  if (remaining() == 0 && !out.empty()) check_end();
}

void NpzArray::read(std::span<std::int64_t> out) {
  if (header_.kind == 'f') fail(fmt::format("has dtype '{}' but must be integer", header_.descr));
  if (out.size() > remaining()) fail("is read beyond its end");
  read_converted(out, "is beyond the range of int64");
  if (remaining() == 0 && !out.empty()) check_end();
}

std::vector<float> NpzArray::read_floats() {
  std::vector<float> values;
  values.reserve(std::min<std::uint64_t>(remaining(), kGrowthElements));
  while (remaining() > 0) {
    const std::size_t count = std::min<std::uint64_t>(remaining(), kGrowthElements);
    if (values.capacity() < values.size() + count) {  // at most twice the bytes read so far, at
                                                      // most all
      values.reserve(
          std::min<std::uint64_t>(2 * values.capacity() + count, values.size() + remaining()));
    }
    values.resize(values.size() + count);
    read(std::span(values).last(count));
  }
  return values;
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

NpzReader::NpzReader(const std::filesystem::path& path) : archive_(path) {
  spdlog::debug("open {} ({} arrays)", path.string(), archive_.members().size());
}

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
