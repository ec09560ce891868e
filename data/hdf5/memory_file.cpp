#include "data/hdf5/memory_file.hpp"

#include "data/hdf5/element_type.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kOverhead = std::size_t{256} << 10;  // what HDF5 writes beside the values

}  // namespace

Hdf5Id create_hdf5_in_memory(const std::string& where, std::size_t bytes) {
  const Hdf5Lock lock;
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // In the oldest format: H5Fget_file_image of HDF5 1.10 clears a flag of the newer superblock and
  // leaves its checksum wrong.
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  H5Pset_fapl_core(access.get(), bytes + kOverhead, /*backing_store=*/false);
  Hdf5Id file(H5Fcreate(where.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
  check_hdf5(file.get(), "create", where);
  return file;
}

std::vector<std::byte> hdf5_image(const Hdf5Id& file, std::size_t room, std::string_view where) {
  const Hdf5Lock lock;
  check_hdf5(H5Fflush(file.get(), H5F_SCOPE_GLOBAL), "write", where);
  const auto bytes = static_cast<std::size_t>(
      check_hdf5(H5Fget_file_image(file.get(), nullptr, 0), "measure", where));
  std::vector<std::byte> image(room + bytes);
  check_hdf5(H5Fget_file_image(file.get(), image.data() + room, bytes), "copy", where);
  return image;
}

std::vector<std::string> link_names(const Hdf5Id& group, std::string_view where) {
  const Hdf5Lock lock;
  std::vector<std::string> names;
  const auto keep = [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  check_hdf5(H5Literate(group.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, keep, &names), "list",
             where);
  return names;
}

std::map<std::string, double> read_number_attributes(const Hdf5Id& object, std::string_view where) {
  const Hdf5Lock lock;
  std::map<std::string, double> numbers;
  const auto keep = [](hid_t id, const char* name, const H5A_info_t*, void* out) -> herr_t {
    const Hdf5Id attribute(H5Aopen(id, name, H5P_DEFAULT), H5Aclose);
    const Hdf5Id space(H5Aget_space(attribute.get()), H5Sclose);
    if (H5Sget_simple_extent_npoints(space.get()) != 1) return -1;
    double& value = (*static_cast<std::map<std::string, double>*>(out))[name];
    return H5Aread(attribute.get(), hdf5_type(ElementType::f64), &value);
  };
  check_hdf5(H5Aiterate2(object.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, keep, &numbers),
             "read the numbers of", where);
  return numbers;
}

}  // namespace tpudist
