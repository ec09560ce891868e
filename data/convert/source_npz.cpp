#include "data/convert/source_npz.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "data/hlo/tuned_npz.hpp"
#include "schema/collection_folders.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

// What is thrown away need not reach the disk.
class UnsyncedFiles : public FileSystem {
 public:
  std::unique_ptr<WritableFile> create(const fs::path& path) override {
    return std::make_unique<Unsynced>(posix_file_system().create(path));
  }
  void rename(const fs::path& from, const fs::path& to) override {
    posix_file_system().rename(from, to);
  }
  void remove(const fs::path& path) override { posix_file_system().remove(path); }
  void sync_file(const fs::path&) override {}
  void sync_directory(const fs::path&) override {}

 private:
  class Unsynced : public WritableFile {
   public:
    explicit Unsynced(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
    void write(std::span<const std::byte> bytes) override { file_->write(bytes); }
    void sync() override {}
    void close() override { file_->close(); }

   private:
    std::unique_ptr<WritableFile> file_;
  };
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    if (error) throw IoError("there is no folder for temporary files: set TMPDIR");
    std::string name = (parent / "tpudist-tuning-XXXXXX").string();
    if (!::mkdtemp(name.data())) {
      throw IoError(
          fmt::format("cannot make a folder in {}: {}", parent.string(), std::strerror(errno)));
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string plain_name(std::string name) {
  constexpr std::size_t kLongest = 100;
  name.resize(std::min(name.size(), kLongest));
  for (char& c : name) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '.' || c == '-';
    if (!plain) c = '_';
  }
  return name;
}

}  // namespace

bool is_source(const fs::path& file) {
  return is_npz(file) || file.extension() == ".pb";
}

SourceNpz::SourceNpz(const fs::path& source, const Collection& collection) : source_(source) {
  const std::string stem = source.stem().string();
  if (source.extension() != ".pb") {
    names_ = {stem};
    return;
  }
  tuning_ = std::make_unique<HloFile>(source);
  const auto kind = collection.is_tile() ? HloFileKind::tuned_modules : HloFileKind::tuned_module;
  if (tuning_->kind() != kind) {
    throw DataError(fmt::format("{}: is {}; a collection {} takes {} alone", source.string(),
                                kind_name(tuning_->kind()), collection.name, kind_name(kind)));
  }
  for (int i = 0; i < tuning_->size(); ++i) {
    names_.push_back(
        collection.is_tile()
            ? fmt::format("{}_{}_{}", stem, plain_name(tuning_->name(i)), tuning_->number(i))
            : stem);
  }
  if (names_.empty()) {
    throw DataError(
        fmt::format("{}: the data set's rules keep none of its {} modules: each needs two "
                    "runs that all have a tile size, one of them the default",
                    source.string(), tuning_->dropped_modules()));
  }
}

int SourceNpz::find(const std::string& name) const {
  const auto found = std::ranges::find(names_, name);
  return found == names_.end() ? -1 : static_cast<int>(found - names_.begin());
}

void SourceNpz::with_npz(int index, const std::function<void(const fs::path&)>& use) const {
  if (!tuning_) return use(source_);
  const TemporaryFolder folder;
  const fs::path npz = folder.path() / (names_[static_cast<std::size_t>(index)] + ".npz");
  UnsyncedFiles files;
  write_tuned_npz(tuning_->module(index), tuning_->where(index), npz, files);
  try {
    use(npz);
  } catch (const DataError& error) {
    std::string message = error.what();
    if (const auto at = message.find(npz.string()); at != std::string::npos)
      message.replace(at, npz.string().size(), tuning_->where(index));
    throw DataError(message);
  }
}

std::vector<std::int64_t> SourceNpz::config_numbers(int index) const {
  std::vector<std::int64_t> numbers;
  if (!tuning_) return numbers;
  for (const TuningRun& run : tuning_->runs(index)) numbers.push_back(run.number);
  return numbers;
}

std::string SourceNpz::left_out() const {
  if (!tuning_) return "";
  std::int64_t runs = 0;
  for (int i = 0; i < tuning_->size(); ++i) tuning_->runs(i, &runs);
  if (runs + tuning_->dropped_modules() == 0) return "";
  return fmt::format("{}: {} modules and {} runs are left out by the data set's rules",
                     source_.string(), tuning_->dropped_modules(), runs);
}

}  // namespace tpudist
