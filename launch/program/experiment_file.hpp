#pragma once

#include <filesystem>

namespace tpudist {

// The experiment or sweep file that a user means by `wanted`. It is the path of a file, or a name
// such as "nlp" or "experiments/nlp.yaml", which is searched in the working folder, in
// experiments/, and among the installed experiments. Throws ConfigError, with the nearest names,
// when there is none, and for the folder of a run or a sweep.
std::filesystem::path find_experiment(const std::filesystem::path& wanted);

}  // namespace tpudist
