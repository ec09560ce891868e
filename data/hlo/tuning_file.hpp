#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/hlo/hlo_module.hpp"

namespace tpudist {

// A run of a tuned module.
struct TuningRun {
  std::int64_t number = 0;  // among the module's runs in the file
  std::int64_t nanoseconds = 0;
  bool is_default = false;
  std::span<const char> config;  // LayoutConfig or TileSizeConfig, in the file
};

// A module and, if it was tuned, the runs that the data set keeps: measured without an error; for
// layouts with a configuration, for tiles longer than 1 ns. Without a default run it keeps none.
struct TunedModule {
  HloModule module;
  std::vector<std::int64_t> config_nodes;  // node numbers, as in the file; empty for tiles
  std::vector<TuningRun> runs;
  bool tiles = false;  // whether the configurations are tile sizes
};

// An open file of protos. Literals are skipped in the file, so they take no memory. Methods
// that read throw DataError if the file was written or cut meanwhile. Immutable.
class HloFile {
 public:
  // By content, not by name.
  enum class Kind {
    module,         // HloModuleProto, from as_serialized_hlo_module_proto()
    hlo,            // HloProto: *.hlo.pb of --xla_dump_hlo_as_proto
    snapshot,       // HloSnapshot or HloUnoptimizedSnapshot: with inputs
    tuned_module,   // ModuleTuningData of the data set's layout collections
    tuned_modules,  // TuningData of its tile collections
  };

  // Throws IoError, and DataError for a file of another kind or a damaged one.
  explicit HloFile(const std::filesystem::path& path);
  ~HloFile();
  HloFile(HloFile&&) noexcept;

  Kind kind() const;
  // The number of modules that the data set would keep. A module of tiles needs at least two runs
  // that all have a tile size, one of them the default.
  int size() const;
  std::int64_t dropped_modules() const;
  // A module's name, and its number in the file, which counts dropped modules too.
  std::string name(int index) const;
  int number(int index) const;
  // The runs of a module that the data set keeps. Adds the number of other runs to `dropped`.
  std::vector<TuningRun> runs(int index, std::int64_t* dropped = nullptr) const;
  // Reads a module. Throws DataError.
  TunedModule module(int index) const;
  std::string where(int index) const;  // file and module, for messages
  // Call it after reading configurations of runs.
  void require_unchanged() const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

// "ModuleTuningData" and so on.
std::string_view kind_name(HloFile::Kind kind);

}  // namespace tpudist
