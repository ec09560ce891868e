#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tpudist {

// Arguments of `inspect --plan`.
struct InspectPlanArguments {
  std::filesystem::path config, shards;  // shards: empty for those of the experiment
  std::vector<std::string> overrides;
  int configs = 0;  // 0: as in the experiment
  int threads = 0;  // 0: one per core
  bool json = false;
};

// Prints what refinement saves on each graph of an experiment's training data. Plans need LibTorch.
void inspect_plans(const InspectPlanArguments& arguments);

}  // namespace tpudist
