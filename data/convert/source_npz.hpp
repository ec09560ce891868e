#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/hlo/layout_space.hpp"
#include "data/hlo/tuning_file.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {

// Whether a file of a collection's folder is a source of graphs: an NPZ, or a tuning file (.pb),
// but not the file ._NAME that macOS writes beside NAME.
bool is_source(const std::filesystem::path& file);

// Whether a file is an NPZ, by its name or first bytes.
bool holds_npz(const std::filesystem::path& file);

// Layouts to make for a module, in place of those in its file.
struct ConfigRequest {
  // "default", "neighbours", "random:N" or "random:N:SEED", or a JSON file that names instructions
  // (json_configs); empty: use those of the file.
  std::string configs;
  std::filesystem::path assigned;  // the program after layout assignment; may be empty
};

// Made configurations of a module, and their space.
struct MadeConfigs {
  LayoutSpace space;
  std::vector<LayoutConfig> configs;
};

// A file as a source of graphs: an NPZ by its name or first bytes, else a tuning file. An NPZ, or a
// tuning file of layouts, has one graph, named like the file. The kernels of a tuning file of tiles
// are named FILE_MODULE_NUMBER, with the number in the file, and "_" for all characters except
// letters, digits, "." and "-".
class SourceNpz {
 public:
  // Throws IoError, and DataError for a tuning file that is damaged, of another kind of collection,
  // or has no module that the data set's rules keep. With a request, the file is HLO of any kind
  // with one module; warns of guesses, and throws ConfigError for an invalid request.
  SourceNpz(const std::filesystem::path& source, const Collection& collection,
            const ConfigRequest& request = {});

  const std::vector<std::string>& names() const { return names_; }
  // The index of a graph; -1 if no graph has the name.
  int find(const std::string& name) const;

  // Calls use(npz) with an NPZ of graph `index`: the source, or a temporary file that exists during
  // the call. A DataError of `use` then names the source in place of the temporary file. Throws
  // IoError, DataError.
  void with_npz(int index, const std::function<void(const std::filesystem::path&)>& use) const;
  // The number in the source of each configuration of that NPZ; empty if they are the rows.
  std::vector<std::int64_t> config_numbers(int index) const;
  // The place of the default configuration in that NPZ: of the default run or layouts; nothing for
  // an NPZ, and if made configurations lack it.
  std::optional<std::int64_t> standard(int index) const;
  // Null without a request.
  const std::shared_ptr<const MadeConfigs>& made() const { return made_; }
  // A sentence on the modules and runs that the data set's rules left out; "" if none.
  std::string left_out() const;

 private:
  std::filesystem::path source_;
  std::unique_ptr<HloFile> tuning_;
  std::shared_ptr<const MadeConfigs> made_;
  std::vector<std::string> names_;
};

}  // namespace tpudist
