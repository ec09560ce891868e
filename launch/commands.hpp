#pragma once

namespace CLI {
class App;
}

namespace tpudist {

// Each registers one subcommand: its options, help text with an example, and a callback that makes
// one library call and prints what came of it. Callbacks throw tpudist::Error.
void add_convert_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_verify_command(CLI::App& app);
void add_synth_command(CLI::App& app);
void add_config_command(CLI::App& app);
void add_ensemble_command(CLI::App& app);
void add_predict_command(CLI::App& app);
void add_evaluate_command(CLI::App& app);
void add_train_command(CLI::App& app);

}  // namespace tpudist
