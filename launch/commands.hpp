#pragma once

#include <functional>

#include "launch/command_line.hpp"
#include "launch/inspect_plans.hpp"

namespace tpudist {

// All subcommands. Each function is in its command's file and registers the command: options, help
// text with an example, and a callback that makes one library call and prints the result. Callbacks
// throw tpudist::Error. One header declares all, because the two programs add them side by side.

// convert, inspect, verify, synth: without LibTorch. `plans` handles `inspect --plan`. It is
// inspect_plans, or a function that starts a program that contains it.
void add_data_commands(Command app, std::function<void(const InspectPlanArguments&)> plans);
// compare, diff, report: without LibTorch.
void add_result_commands(Command app);

void add_convert_command(Command app);
void add_inspect_command(Command app, std::function<void(const InspectPlanArguments&)> plans);
void add_verify_command(Command app);
void add_synth_command(Command app);
void add_compare_command(Command app);
void add_diff_command(Command app);
void add_report_command(Command app);

void add_train_command(Command app);
void add_evaluate_command(Command app);
void add_predict_command(Command app);
void add_ensemble_command(Command app);
void add_sweep_command(Command app);
void add_rank_command(Command app);
void add_weights_command(Command app);
void add_config_command(Command app);
void add_doctor_command(Command app);
// `completion` and `man`. They cover all commands of the program, including those added later.
void add_manual_commands(Command app);

}  // namespace tpudist
