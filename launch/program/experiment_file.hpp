#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tpudist {

// The experiment or sweep file that a user means by `wanted`: the path of a file, or a name such as
// "nlp" or "experiments/nlp.yaml". Names are searched in the working folder, in experiments/, and
// among the installed experiments. Throws ConfigError, with the nearest names, when there is no
// such file, and for the folder of a run or a sweep.
std::filesystem::path find_experiment(const std::filesystem::path& wanted);

// The same, or the folder of a sweep. The message of an error names sweeps before experiments.
std::filesystem::path find_sweep(const std::filesystem::path& wanted);

// The names of the files that find_experiment and find_sweep find.
std::vector<std::string> experiment_names();

// The same of sweep files; all files of the working folder count as such.
std::vector<std::string> sweep_file_names();

// The folders of sweeps in sweeps/.
std::vector<std::string> sweep_folders();

// The files of a folder whose names end in .yaml, in the order of their names.
std::vector<std::string> yaml_files(const std::filesystem::path& folder);

// A folder such as "experiments/systems", here or among the installed files. Throws ConfigError.
std::filesystem::path find_experiment_folder(const std::filesystem::path& wanted);

}  // namespace tpudist
