#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/results/scores/predictions_case.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist::test {

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// The config.yaml of a run, as far as scores/ reads it.
inline std::string config_text(int seed, int first_member, int members,
                               const std::string& name = "xla") {
  return "name: " + name + "\nseed:\n  init: " + std::to_string(seed) +
         "\n  order: " + std::to_string(seed) +
         "\ndata:\n  collection: layout:xla:random\ntrain:\n  steps: 100\nensemble:\n  members: " +
         std::to_string(members) + "\n  first_member: " + std::to_string(first_member) +
         "\n  folds: \"2\"\n";
}

inline constexpr const char* kMetrics =
    R"({"kind":"step","step":50,"first_member":0,"loss":[3.0,2.0,null],"norm":[1.0,1.5,null],"rate":0.01,"step_seconds":0.5,"wait_seconds":0.125,"train_seconds":25.0}
{"kind":"evaluation","split":"valid","step":50,"rows":8,"held_out_only":false,"first_member":0,"members":[0.5,0.25,null],"ensemble":0.75,"train_seconds":25.0}
{"kind":"step","step":100,"first_member":0,"loss":[2.0,1.0,null],"norm":[1.0,1.5,null],"rate":0.001,"step_seconds":0.25,"wait_seconds":0.0,"train_seconds":50.0}
)";

// A folder of a run with the predictions of `predictions`.
inline std::filesystem::path write_run(const std::filesystem::path& folder,
                                       const PredictionsCase& predictions, int seed = 5) {
  write_text(folder / "config.yaml", config_text(seed, 0, 3));
  write_text(folder / "metrics.jsonl", kMetrics);
  predictions.write(folder / "predictions.h5");
  return folder;
}

}  // namespace tpudist::test
