#include "launch/checkpoint_option.hpp"

#include <CLI/CLI.hpp>

namespace tpudist {

void add_checkpoint_option(CLI::App& command, std::string& checkpoint) {
  command
      .add_option("--checkpoint", checkpoint,
                  "last, best (by the validation score of the ensemble) or a step")
      ->capture_default_str();
}

}  // namespace tpudist
