#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/schema/collection.hpp"

namespace tpudist {

// A graph and its fold.
struct FoldedGraph {
  std::string name, family;  // model_family(name)
  std::int64_t nodes = 0;    // the weight for balanced folds
  int fold = 0;
};

// Training graphs, or training and validation graphs, in folds 0 .. folds-1. Plain data.
struct FoldTable {
  int folds = 0;                         // 0: no folds, all other fields are empty
  std::vector<std::string> collections;  // of the graphs
  bool with_valid = false;               // whether graphs of the validation split are included
  std::string origin;                    // source of the folds: "seed 1", or the file's name
  std::vector<FoldedGraph> graphs;       // sorted by name, all different

  // Null if no graph has this name.
  const FoldedGraph* find(std::string_view name) const;
};

// The graphs to split, and how.
struct FoldRequest {
  std::filesystem::path shards;  // shard root
  Collection collection;         // its split `train` is divided
  // Patterns over graph names, as in DatasetOptions.
  std::vector<std::string> include = {}, exclude = {};
  int folds = 0;
  std::uint64_t seed = 1;           // of assign_folds
  std::filesystem::path file = {};  // a fold file instead; empty: none
  // Whether the split `valid` is divided too, and patterns over its graph names. A name in both
  // splits gets one fold.
  bool with_valid = false;
  std::vector<std::string> include_valid = {}, exclude_valid = {};
};

// Splits graphs into folds, by assign_folds with each graph's nodes as its weight, or by `file`.
//
// Without a file, the graphs are those of the collection and of its sibling, if both lie in the
// shard root: `layout:X:random` and `layout:X:default` have nearly the same graphs, so a family has
// the same fold in both. With a file, only the collection's own graphs are used.
//
// Throws ConfigError if there are fewer families than folds, the exceptions of reading the file,
// and DataError if a manifest cannot be used.
FoldTable split_into_folds(const FoldRequest& request);

// The collections whose graphs are split together: this one, and its sibling if the sibling's
// manifest lies in the shard root. Sorted by name.
std::vector<Collection> collections_of_folds(const std::filesystem::path& shards,
                                             const Collection& collection);

// A warning of model families in several folds, which only a fold file can cause; "" if there are
// none.
std::string split_family_warning(const FoldTable& table);

// XXH3 over the number of folds and the fold of each of these graphs, which must be in the table.
// If hashes are equal, members with equal numbers train on equal graphs. The order of names does
// not matter.
std::uint64_t hash_of_folds(const FoldTable& table, std::vector<std::string> names);

// An aligned table: a line per fold (families, graphs, nodes), then a line per family.
std::string fold_table_text(const FoldTable& table);

}  // namespace tpudist
