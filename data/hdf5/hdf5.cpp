#include "data/hdf5/hdf5.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <hdf5.h>

#include <array>
#include <cerrno>
#include <optional>
#include <type_traits>

#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"
#include "data/hdf5/element_type.hpp"

namespace tpudist {
namespace {

static_assert(std::is_same_v<hid_t, std::int64_t> && std::is_same_v<herr_t, int>);

// Bytes that HDF5 writes to a file in memory beside the values.
constexpr std::size_t kMemoryFileOverhead = std::size_t{256} << 10;

// The system's part of "file write failed: time = ..., error message = 'No space left on device',
// buf = ..." and the like; empty if there is none.
std::string system_reason(const std::string& reason) {
  constexpr std::string_view kMark = "error message = '";
  const std::size_t at = reason.find(kMark);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + kMark.size();
  return reason.substr(begin, reason.find('\'', begin) - begin);
}

// Keeps the part that helps the user.
std::string shortened(const std::string& reason) {
  const std::string what = reason.substr(0, reason.find_first_of(":\n"));
  const std::string system = system_reason(reason);
  return system.empty() ? what : what + ": " + system;
}

// The description of the innermost error on the library's stack.
std::string innermost_reason() TPUDIST_REQUIRES(hdf5_mutex()) {
  std::string reason = "unknown reason";
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned n, const H5E_error2_t* error, void* out) -> herr_t {
        if (n == 0 && error->desc) *static_cast<std::string*>(out) = error->desc;
        return 0;
      },
      &reason);
  return reason;
}

std::string hdf5_reason() TPUDIST_REQUIRES(hdf5_mutex()) {
  const std::string reason = shortened(innermost_reason());
  H5Eclear2(H5E_DEFAULT);
  return reason;
}

bool has_system_error(const std::string& reason, int error) {
  return reason.find(fmt::format("errno = {},", error)) != std::string::npos;
}

// Why the system could not read in the failed call; empty if the system is not at fault. A damaged
// address points outside the file, which the system reports as an invalid argument.
std::string refusal() TPUDIST_REQUIRES(hdf5_mutex()) {
  const std::string reason = innermost_reason();
  if (has_system_error(reason, EINVAL)) return {};
  std::string text = system_reason(reason);
  for (const int error : {EMFILE, ENFILE}) {
    if (has_system_error(reason, error)) text += advice_for(error);
  }
  return text;
}

// HDF5 repeats a read or write that a signal interrupts, but not the opening of a file.
template <typename Open>
hid_t uninterrupted_open(Open open) TPUDIST_REQUIRES(hdf5_mutex()) {
  for (;;) {
    const hid_t file = open();
    if (file >= 0 || !has_system_error(innermost_reason(), EINTR)) return file;
  }
}

Hdf5Id access_properties() TPUDIST_REQUIRES(hdf5_mutex()) {
  Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  H5Pset_file_locking(access.get(), /*use_file_locking=*/false, /*ignore_when_disabled=*/true);
  return access;
}

Hdf5Id text_type() TPUDIST_REQUIRES(hdf5_mutex()) {
  Hdf5Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), H5T_VARIABLE);  // h5py reads these as str, fixed lengths as bytes
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return type;
}

// `type`: in the file and of `value`.
void write_scalar(const Hdf5Id& object, const std::string& name, hid_t type, const void* value)
    TPUDIST_REQUIRES(hdf5_mutex()) {
  const Hdf5Id space(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Id attribute(
      H5Acreate2(object.get(), name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose);
  check_hdf5(attribute.get(), "create attribute", name);
  check_hdf5(H5Awrite(attribute.get(), type, value), "write attribute", name);
}

Hdf5Id open_attribute(const Hdf5Id& object, const std::string& name, H5T_class_t kind,
                      std::string_view where) TPUDIST_REQUIRES(hdf5_mutex()) {
  Hdf5Id attribute(H5Aopen(object.get(), name.c_str(), H5P_DEFAULT), H5Aclose);
  if (attribute.get() < 0) {
    throw_if_unreadable(where);
    throw DataError(fmt::format("{}: attribute {} is missing", where, name));
  }
  const Hdf5Id type(H5Aget_type(attribute.get()), H5Tclose);
  const Hdf5Id space(H5Aget_space(attribute.get()), H5Sclose);
  if (H5Tget_class(type.get()) != kind || H5Sget_simple_extent_npoints(space.get()) != 1 ||
      (kind == H5T_STRING && H5Tis_variable_str(type.get()) <= 0)) {
    throw DataError(fmt::format("{}: attribute {} is of another type", where, name));
  }
  return attribute;
}

}  // namespace

Hdf5Mutex& hdf5_mutex() {
  static Hdf5Mutex mutex;
  return mutex;
}

Hdf5Lock::Hdf5Lock() : lock_(hdf5_mutex()) {
  // If a file cannot be closed (a full disk), the library's clean-up at exit crashes. tpudist
  // closes all files itself.
  static const bool without_atexit = H5dont_atexit() >= 0;
  static_cast<void>(without_atexit);
  thread_local bool silenced = false;
  if (!silenced) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    silenced = true;
  }
}

