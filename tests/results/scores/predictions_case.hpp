#pragma once

#include <filesystem>
#include <limits>
#include <vector>

#include "results/records/predictions_file.hpp"

namespace tpudist::test {

inline constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

// Predictions of one run: members 0 and 1 over two folds, and member 2, which failed. Two training
// graphs, each scored by the member that holds it out, and one validation graph.
struct PredictionsCase {
  PredictionsHeader header;
  std::vector<PredictionRows> graphs;

  explicit PredictionsCase(const std::string& collection = "layout:xla:random") {
    header.collection = collection;
    header.runs = {{.name = "xla",
                    .step = 100,
                    .parameter_hash = 1,
                    .settings_hash = 2,
                    .variant_hash = 3,
                    .init_hash = 9,
                    .fold_hash = 4,
                    .init_seed = 5,
                    .order_seed = 6,
                    .folds = 2}};
    header.members = {
        {.run = 0, .number = 0, .fold = 0, .first_loss = 3, .last_loss = 1, .loss_margin = 0.5},
        {.run = 0, .number = 1, .fold = 1},
        {.run = 0, .number = 2, .fold = 0, .failed = true}};
    header.graphs = {graph("bert", "train", 0), graph("resnet", "train", 1),
                     graph("unet", "valid", -1)};
    const std::vector<double> none(3, kNoScore);
    graphs = {{.configs = {0, 2, 3},
               .runtime = {10, 30, 20},
               .normalizer = {},
               .scores = {{1, 3, 2}, none, none}},
              {.configs = {1, 2, 3},
               .runtime = {10, 20, 30},
               .normalizer = {},
               .scores = {none, {5, 4, 6}, none}},
              {.configs = {0, 1, 2},
               .runtime = {30, 20, 10},
               .normalizer = {},
               .scores = {{3, 2, 1}, {1, 2, 3}, none}}};
    if (collection.starts_with("tile:")) {
      for (PredictionRows& predictions : graphs) predictions.normalizer = {10, 10, 5};
    }
  }

  static PredictionEntry graph(const std::string& name, const std::string& split, int fold) {
    PredictionEntry graph;
    graph.name = name;
    graph.split = split;
    graph.nodes = 7;
    graph.configs = 4;
    graph.rows = 3;
    graph.fold = fold;
    graph.held_out = {fold != 1, fold != 0, fold != 1};
    return graph;
  }

  void write(const std::filesystem::path& path) const {
    PredictionsWriter writer(path, header);
    // Graphs may come in any order.
    for (std::size_t g = graphs.size(); g-- > 0;) writer.add(static_cast<int>(g), graphs[g]);
    writer.finish();
  }
};

}  // namespace tpudist::test
