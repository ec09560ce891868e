#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/hlo/layout_space.hpp"
#include "data/hlo/tuning_file.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {

// Whether a file of a collection's folder is a source of graphs: an NPZ, or a tuning file (.pb),
// but not the file ._NAME that macOS writes beside NAME.
bool is_source(const std::filesystem::path& file);

// Layouts that are to be made for a module, in place of those that its file has.
struct ConfigRequest {
  // "default", "neighbours", "random:N" or "random:N:SEED", or a JSON file that names instructions
  // (json_configs); empty: those of the file.
  std::string configs;
  std::filesystem::path assigned;  // the program after layout assignment; may be empty
};

// Made configurations of a module, and of what space.
struct MadeConfigs {
  LayoutSpace space;
  std::vector<LayoutConfig> configs;
};

// A file as a source of graphs: an NPZ by its name or its first bytes, or else a tuning file. An
// NPZ has one graph, of the file's name. So has a tuning file of
// layouts; the kernels of one of tiles are called FILE_MODULE_NUMBER, with the number in the file
// and other characters than letters, digits, "." and "-" as "_".
class SourceNpz {
 public:
  // Throws IoError, and DataError for a tuning file that is damaged, of another kind of collection,
  // or has no module that the data set's rules keep. With a request the file is one of HLO, of any
  // kind, with one module; warns of what is guessed, and throws ConfigError for a request that is
  // none.
  SourceNpz(const std::filesystem::path& source, const Collection& collection,
            const ConfigRequest& request = {});

  const std::vector<std::string>& names() const { return names_; }
  // The index of a graph, -1 where there is none of the name.
  int find(const std::string& name) const;

  // Calls use(npz) with an NPZ of graph `index`: the source, or one that is made for the
  // time of the call in the folder for temporary files. What `use` throws as DataError then names the
  // source in its place. Throws IoError, DataError.
  void with_npz(int index, const std::function<void(const std::filesystem::path&)>& use) const;
  // The number in the source of each configuration of that NPZ; empty where they are its rows.
  std::vector<std::int64_t> config_numbers(int index) const;
  // The names of the instructions, which are the nodes of graph `index`; empty of an NPZ.
  std::vector<std::string> node_names(int index) const;
  // Null without a request.
  const std::shared_ptr<const MadeConfigs>& made() const { return made_; }
  // "", or a sentence on what the data set's rules left out.
  std::string left_out() const;

 private:
  std::filesystem::path source_;
  std::unique_ptr<HloFile> tuning_;
  std::shared_ptr<const MadeConfigs> made_;
  std::vector<std::string> names_;
};

}  // namespace tpudist
