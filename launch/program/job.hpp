#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dist/collectives/error_exchange.hpp"
#include "dist/health/agreement.hpp"
#include "dist/health/job_context.hpp"
#include "dist/health/job_trace.hpp"
#include "launch/program/command_line.hpp"
#include "launch/program/exit_code.hpp"

namespace tpudist {

// What a job needs to know before it starts.
struct JobOptions {
  std::string device = "auto";  // auto, cpu or cuda
  int threads = 0;              // of this rank; 0 = the node's cores / ranks on the node
  // False: refuse ranks whose CPUs compute different bits; true: only warn.
  bool mixed_cpus = false;
  // Seconds without progress after which the job is ended; 0: never.
  double timeout = 600;
  // The command and its other inputs, by the names that the user gave. Ranks that differ in any of
  // them are refused before they do anything together.
  std::vector<AgreedValue> agreed = {};
};

// Starts MPI, checks that all ranks are about to do the same, finds this rank's place, creates its
// threads, and runs `body`. An error on one of several ranks, in `body` or before, ends all of them
// with its exit code. The errors of all ranks are printed once each, with their ranks, and no rank
// waits for one that failed. On a single rank the error is passed on.
void run_job(const JobOptions& options, const std::function<void(JobContext&)>& body);

// Ends all ranks with this error of one of several ranks, as `run_job` does. Needs a running MPI.
[[noreturn]] void end_all_ranks(const std::exception& error);

// Reports a failure outside of `run_job`, and returns its exit code. On one of several ranks it
// starts MPI first, so that equal failures of all ranks are printed once and ranks that wait for
// this one are ended; then it does not return.
int report_to_all_ranks(const Failure& failure);

// The text for the errors of some of `ranks` ranks: one line for each different error, with its
// ranks unless all have it. An error that a rank only received from another is left out if that
// rank reported it itself. `errors`: at least one, in rank order.
std::string error_lines(std::span<const RankError> errors, int ranks);

// Throws IoError on all ranks unless rank 0 can write to each of these files, and ConfigError when
// two of them are the same; empty names are ignored. Call it before work whose results go there.
void check_outputs(const std::vector<std::filesystem::path>& paths, Communicator& world);

// Adds --trace to a command.
Option add_trace_option(Command command, std::filesystem::path& file);

// Traces a context until this object is destroyed, if a file is given; otherwise it does nothing.
class TracedJob {
 public:
  // Collective. Both are borrowed. Throws IoError on all ranks when the file cannot be written.
  TracedJob(JobContext& context, const std::filesystem::path& file);
  ~TracedJob() { context_.trace = nullptr; }
  TracedJob(const TracedJob&) = delete;
  TracedJob& operator=(const TracedJob&) = delete;

  // Writes the file. Collective; call it after all traced work. Throws IoError on all ranks.
  void write() const;

 private:
  JobContext& context_;
  const std::filesystem::path& file_;
  std::optional<JobTrace> trace_;
};

}  // namespace tpudist
