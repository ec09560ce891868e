#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tpudist {

// Adds --checkpoint, the checkpoint of a run to score (find_checkpoint); `checkpoint` holds the
// default and must outlive the command.
void add_checkpoint_option(CLI::App& command, std::string& checkpoint);

}  // namespace tpudist
