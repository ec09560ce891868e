#include "data/hdf5/element_type.hpp"

#include <hdf5.h>

#include <array>
#include <bit>

namespace tpudist {
namespace {

static_assert(std::endian::native == std::endian::little);

struct Traits {
  std::string_view name;
  std::size_t bytes;
};

// In the order of ElementType.
constexpr std::array<Traits, 8> kTraits{
    {{"i8", 1}, {"i16", 2}, {"i32", 4}, {"i64", 8}, {"u8", 1}, {"u16", 2}, {"f32", 4}, {"f64", 8}}};

}  // namespace

std::size_t element_bytes(ElementType type) {
  return kTraits.at(static_cast<std::size_t>(type)).bytes;
}

std::string_view element_name(ElementType type) {
  return kTraits.at(static_cast<std::size_t>(type)).name;
}

std::int64_t hdf5_type(ElementType type) {
  static const std::array<std::int64_t, kTraits.size()> types{
      H5T_STD_I8LE, H5T_STD_I16LE, H5T_STD_I32LE,  H5T_STD_I64LE,
      H5T_STD_U8LE, H5T_STD_U16LE, H5T_IEEE_F32LE, H5T_IEEE_F64LE};
  return types.at(static_cast<std::size_t>(type));
}

}  // namespace tpudist
