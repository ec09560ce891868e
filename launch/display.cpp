#include "launch/display.hpp"

#include <CLI/CLI.hpp>

namespace tpudist {

Display::Display(bool shown) {
  if (!shown || verbosity() == Verbosity::quiet) {
    progress_ = std::make_unique<NoProgress>();
    return;
  }
  progress_ = std::make_unique<ProgressBar>();
  above_.emplace(*progress_);
}

void add_verbosity_options(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    if (!command->get_subcommands([](CLI::App*) { return true; }).empty()) {
      add_verbosity_options(*command);
      continue;
    }
    CLI::Option* quiet = command->add_flag_callback(
        "--quiet", [] { set_verbosity(Verbosity::quiet); }, "Show results and warnings only");
    command
        ->add_flag_callback(
            "--verbose", [] { set_verbosity(Verbosity::verbose); },
            "Log which files are opened, sizes and times")
        ->excludes(quiet);
  }
}

}  // namespace tpudist
