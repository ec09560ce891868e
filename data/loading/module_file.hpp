#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/convert/source_npz.hpp"
#include "data/loading/dataset.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {

// A module to compile: one graph with the configurations to rank, from a file that `tpudist
// convert` takes. In an NPZ, run times are optional.
struct Module {
  Dataset dataset;         // only this graph, in memory; every configuration is a row
  bool has_times = false;  // whether the file has run times; if not, the dataset's are 0
  // The number in the file of each configuration; empty if they are the file's rows.
  std::vector<std::int64_t> config_numbers;
  // The default configuration, a row: that of the default run or layouts, in an NPZ the first.
  // Nothing if made configurations lack it.
  std::optional<std::int64_t> standard;
  std::shared_ptr<const MadeConfigs> made;  // null if the configurations are the file's
  std::int64_t number_of(std::int64_t config) const {
    return config_numbers.empty() ? config : config_numbers[config];
  }
};

// Reads a file without converting it, with the same checks, dictionary, codes and groups of equal
// configurations as in a shard, so that scores have the same bits. `collection` says whether the
// graph is a layout or a tile graph. Configurations are streamed and kept coded or, if they do not
// repeat, in the narrowest type that holds them. `reduction` reduces layout graphs. Throws IoError,
// and DataError with file, array and index at the first value that violates the schema. `name`
// selects a module of a tuning file with several, as in shards. `request` asks for made
// configurations of an HLO module.
Module read_module(const std::filesystem::path& file, const Collection& collection,
                   const GraphReduction& reduction = {}, const std::string& name = {},
                   const ConfigRequest& request = {});

}  // namespace tpudist
