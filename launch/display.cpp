#include "launch/display.hpp"

namespace tpudist {

Display::Display(bool shown) {
  if (!shown || verbosity() == Verbosity::quiet) {
    progress_ = std::make_unique<NoProgress>();
    return;
  }
  progress_ = std::make_unique<ProgressBar>();
  above_.emplace(*progress_);
}

void add_verbosity_options(Command program) {
  for (const Command command : program.commands()) {
    if (!command.commands().empty()) {
      add_verbosity_options(command);
      continue;
    }
    const Option quiet = command.add_flag(
        "--quiet", [] { set_verbosity(Verbosity::quiet); }, "Show results and warnings only");
    command
        .add_flag(
            "--verbose", [] { set_verbosity(Verbosity::verbose); },
            "Log which files are opened, sizes and times")
        .excludes(quiet);
  }
}

}  // namespace tpudist
