#pragma once

#include <functional>

#include "launch/command_line.hpp"
#include "launch/inspect_plans.hpp"

namespace tpudist {

// The table of all subcommands. Each function stands in the file of its command and registers it:
// its options, help text with an example, and a callback that makes one library call and prints
// what came of it. Callbacks throw tpudist::Error. They share this header because nobody wants one
// of them alone: the two programs add them side by side.
void add_convert_command(Command app);
// `plans` does what --plan asks for: inspect_plans, or what hands the command line to a program
// that has it.
void add_inspect_command(Command app, std::function<void(const InspectPlanArguments&)> plans);
void add_verify_command(Command app);
void add_synth_command(Command app);
void add_config_command(Command app);
void add_doctor_command(Command app);
void add_compare_command(Command app);
void add_ensemble_command(Command app);
// `completion` and `man`, which tell of all commands of the program, those added later included.
void add_manual_commands(Command app);
void add_predict_command(Command app);
void add_rank_command(Command app);
void add_evaluate_command(Command app);
void add_report_command(Command app);
void add_sweep_command(Command app);
void add_train_command(Command app);
void add_weights_command(Command app);

}  // namespace tpudist
