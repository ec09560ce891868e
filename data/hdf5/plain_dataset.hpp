#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/hdf5/element_type.hpp"
#include "data/hdf5/hdf5.hpp"

namespace tpudist {

// A dataset with one or more axes, stored uncompressed in one piece, and written and read by rows
// (first axis). For numbers that do not compress. Writing is not thread-safe.
class PlainDataset {
 public:
  // `where` names file and group in messages.
  static PlainDataset create(const Hdf5Id& group, const std::string& name, ElementType type,
                             std::vector<std::int64_t> shape, std::string_view where);
  // Throws DataError when it is missing, or of another type, or has no axis.
  static PlainDataset open(const Hdf5Id& group, const std::string& name, ElementType type,
                           std::string_view where);
  // The same; throws also when the dataset has another shape. A length of -1 allows any length.
  static PlainDataset open(const Hdf5Id& group, const std::string& name, ElementType type,
                           std::vector<std::int64_t> shape, std::string_view where);

  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t rows() const { return shape_[0]; }

  // Writes rows first .. first + count - 1; count follows from the size of `values`. Throws
  // std::out_of_range, and IoError.
  template <typename T>
  void write(std::int64_t first, std::span<const T> values) {
    write_rows(first, values.size(), element_type<T>(), values.data());
  }
  template <typename T>
  void read(std::int64_t first, std::span<T> values) const {
    read_rows(first, values.size(), element_type<T>(), values.data());
  }
  template <typename T>
  std::vector<T> read(std::int64_t first, std::int64_t count) const {
    std::vector<T> values(static_cast<std::size_t>(count * row_elements()));
    read(first, std::span<T>(values));
    return values;
  }

 private:
  std::int64_t row_elements() const;
  Hdf5Id select(std::int64_t first, std::size_t elements, ElementType type) const;
  void write_rows(std::int64_t first, std::size_t elements, ElementType type, const void* values);
  void read_rows(std::int64_t first, std::size_t elements, ElementType type, void* values) const;

  Hdf5Id id_;
  std::string where_;
  ElementType type_ = ElementType::u8;
  std::vector<std::int64_t> shape_;
};

// Writes or reads a whole dataset.
template <typename T>
void write_plain(const Hdf5Id& group, const std::string& name, std::span<const T> values,
                 std::vector<std::int64_t> shape, std::string_view where) {
  PlainDataset::create(group, name, element_type<T>(), std::move(shape), where).write(0, values);
}
template <typename T>
std::vector<T> read_plain(const Hdf5Id& group, const std::string& name,
                          std::vector<std::int64_t> shape, std::string_view where) {
  const auto dataset = PlainDataset::open(group, name, element_type<T>(), std::move(shape), where);
  return dataset.template read<T>(0, dataset.rows());
}

// Texts with one axis, as UTF-8 padded with zero bytes to the longest one's length.
void write_texts(const Hdf5Id& group, const std::string& name, std::span<const std::string> texts,
                 std::string_view where);
// Throws DataError when they are missing, or there are not exactly `count` texts.
std::vector<std::string> read_texts(const Hdf5Id& group, const std::string& name,
                                    std::int64_t count, std::string_view where);

}  // namespace tpudist
