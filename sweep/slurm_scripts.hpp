#pragma once

#include <string_view>

namespace tpudist {

// The files slurm/sweep.sbatch and slurm/ensemble.sbatch, as the program was built with.
extern const std::string_view kSweepScript, kEnsembleScript;

}  // namespace tpudist
