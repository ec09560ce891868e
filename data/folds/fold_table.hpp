#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/schema/collection.hpp"

namespace tpudist {

// A graph and the fold that it lies in.
struct FoldedGraph {
  std::string name, family;  // model_family(name)
  std::int64_t nodes = 0;    // its weight when folds are levelled
  int fold = 0;
};

// Training graphs, or training and validation graphs, in folds 0 .. folds-1. Plain data.
struct FoldTable {
  int folds = 0;                         // 0 = none: the rest is empty
  std::vector<std::string> collections;  // whose graphs these are
  bool with_valid = false;               // whether those of the validation split are among them
  std::string origin;                    // where the folds come from: "seed 1", or the file's name
  std::vector<FoldedGraph> graphs;       // in the order of names, which differ

  // Null where there is none of this name.
  const FoldedGraph* find(std::string_view name) const;
};

// What is to be split.
struct FoldRequest {
  std::filesystem::path shards;  // shard root
  Collection collection;         // its split `train`
  // Patterns over graph names, as in DatasetOptions.
  std::vector<std::string> include = {}, exclude = {};
  int folds = 0;
  std::uint64_t seed = 1;           // of assign_folds
  std::filesystem::path file = {};  // a fold file that says which fold instead; empty = none
  // Whether graphs of the split `valid` are split too, and patterns over their names. A name that both
  // splits have lies in one fold.
  bool with_valid = false;
  std::vector<std::string> include_valid = {}, exclude_valid = {};
};

// Splits graphs into folds: as assign_folds does with the nodes of each graph as its
// weight, or as `file` says.
//
// Without a file the graphs are those of the collection and of its sibling, if both lie in the shard
// root: `layout:X:random` and `layout:X:default` hold the same graphs but for some that one of them
// lacks. So a family has the same fold in both. With a file they are the collection's own.
//
// Throws ConfigError when there are fewer families than folds, and what reading the file throws;
// DataError when a manifest cannot be used.
FoldTable split_into_folds(const FoldRequest& request);

// The collections whose graphs are split together: this one, and its sibling if its manifest lies in
// the shard root. In the order of names.
std::vector<Collection> collections_of_folds(const std::filesystem::path& shards,
                                             const Collection& collection);

// What to warn of where model families lie in several folds, which only a fold file does; else empty.
std::string split_family_warning(const FoldTable& table);

// XXH3 over the number of folds and the fold of each of these graphs, which the table holds: equal
// hashes mean that equal members train on equal graphs. The order of names does not matter.
std::uint64_t hash_of_folds(const FoldTable& table, std::vector<std::string> names);

// An aligned table: a line for each fold (families, graphs, nodes), then a line for each family.
std::string fold_table_text(const FoldTable& table);

}  // namespace tpudist
