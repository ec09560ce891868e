#pragma once

#include <string_view>

namespace tpudist {

// The files slurm/sweep.sbatch and slurm/ensemble.sbatch, embedded when the program was built.
extern const std::string_view kSweepScript, kEnsembleScript;

}  // namespace tpudist
