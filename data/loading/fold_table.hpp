#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/yaml_tree.hpp"
#include "data/loading/dataset.hpp"

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

// Splits training graphs into `folds`, by assign_folds with `seed` and each graph's nodes as its
// weight, or by a fold file. Only shards, collection and patterns of `graphs` matter, and whether
// there is a second split, valid, whose graphs are then split too. A name in both splits gets one
// fold.
//
// Without a file, the graphs are those of the collection and of its sibling, if both lie in the
// shard root: `layout:X:random` and `layout:X:default` have nearly the same graphs, so a family has
// the same fold in both. With a file, only the collection's own graphs are used.
//
// Throws ConfigError if there are fewer families than folds, the exceptions of reading the file,
// and DataError if a manifest cannot be used.
FoldTable split_into_folds(const DatasetOptions& graphs, int folds, std::uint64_t seed = 1,
                           const std::filesystem::path& file = {});

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

// Explicit folds, as a YAML file:
//
//     folds: 3                    # their number; may be left out
//     graphs:                     # names, or patterns (`*`, `?`, `[a-z]`)
//       resnet50.4x4.fp16: 0
//       'mlperf_*': 1
//     families:                   # names of model families, or patterns
//       bert_l12: 2
//
// Each graph must match exactly one line. Lines that match no graph are allowed, so that one file
// serves collections that lack some graphs.
class FoldFile {
 public:
  // Throws ConfigError `file:line:column: message` for a file of another form, and IoError if it
  // cannot be read.
  static FoldFile read(const std::filesystem::path& path);
  // `name` stands for the text in messages.
  static FoldFile parse(std::string_view yaml, std::string_view name);

  // The stated number of folds, else the largest fold of any line plus 1.
  int folds() const;

  // The fold of each line of `graphs`, by the line's name or pattern.
  std::map<std::string, int> graph_lines() const;

  // [graphs] By names, even if graphs are given by ids. Throws ConfigError, with the lines, if a
  // graph matches no line or several. Also throws if the file has another number of folds: it
  // states another number, or it states none and no line names some fold.
  std::vector<int> folds_of(std::span<const FoldedGraph> graphs, int folds) const;

 private:
  struct Line {
    bool of_family = false;
    std::string pattern;
    int fold = 0;
    YamlLocation place;
  };
  std::vector<const Line*> lines_of(const FoldedGraph& graph) const;

  void check_folds(int folds) const;

  std::string name_;
  std::optional<int> stated_;
  std::vector<Line> lines_;
};

// A table as a fold file with every graph's full name. Comments give the source of the folds.
std::string fold_file_text(const FoldTable& table);

}  // namespace tpudist
