#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tpudist {

// What `inspect --plan` asks for.
struct InspectPlanArguments {
  std::filesystem::path config, shards;  // shards: empty for those of the experiment
  std::vector<std::string> overrides;
  int configs = 0;  // 0: as the experiment says
  int threads = 0;  // 0: one for each core
  bool json = false;
};

// Prints what refinement saves on each graph of an experiment's training data. Plans need LibTorch.
void inspect_plans(const InspectPlanArguments& arguments);

}  // namespace tpudist
