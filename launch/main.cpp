#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "core/error.hpp"
#include "launch/build_info.hpp"
#include "launch/commands.hpp"
#include "launch/job.hpp"

namespace {

void add_commands(CLI::App& app) {
  tpudist::add_convert_command(app);
  tpudist::add_inspect_command(app, tpudist::inspect_plans);
  tpudist::add_verify_command(app);
  tpudist::add_synth_command(app);
  tpudist::add_train_command(app);
  tpudist::add_evaluate_command(app);
  tpudist::add_predict_command(app);
  tpudist::add_ensemble_command(app);
  tpudist::add_config_command(app);
}

int fail(const char* message, int exit_code) {
  if (tpudist::launched_rank() == 0) fmt::print(stderr, "tpudist: error: {}\n", message);
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Trains ensembles of graph neural networks that rank compiler configurations by run time.",
      "tpudist");
  app.set_version_flag("--version", [] { return tpudist::build_info(); });
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 bad input data, 85 stopped "
      "with a\n"
      "checkpoint. `tpudist COMMAND --help` shows an example of each command.");
  try {
    add_commands(app);
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& ended) {  // a command that says its exit code
    return ended.get_exit_code();
  } catch (const CLI::ParseError& error) {  // also --help and --version, with code 0
    if (tpudist::launched_rank() != 0) return error.get_exit_code() == 0 ? 0 : 2;
    return app.exit(error) == 0 ? 0 : static_cast<int>(tpudist::ErrorKind::usage);
  } catch (const tpudist::Error& error) {
    return fail(error.what(), error.exit_code());
  } catch (const std::exception& error) {
    return fail(error.what(), static_cast<int>(tpudist::ErrorKind::failed));
  }
  return 0;
}
