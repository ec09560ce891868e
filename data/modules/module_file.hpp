#pragma once

#include <filesystem>
#include <memory>

#include "data/loading/dataset.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {

// A module as the compiler has it: one graph with the configurations that are to be ranked, read
// from an NPZ file of the schema that `tpudist convert` takes. Run times need not be there.
struct Module {
  Dataset dataset;         // of this one graph, in memory, every configuration a row
  bool has_times = false;  // whether the file tells run times; those of the dataset are 0 otherwise
};

// Reads a file without converting it: the same checks, dictionary, codes and groups of equal
// configurations as in a shard, so that scores have the same bits. `collection` says whether it is
// a layout or a tile graph. Configurations are streamed and held coded, or in the narrowest type
// that keeps them where they do not repeat. The graph is reduced as `reduction` says (layouts).
// Throws IoError, and DataError with file, array and
// index at the first value that breaks the schema.
Module read_module(const std::filesystem::path& npz, const Collection& collection,
                   const GraphReduction& reduction = {});

}  // namespace tpudist
