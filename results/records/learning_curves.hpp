#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tpudist {

// When, where and with which command a process began or resumed training the run.
struct RunStart {
  std::int64_t step = 0;  // after which it began
  std::string time;       // "2026-11-23 04:12:00 UTC"
  std::string command;    // of rank 0, without mpirun
  std::string version, commit;
  std::string host, processor;
  std::int64_t ranks = 0, threads = 0;  // threads of each rank
  // The version of LibTorch, cpu_kernels() of its precision, and the name of the GPU or "CPU".
  std::string libtorch, kernels, device;
};
void to_json(nlohmann::json& json, const RunStart& start);

// The facts of a start that may change bits, by name: program, LibTorch, processor, kernels,
// device. The numbers of ranks and threads change no bits.
std::vector<std::pair<std::string, std::string>> program_facts(const RunStart& start);
// "LibTorch: 2.1.0 -> 2.11.0" for each fact that is known of both starts and differs. The name of
// the processor does not count: `kernels` says what matters.
std::vector<std::string> program_changes(const RunStart& before, const RunStart& now);

// The content of a run's metrics.jsonl.
struct LearningCurves {
  // One evaluation of the validation split while the run trained.
  struct Evaluation {
    std::int64_t step = 0;
    std::int64_t rows = 0;        // most scored rows of a graph; 0: all
    bool held_out_only = false;   // only members that never trained on a graph score it
    std::vector<double> members;  // [M] mean of the primary metric over graphs; NaN: no score
    double ensemble = 0;          // of the members together; NaN: no score
    double train_seconds = 0;
  };

  // One logged training step. Lists have a value for each member of the run; NaN if the member did
  // not take the step (it failed or had stopped) or the value was not finite.
  struct Step {
    std::int64_t step = 0;
    std::vector<double> loss, norm;  // [M] training loss and norm of the gradient
    double rate = 0;                 // learning rate
    double step_seconds = 0;         // of this step
    double wait_seconds = 0;         // part of step_seconds: waiting for data
    double train_seconds = 0;        // from the start of the run
  };

  std::vector<RunStart> starts;
  std::vector<Step> steps;
  std::vector<Evaluation> evaluations;
  std::int64_t damaged_lines = 0;  // unreadable lines
  bool torn_end = false;           // the last line is incomplete: being written, or cut off

  std::int64_t last_step() const;  // 0 if nothing was logged
  // The start that took this step; null if it is not known.
  const RunStart* start_of(std::int64_t step) const;
};

// Reads such a file; a missing file gives no curves. Unreadable lines are counted and skipped.
// Throws IoError when the file cannot be read.
LearningCurves read_learning_curves(const std::filesystem::path& path);

}  // namespace tpudist