bool Hdf5Id::close() {
  if (id_ < 0) return true;
  const Hdf5Lock lock;
  return close_(std::exchange(id_, -1)) >= 0;
}

void Hdf5Id::reset() noexcept {
  close();
}

std::int64_t check_hdf5(std::int64_t result, std::string_view operation, std::string_view where) {
  if (result >= 0) return result;
  throw IoError(fmt::format("cannot {} {}: HDF5 says: {}", operation, where, hdf5_reason()));
}

std::int64_t check_hdf5_read(std::int64_t result, std::string_view what, std::string_view where) {
  if (result >= 0) return result;
  throw_if_unreadable(where);
  throw DataError(fmt::format("{}: {} cannot be read: the file is damaged", where, what));
}

void throw_if_unreadable(std::string_view where) {
  const std::string reason = refusal();
  if (!reason.empty()) throw IoError(fmt::format("cannot read {}: {}", where, reason));
}

Hdf5Id create_hdf5(const std::filesystem::path& path, std::size_t room) {
  const Hdf5Lock lock;
  const Hdf5Id access = access_properties();
  const Hdf5Id properties(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties.get(), false);  // equal data give equal files
  H5Pset_userblock(properties.get(), room);
  Hdf5Id file(uninterrupted_open([&] {
                return H5Fcreate(path.c_str(), H5F_ACC_TRUNC, properties.get(), access.get());
              }),
              H5Fclose);
  check_hdf5(file.get(), "create", path.string());
  return file;
}

Hdf5Id open_hdf5(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) &&
      (!error || error == std::errc::no_such_file_or_directory)) {
    throw IoError(fmt::format("cannot open {}: there is no such file", path.string()));
  }
  // HDF5 says only that it cannot open the file; the system says why.
  Descriptor probe(uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  check_posix(probe.get(), "open", path);
  probe.close();
  spdlog::debug("open {} ({})", path.string(),
                format_bytes(std::filesystem::file_size(path, error)));
  const Hdf5Lock lock;
  const Hdf5Id access = access_properties();
  Hdf5Id file(
      uninterrupted_open([&] { return H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()); }),
      H5Fclose);
  if (file.get() < 0) {
    throw_if_unreadable(path.string());
    throw DataError(fmt::format("{}: not a readable HDF5 file ({})", path.string(), hdf5_reason()));
  }
  return file;
}

