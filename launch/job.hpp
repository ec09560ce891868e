#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "dist/agreement.hpp"
#include "dist/error_exchange.hpp"
#include "launch/exit_code.hpp"
#include "train/experiment/context.hpp"

namespace tpudist {

// What a job asks of its process.
struct JobOptions {
  std::string device = "auto";  // auto, cpu or cuda
  int threads = 0;              // of this rank; 0 = the node's cores / ranks on the node
  // Ranks whose CPUs compute different bits are refused; true: they only get a warning.
  bool mixed_cpus = false;
  // Seconds after which a job in which nothing is finished is ended; 0: never.
  double timeout = 600;
  // The command and everything else that it acts on, by the names that the user gave it. Ranks that
  // differ in any of them are refused before they do anything together.
  std::vector<AgreedValue> agreed = {};
};

// Starts MPI, compares what the ranks are about to do, finds this rank's place, makes its threads,
// and runs `body`. An error on one of several ranks, in `body` or before, ends all of them with its
// exit code: the errors of all ranks are printed once each, with their ranks, and no rank waits for
// one that failed. On a single rank the error is passed on.
void run_job(const JobOptions& options, const std::function<void(JobContext&)>& body);

// Tells of a failure outside of `run_job`, and returns its exit code. Where this process is one of
// several ranks it starts MPI first, so that equal failures of all ranks are printed once and ranks
// that wait for this one are ended; then it does not return.
int report_to_all_ranks(const Failure& failure);

// What is printed of the errors of some of `ranks` ranks: a line for each different one, with the
// ranks that have it unless all have. Errors that ranks only heard of are left out where the rank
// that had them has told of them itself. `errors`: at least one, in rank order.
std::string error_lines(std::span<const RankError> errors, int ranks);

// Throws IoError on all ranks unless rank 0 can write to each of these files, and ConfigError when two
// of them are one; empty names are left out. To be called before work whose results go there.
void check_outputs(const std::vector<std::filesystem::path>& paths, Communicator& world);

}  // namespace tpudist
