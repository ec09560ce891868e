#include "data/convert/source_npz.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/error.hpp"
#include "data/hlo/tuning_file.hpp"
#include "schema/collection_folders.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

fs::path make_folder(const fs::path& parent) {
  std::string name = (parent / "shard-tuning.XXXXXX").string();
  if (!::mkdtemp(name.data()))
    throw IoError(
        fmt::format("cannot make a folder in {}: {}", parent.string(), std::strerror(errno)));
  return name;
}

// A file name of what a module calls itself.
std::string file_name_of(std::string name) {
  for (char& c : name) {
    if (c == '/' || c == '\0') c = '_';
  }
  return name;
}

}  // namespace

bool is_source(const fs::path& file) {
  return is_npz(file) || file.extension() == ".pb";
}

SourceNpz::SourceNpz(const fs::path& source, const Collection& collection, const fs::path& folder) {
  if (source.extension() != ".pb") {
    files_ = {source};
    return;
  }
  const HloFile file(source);
  const auto kind = collection.is_tile() ? HloFileKind::tuned_modules : HloFileKind::tuned_module;
  if (file.kind() != kind) {
    throw DataError(fmt::format("{}: is {}; a collection {} takes {} alone", source.string(),
                                kind_name(file.kind()), collection.name, kind_name(kind)));
  }
  own_folder_ = make_folder(folder);
  try {
    dropped_modules_ = file.dropped_modules();
    for (int i = 0; i < file.size(); ++i) {
      const TunedModule module = file.module(i);
      dropped_runs_ += module.dropped_runs;
      const std::string name =
          collection.is_tile()
              ? fmt::format("{}_{}", file_name_of(module.module.name), module.number)
              : source.stem().string();
      files_.push_back(own_folder_ / (name + ".npz"));
      write_tuned_npz(module, file.where(i), files_.back());
    }
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(own_folder_, ignored);
    throw;
  }
}

SourceNpz::~SourceNpz() {
  std::error_code ignored;
  if (!own_folder_.empty()) fs::remove_all(own_folder_, ignored);
}

}  // namespace tpudist
