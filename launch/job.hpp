#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "train/experiment/context.hpp"

namespace tpudist {

// What a job asks of its process.
struct JobOptions {
  std::string device = "auto";  // auto, cpu or cuda
  int threads = 0;              // of this rank; 0 = the node's cores / ranks on the node
};

// Starts MPI, finds this rank's place, makes its threads, and runs `body`. An error that leaves
// `body` on one of several ranks ends all of them: the rank prints it and aborts the job with the
// error's exit code, so that no rank waits for one that failed.
void run_job(const JobOptions& options, const std::function<void(JobContext&)>& body);

// Throws IoError on all ranks unless rank 0 can write to each of these files, and ConfigError when two
// of them are one; empty names are left out. To be called before work whose results go there.
void check_outputs(const std::vector<std::filesystem::path>& paths, Communicator& world);

}  // namespace tpudist