Hdf5Id create_hdf5_in_memory(const std::string& where, std::size_t bytes) {
  const Hdf5Lock lock;
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // The oldest format, because H5Fget_file_image of HDF5 1.10 clears a flag of the newer superblock
  // and leaves the checksum wrong.
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  H5Pset_fapl_core(access.get(), bytes + kMemoryFileOverhead, /*backing_store=*/false);
  Hdf5Id file(H5Fcreate(where.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
  check_hdf5(file.get(), "create", where);
  return file;
}

Hdf5Id open_hdf5_in_memory(const std::string& where, std::span<const std::byte> bytes) {
  const Hdf5Lock lock;
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  H5Pset_fapl_core(access.get(), kMemoryFileOverhead, /*backing_store=*/false);
  // The library asks for memory to copy the bytes to, three times. It gets the bytes themselves,
  // since nobody writes into a file that is open for reading.
  H5FD_file_image_callbacks_t own = {
      [](std::size_t, H5FD_file_image_op_t, void* bytes) { return bytes; },
      [](void* to, const void*, std::size_t, H5FD_file_image_op_t, void*) { return to; },
      [](void*, std::size_t, H5FD_file_image_op_t, void*) -> void* { return nullptr; },
      [](void*, H5FD_file_image_op_t, void*) -> herr_t { return 0; },
      [](void* bytes) { return bytes; },
      [](void*) -> herr_t { return 0; },
      const_cast<std::byte*>(bytes.data())};
  check_hdf5(H5Pset_file_image_callbacks(access.get(), &own), "open", where);
  check_hdf5(H5Pset_file_image(access.get(), const_cast<std::byte*>(bytes.data()), bytes.size()),
             "open", where);
  // It refuses bytes under the name of a file that is there; below a file there is none.
  const std::string name = where + "/bytes";
  Hdf5Id file(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  if (file.get() < 0)
    throw DataError(fmt::format("{}: not a readable HDF5 file ({})", where, hdf5_reason()));
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

Hdf5Id create_group(const Hdf5Id& parent, const std::string& name, std::string_view where) {
  const Hdf5Lock lock;
  const Hdf5Id properties(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties.get(), false);  // equal data give equal files
  Hdf5Id group(H5Gcreate2(parent.get(), name.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
               H5Gclose);
  check_hdf5(group.get(), "create group " + name + " in", where);
  return group;
}

void require_own(const Hdf5Id& parent, const std::string& name, std::string_view where) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = name.find('/', end + 1);
    H5L_info_t link;
    if (H5Lget_info(parent.get(), name.substr(0, end).c_str(), &link, H5P_DEFAULT) < 0) return;
    if (link.type != H5L_TYPE_HARD)
      throw DataError(fmt::format("{}: {} is a link to another place; copy what it points to",
                                  where, name.substr(0, end)));
  }
}

Hdf5Id open_group(const Hdf5Id& parent, const std::string& name, std::string_view where) {
  const Hdf5Lock lock;
  require_own(parent, name, where);
  Hdf5Id group(H5Gopen2(parent.get(), name.c_str(), H5P_DEFAULT), H5Gclose);
  if (group.get() < 0) {
    throw_if_unreadable(where);
    throw DataError(fmt::format("{}: there is no group {}", where, name));
  }
  return group;
}

bool has_link(const Hdf5Id& parent, const std::string& name) {
  const Hdf5Lock lock;
  const htri_t found = H5Lexists(parent.get(), name.c_str(), H5P_DEFAULT);
  if (found < 0) {
    const std::string reason = refusal();  // asking for the file name would overwrite it
    std::array<char, 4096> file{};
    H5Fget_name(parent.get(), file.data(), file.size());
    if (!reason.empty()) throw IoError(fmt::format("cannot read {}: {}", file.data(), reason));
  }
  return found > 0;
}

void remove_link(const Hdf5Id& parent, const std::string& name, std::string_view where) {
  const Hdf5Lock lock;
  check_hdf5(H5Ldelete(parent.get(), name.c_str(), H5P_DEFAULT), "remove " + name + " from", where);
}

std::vector<std::string> link_names(const Hdf5Id& group, std::string_view where) {
  const Hdf5Lock lock;
  std::vector<std::string> names;
  const auto keep = [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  check_hdf5_read(H5Literate(group.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, keep, &names),
                  "the list of datasets", where);
  return names;
}

void write_attribute(const Hdf5Id& object, const std::string& name, std::int64_t value) {
  const Hdf5Lock lock;
  write_scalar(object, name, hdf5_type(ElementType::i64), &value);
}

void write_number_attribute(const Hdf5Id& object, const std::string& name, double value) {
  const Hdf5Lock lock;
  write_scalar(object, name, hdf5_type(ElementType::f64), &value);
}

void write_attribute(const Hdf5Id& object, const std::string& name, std::string_view value) {
  const Hdf5Lock lock;
  const std::string text(value);
  const char* const pointer = text.c_str();
  const Hdf5Id type = text_type();
  write_scalar(object, name, type.get(), &pointer);
}

bool has_attribute(const Hdf5Id& object, const std::string& name, std::string_view where) {
  const Hdf5Lock lock;
  return check_hdf5_read(H5Aexists(object.get(), name.c_str()), "attribute " + name, where) > 0;
}

std::int64_t read_integer_attribute(const Hdf5Id& object, const std::string& name,
                                    std::string_view where) {
  const Hdf5Lock lock;
  const Hdf5Id attribute = open_attribute(object, name, H5T_INTEGER, where);
  std::int64_t value = 0;
  check_hdf5_read(H5Aread(attribute.get(), hdf5_type(ElementType::i64), &value),
                  "attribute " + name, where);
  return value;
}

std::uint64_t read_hash_attribute(const Hdf5Id& object, const std::string& name,
                                  std::string_view where) {
  const std::string text = read_text_attribute(object, name, where);
  const std::optional<std::uint64_t> hash = from_hex(text);
  if (!hash) {
    throw DataError(fmt::format("{}: attribute {} is '{}', not a hash", where, name, text));
  }
  return *hash;
}

std::string read_text_attribute(const Hdf5Id& object, const std::string& name,
                                std::string_view where) {
  const Hdf5Lock lock;
  const Hdf5Id attribute = open_attribute(object, name, H5T_STRING, where);
  const Hdf5Id type = text_type();
  char* pointer = nullptr;
  check_hdf5_read(H5Aread(attribute.get(), type.get(), &pointer), "attribute " + name, where);
  const std::string text = pointer ? pointer : "";
  H5free_memory(pointer);
  return text;
}

std::map<std::string, double> read_number_attributes(const Hdf5Id& object, std::string_view where) {
  const Hdf5Lock lock;
  std::vector<std::string> names;
  const auto keep = [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  check_hdf5_read(H5Aiterate2(object.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, keep, &names),
                  "its attributes", where);
  std::map<std::string, double> numbers;
  for (const std::string& name : names) {
    const Hdf5Id attribute = open_attribute(object, name, H5T_FLOAT, where);
    check_hdf5_read(H5Aread(attribute.get(), hdf5_type(ElementType::f64), &numbers[name]),
                    "attribute " + name, where);
  }
  return numbers;
}

}  // namespace tpudist
