#include "data/zip_archive.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <utility>

#include "core/error.hpp"

namespace tpudist {
namespace {

std::string text_of(zip_error_t& error) {
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

[[noreturn]] void throw_open_error(const std::filesystem::path& path, int code) {
  const bool system = code == ZIP_ER_NOENT || code == ZIP_ER_OPEN || code == ZIP_ER_MEMORY;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = text_of(error);
  if (system) throw IoError(fmt::format("cannot open {}: {}", path.string(), reason));
  throw DataError(fmt::format("{}: not a sound zip file ({}); it may be damaged or cut short",
                              path.string(), reason));
}

}  // namespace

void ZipStream::Close::operator()(zip_file* file) const {
  zip_fclose(file);
}
void ZipArchive::Close::operator()(zip* archive) const {
  zip_discard(archive);
}

ZipStream::ZipStream(zip_file* file, std::string where) : file_(file), where_(std::move(where)) {}

std::size_t ZipStream::read(std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const zip_int64_t count = zip_fread(file_.get(), out.data() + done, out.size() - done);
    if (count < 0) {
      const zip_error_t* error = zip_file_get_error(file_.get());
      const bool crc = zip_error_code_zip(error) == ZIP_ER_CRC;
      throw DataError(fmt::format(
          "{}: {}", where_,
          crc ? std::string("wrong CRC: the stored bytes are damaged")
              : fmt::format("cannot be inflated ({})", zip_file_strerror(file_.get()))));
    }
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

ZipArchive::ZipArchive(const std::filesystem::path& path) : path_(path) {
  int code = 0;
  zip_.reset(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (!zip_) throw_open_error(path, code);
  const zip_int64_t count = zip_get_num_entries(zip_.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    const zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_ENCRYPTION_METHOD;
    if (zip_stat_index(zip_.get(), static_cast<zip_uint64_t>(i), 0, &stat) != 0 ||
        (stat.valid & needed) != needed) {
      throw DataError(fmt::format("{}: the zip directory lacks entry {}", path.string(), i));
    }
    if (stat.encryption_method != ZIP_EM_NONE) {
      throw DataError(fmt::format("{}: {} is encrypted", path.string(), stat.name));
    }
    members_.push_back({stat.name, stat.size});
  }
}

ZipStream ZipArchive::open(std::size_t member) const {
  const std::string where = fmt::format("{}: {}", path_.string(), members_.at(member).name);
  zip_file* file = zip_fopen_index(zip_.get(), member, 0);
  if (!file) {
    throw DataError(fmt::format("{}: cannot be opened ({})", where, zip_strerror(zip_.get())));
  }
  return ZipStream(file, where);
}

}  // namespace tpudist
