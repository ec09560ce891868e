#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

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

// Each registers one subcommand: its options, help text with an example, and a callback that makes
// one library call and prints what came of it. Callbacks throw tpudist::Error.
void add_convert_command(CLI::App& app);
// `plans` does what --plan asks for: inspect_plans, or what hands the command line to a program
// that has it.
void add_inspect_command(CLI::App& app, std::function<void(const InspectPlanArguments&)> plans);
void add_verify_command(CLI::App& app);
void add_synth_command(CLI::App& app);
void add_config_command(CLI::App& app);
void add_ensemble_command(CLI::App& app);
void add_predict_command(CLI::App& app);
void add_evaluate_command(CLI::App& app);
void add_train_command(CLI::App& app);

}  // namespace tpudist
