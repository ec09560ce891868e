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

// The HDF5 file of a checkpoint while it is written, in memory alone. Groups come from
// create_group, attributes from write_attribute (data/hdf5/hdf5.hpp). Hold an Hdf5Lock for its
// lifetime.
class CheckpointWriter {
 public:
  // `where` names the file in messages. `bytes` is about what will be written: HDF5 clears the memory
  // that it takes for the file, and takes as much at a time.
  CheckpointWriter(std::string where, std::size_t bytes);

  const Hdf5Id& file() const { return file_; }
  Hdf5Id group(const Hdf5Id& parent, const std::string& name) const;

  // A dataset with one axis; T is double, int or int64.
  template <typename T>
  void write_values(const Hdf5Id& group, const std::string& name, const std::vector<T>& values);
  // A dataset [M, shape...] for each entry of the table, taken from the flat buffer [M, P].
  void write_flat(const Hdf5Id& group, const ParameterTable& table, const std::vector<float>& flat,
                  int members);

  // The bytes of the file, with `room` bytes in front.
  std::vector<std::byte> image(std::size_t room) const;

 private:
  void write(const Hdf5Id& group, const std::string& name, ElementType type, const Hdf5Id& stored,
             const Hdf5Id& memory, const void* data);

  std::string where_;
  Hdf5Id file_;
};

// Reads such a file, whose hash is known to be right: what it finds wrong was written by another
// program or for another network, and is a DataError. Hold an Hdf5Lock for its lifetime.
class CheckpointReader {
 public:
  explicit CheckpointReader(const std::filesystem::path& path);

  const Hdf5Id& file() const { return file_; }
  Hdf5Id group(const Hdf5Id& parent, const std::string& name) const;

  bool has(const std::string& name) const;                         // this attribute of the file
  bool holds(const Hdf5Id& group, const std::string& name) const;  // a dataset or group
  std::int64_t integer(const std::string& name) const;
  std::string text(const std::string& name) const;
  std::uint64_t hash(const std::string& name) const;  // 16 hexadecimal digits

  template <typename T>
  std::vector<T> values(const Hdf5Id& group, const std::string& name, int members) const;
  // What write_flat wrote, padding zero. Refuses parameters that the table lacks or that are
  // missing, and names the first.
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
