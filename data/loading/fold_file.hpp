#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/yaml_tree.hpp"
#include "data/loading/fold_table.hpp"

namespace tpudist {

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
