#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/hdf5/element_type.hpp"
#include "data/hdf5/hdf5.hpp"
#include "models/parameters/parameter_table.hpp"

namespace tpudist {

// The HDF5 file of a checkpoint while it is built, in memory only. Create groups with create_group
// and attributes with write_attribute (data/hdf5/hdf5.hpp). Hold an Hdf5Lock during its lifetime.
class CheckpointWriter {
 public:
  // `where` names the file in messages. `bytes`: the expected size. HDF5 allocates and clears
  // memory in steps of this size.
  CheckpointWriter(std::string where, std::size_t bytes);

  const Hdf5Id& file() const { return file_; }
  Hdf5Id group(const Hdf5Id& parent, const std::string& name) const;

  // A dataset with one axis; T is double, int or int64.
  template <typename T>
  void write_values(const Hdf5Id& group, const std::string& name, const std::vector<T>& values);
  // A dataset [M, shape...] for each entry of the table, from the flat buffer [M, P].
  void write_flat(const Hdf5Id& group, const ParameterTable& table, const std::vector<float>& flat,
                  int members);

  // The bytes of the file, after `room` free bytes.
  std::vector<std::byte> image(std::size_t room) const;

 private:
  void write(const Hdf5Id& group, const std::string& name, ElementType type, const Hdf5Id& stored,
             const Hdf5Id& memory, const void* data);

  std::string where_;
  Hdf5Id file_;
};

// Reads such a file after its hash has been checked. A fault then means that another program wrote
// it or that it is for another network, and is a DataError. Hold an Hdf5Lock during its lifetime.
class CheckpointReader {
 public:
  explicit CheckpointReader(const std::filesystem::path& path);

  const Hdf5Id& file() const { return file_; }
  Hdf5Id group(const Hdf5Id& parent, const std::string& name) const;

  bool has(const std::string& name) const;                         // whether the file has this
                                                                   // attribute
  bool holds(const Hdf5Id& group, const std::string& name) const;  // whether the group has this
                                                                   // dataset or group
  std::int64_t integer(const std::string& name) const;
  std::string text(const std::string& name) const;
  std::uint64_t hash(const std::string& name) const;  // 16 hexadecimal digits

  template <typename T>
  std::vector<T> values(const Hdf5Id& group, const std::string& name, int members) const;
  // The inverse of write_flat; padding is zero. Throws DataError that names the first parameter
  // that is missing in the file or in the table.
  std::vector<float> flat(const Hdf5Id& group, const ParameterTable& table, int members) const;
  std::map<std::string, double> numbers(const Hdf5Id& group) const;

  // Throws DataError "FILE: what".
  [[noreturn]] void refuse(std::string_view what) const;

 private:
  Hdf5Id open(const Hdf5Id& group, const std::string& name) const;
  void check_names(const Hdf5Id& group, const ParameterTable& table) const;

  std::string where_;
  Hdf5Id file_;
};

}  // namespace tpudist
