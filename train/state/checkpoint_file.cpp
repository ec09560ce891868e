#include "train/state/checkpoint_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kOverhead = std::size_t{256} << 10;  // for what HDF5 writes in addition to
                                                           // the values

std::vector<hsize_t> stored_shape(const ParameterEntry& entry, int members) {
  std::vector<hsize_t> shape{static_cast<hsize_t>(members)};
  shape.insert(shape.end(), entry.shape.begin(), entry.shape.end());
  return shape;
}

Hdf5Id make_space(const std::vector<hsize_t>& shape) {
  return Hdf5Id(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose);
}

// The place of one entry in a flat buffer [M, P].
Hdf5Id flat_space(const ParameterTable& table, const ParameterEntry& entry, int members) {
  const auto rows = static_cast<hsize_t>(members);
  Hdf5Id space = make_space({rows, static_cast<hsize_t>(table.length())});
  const hsize_t start[2] = {0, static_cast<hsize_t>(entry.offset)};
  const hsize_t count[2] = {rows, static_cast<hsize_t>(entry.size())};
  H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start, nullptr, count, nullptr);
  return space;
}

std::vector<hsize_t> shape_of(const Hdf5Id& dataset) {
  const Hdf5Id space(H5Dget_space(dataset.get()), H5Sclose);
  const int axes = std::max(0, H5Sget_simple_extent_ndims(space.get()));
  std::vector<hsize_t> shape(static_cast<std::size_t>(axes));
  H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr);
  return shape;
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string where, std::size_t bytes)
    : where_(std::move(where)) {
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // In the oldest format: H5Fget_file_image of HDF5 1.10 clears a flag of the newer superblock and
  // leaves its checksum wrong. The file's own hash covers more than HDF5's checksums.
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  H5Pset_fapl_core(access.get(), bytes + kOverhead, /*backing_store=*/false);
  file_ = Hdf5Id(H5Fcreate(where_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
  check_hdf5(file_.get(), "create", where_);
}

Hdf5Id CheckpointWriter::group(const Hdf5Id& parent, const std::string& name) const {
  return create_group(parent, name, where_);
}

template <typename T>
void CheckpointWriter::write_values(const Hdf5Id& group, const std::string& name,
                                    const std::vector<T>& values) {
  const Hdf5Id space = make_space({values.size()});
  write(group, name, element_type<T>(), space, space, values.data());
}

template void CheckpointWriter::write_values(const Hdf5Id&, const std::string&,
                                             const std::vector<double>&);
template void CheckpointWriter::write_values(const Hdf5Id&, const std::string&,
                                             const std::vector<int>&);
template void CheckpointWriter::write_values(const Hdf5Id&, const std::string&,
                                             const std::vector<std::int64_t>&);

void CheckpointWriter::write_flat(const Hdf5Id& group, const ParameterTable& table,
                                  const std::vector<float>& flat, int members) {
  for (const ParameterEntry& entry : table.entries()) {
    write(group, entry.name, ElementType::f32, make_space(stored_shape(entry, members)),
          flat_space(table, entry, members), flat.data());
  }
}

std::vector<std::byte> CheckpointWriter::image(std::size_t room) const {
  check_hdf5(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), "write", where_);
  const auto bytes = static_cast<std::size_t>(
      check_hdf5(H5Fget_file_image(file_.get(), nullptr, 0), "measure", where_));
  std::vector<std::byte> image(room + bytes);
  check_hdf5(H5Fget_file_image(file_.get(), image.data() + room, bytes), "copy", where_);
  return image;
}

void CheckpointWriter::write(const Hdf5Id& group, const std::string& name, ElementType type,
                             const Hdf5Id& stored, const Hdf5Id& memory, const void* data) {
  const Hdf5Id dataset(H5Dcreate2(group.get(), name.c_str(), hdf5_type(type), stored.get(),
                                  H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                       H5Dclose);
  check_hdf5(dataset.get(), "create " + name + " in", where_);
  check_hdf5(H5Dwrite(dataset.get(), hdf5_type(type), memory.get(), H5S_ALL, H5P_DEFAULT, data),
             "write " + name + " to", where_);
}

CheckpointReader::CheckpointReader(const std::filesystem::path& path)
    : where_(path.string()), file_(open_hdf5(path)) {}

void CheckpointReader::refuse(std::string_view what) const {
  throw DataError(fmt::format("{}: {}", where_, what));
}

Hdf5Id CheckpointReader::group(const Hdf5Id& parent, const std::string& name) const {
  return open_group(parent, name, where_);
}

bool CheckpointReader::has(const std::string& name) const {
  return check_hdf5(H5Aexists(file_.get(), name.c_str()), "read attributes of", where_) > 0;
}

bool CheckpointReader::holds(const Hdf5Id& group, const std::string& name) const {
  return check_hdf5(H5Lexists(group.get(), name.c_str(), H5P_DEFAULT), "look into", where_) > 0;
}

std::int64_t CheckpointReader::integer(const std::string& name) const {
  return read_integer_attribute(file_, name, where_);
}

std::string CheckpointReader::text(const std::string& name) const {
  return read_text_attribute(file_, name, where_);
}

std::uint64_t CheckpointReader::hash(const std::string& name) const {
  return read_hash_attribute(file_, name, where_);
}

template <typename T>
std::vector<T> CheckpointReader::values(const Hdf5Id& group, const std::string& name,
                                        int members) const {
  const Hdf5Id dataset = open(group, name);
  if (shape_of(dataset) != std::vector<hsize_t>{static_cast<hsize_t>(members)}) {
    refuse(name + " does not hold one value for each member");
  }
  std::vector<T> values(static_cast<std::size_t>(members));
  check_hdf5(H5Dread(dataset.get(), hdf5_type(element_type<T>()), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                     values.data()),
             "read " + name + " from", where_);
  return values;
}

template std::vector<double> CheckpointReader::values(const Hdf5Id&, const std::string&, int) const;
template std::vector<int> CheckpointReader::values(const Hdf5Id&, const std::string&, int) const;
template std::vector<std::int64_t> CheckpointReader::values(const Hdf5Id&, const std::string&,
                                                            int) const;

std::vector<float> CheckpointReader::flat(const Hdf5Id& group, const ParameterTable& table,
                                          int members) const {
  check_names(group, table);
  std::vector<float> flat(static_cast<std::size_t>(table.length() * members));
  for (const ParameterEntry& entry : table.entries()) {
    const Hdf5Id dataset = open(group, entry.name);
    const auto wanted = stored_shape(entry, members), found = shape_of(dataset);
    if (found != wanted) {
      refuse(fmt::format("parameter {} has the shape [{}], the network's has [{}]", entry.name,
                         fmt::join(found, ", "), fmt::join(wanted, ", ")));
    }
    const Hdf5Id space = flat_space(table, entry, members);
    check_hdf5(H5Dread(dataset.get(), hdf5_type(element_type<float>()), space.get(), H5S_ALL,
                       H5P_DEFAULT, flat.data()),
               "read " + entry.name + " from", where_);
  }
  return flat;
}

std::map<std::string, double> CheckpointReader::numbers(const Hdf5Id& group) const {
  std::map<std::string, double> numbers;
  const auto keep = [](hid_t id, const char* name, const H5A_info_t*, void* out) -> herr_t {
    const Hdf5Id attribute(H5Aopen(id, name, H5P_DEFAULT), H5Aclose);
    const Hdf5Id space(H5Aget_space(attribute.get()), H5Sclose);
    if (H5Sget_simple_extent_npoints(space.get()) != 1) return -1;
    double& value = (*static_cast<std::map<std::string, double>*>(out))[name];
    return H5Aread(attribute.get(), hdf5_type(element_type<double>()), &value);
  };
  check_hdf5(H5Aiterate2(group.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, keep, &numbers),
             "read the numbers of", where_);
  return numbers;
}

Hdf5Id CheckpointReader::open(const Hdf5Id& group, const std::string& name) const {
  Hdf5Id dataset(H5Dopen2(group.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
  if (dataset.get() < 0) refuse("there is no " + name + "; was another network trained?");
  return dataset;
}

void CheckpointReader::check_names(const Hdf5Id& group, const ParameterTable& table) const {
  std::vector<std::string> names;
  const auto keep = [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  check_hdf5(H5Literate(group.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, keep, &names), "list",
             where_);
  for (const std::string& name : names) {
    if (std::ranges::find(table.entries(), name, &ParameterEntry::name) == table.entries().end()) {
      refuse("the network has no parameter " + name + "; was another one trained?");
    }
  }
}

}  // namespace tpudist
