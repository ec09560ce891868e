#pragma once

#include <functional>

#include "launch/inspect_plans.hpp"

namespace CLI {
class App;
}

namespace tpudist {

// The table of all subcommands. Each function stands in the file of its command and registers it:
// its options, help text with an example, and a callback that makes one library call and prints
// what came of it. Callbacks throw tpudist::Error. They share this header because nobody wants one
// of them alone: the two programs add them side by side.
void add_convert_command(CLI::App& app);
// `plans` does what --plan asks for: inspect_plans, or what hands the command line to a program
// that has it.
void add_inspect_command(CLI::App& app, std::function<void(const InspectPlanArguments&)> plans);
void add_verify_command(CLI::App& app);
void add_synth_command(CLI::App& app);
void add_config_command(CLI::App& app);
void add_doctor_command(CLI::App& app);
void add_compare_command(CLI::App& app);
void add_ensemble_command(CLI::App& app);
void add_predict_command(CLI::App& app);
void add_rank_command(CLI::App& app);
void add_evaluate_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_sweep_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_weights_command(CLI::App& app);

}  // namespace tpudist
