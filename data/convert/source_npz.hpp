#pragma once

#include <filesystem>
#include <vector>

#include "schema/collection.hpp"

namespace tpudist {

// Whether a file can be a source of graphs: an NPZ, or a tuning file (.pb) of the data set.
bool is_source(const std::filesystem::path& file);

// The NPZ files of a source: itself, or those made of a tuning file, in a folder that is removed with
// the object. A layout graph has the name of its file; a kernel that of its module with its number in
// the file, as in the data set: "fusion.206_10".
class SourceNpz {
 public:
  // `folder`: where files may be made. Throws IoError, and DataError for a file that is damaged or of
  // another kind of collection.
  SourceNpz(const std::filesystem::path& source, const Collection& collection,
            const std::filesystem::path& folder);
  ~SourceNpz();
  SourceNpz(const SourceNpz&) = delete;
  SourceNpz& operator=(const SourceNpz&) = delete;

  const std::vector<std::filesystem::path>& files() const { return files_; }
  // Of a tuning file: modules, and runs of the others, that the data set's rules drop.
  std::int64_t dropped_modules() const { return dropped_modules_; }
  std::int64_t dropped_runs() const { return dropped_runs_; }

 private:
  std::filesystem::path own_folder_;
  std::vector<std::filesystem::path> files_;
  std::int64_t dropped_modules_ = 0, dropped_runs_ = 0;
};

}  // namespace tpudist
