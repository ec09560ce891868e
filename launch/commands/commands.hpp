#pragma once

#include <functional>
#include <string_view>

#include "launch/program/command_line.hpp"

namespace tpudist {

// All subcommands. Each function is in its command's file and registers the command: options, help
// text with an example, and a callback that makes one library call and prints the result. Callbacks
// throw tpudist::Error. One header declares all functions, because the two programs share them.

// Without LibTorch:
void add_convert_command(Command app);
void add_inspect_command(Command app);
void add_verify_command(Command app);
void add_synth_command(Command app);
void add_compare_command(Command app);
void add_diff_command(Command app);
void add_report_command(Command app);
void add_launch_command(Command app);
void add_measure_command(Command app);
void add_tune_command(Command app);
// `program` returns the help of all commands: from text_with_words, or from the table that the
// build has made.
void add_completion_command(Command app, std::function<CommandText()> program);
CommandText command_text(std::string_view table);
// The commands on data, and the commands on results, in the order of both programs' lists.
inline void add_data_commands(Command app) {
  add_convert_command(app);
  add_inspect_command(app);
  add_verify_command(app);
  add_synth_command(app);
}
inline void add_result_commands(Command app) {
  add_compare_command(app);
  add_diff_command(app);
  add_report_command(app);
  add_measure_command(app);
  add_tune_command(app);
}

void add_train_command(Command app);
void add_evaluate_command(Command app);
void add_predict_command(Command app);
void add_ensemble_command(Command app);
void add_sweep_command(Command app);
void add_rank_command(Command app);
void add_search_command(Command app);
void add_weights_command(Command app);
void add_config_command(Command app);
void add_doctor_command(Command app);
// Covers all commands of the program, including those added later.
CommandText text_with_words(Command app);

}  // namespace tpudist
