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
#include "models/kernels/precision.hpp"

namespace tpudist {

// The options of a job.
struct JobOptions {
  std::string device = "auto";  // auto, cpu or cuda
  int threads = 0;              // of this rank; 0 = the node's cores / ranks on the node
  // False: refuse ranks whose CPUs compute different bits; true: only warn.
  bool mixed_cpus = false;
  // Of the networks that run; in bf16 CPUs of different kinds compute different bits.
  Precision precision = Precision::fp32;
  // Seconds without progress after which the watchdog ends the job; 0: never.
  double timeout = 600;
  // The command and its other inputs, by the names that the user gave. Ranks with different values
  // are refused before they do anything together.
  std::vector<AgreedValue> agreed = {};
};

// Starts MPI, checks that all ranks are about to do the same, finds this rank's place, creates its
// threads, and runs `body`. An error on one of several ranks, in `body` or before, ends all ranks
// with its exit code. Different errors are printed once each, with their ranks, and no rank waits
// for a failed rank. A single rank throws the error.
void run_job(const JobOptions& options, const std::function<void(JobContext&)>& body);

// Ends all ranks with this error of one of several ranks, like `run_job`. Needs a running MPI.
[[noreturn]] void end_all_ranks(const std::exception& error);

// Reports a failure outside of `run_job`, and returns its exit code. On one of several ranks,
// starts MPI first, so that equal failures of all ranks are printed once, and ends the ranks that
// wait for this one; does not return then.
int report_to_all_ranks(const Failure& failure);

// The text for the errors of some of `ranks` ranks: one line for each different error, with its
// ranks unless all have it. Leaves out an error that a rank received from another rank, if that
// rank reported the error. `errors`: at least one, in rank order.
std::string error_lines(std::span<const RankError> errors, int ranks);

// Throws IoError on all ranks unless rank 0 can write to each of these files, and ConfigError when
// two files are the same. Ignores empty names. Call before the work whose results go to the files.
void check_outputs(const std::vector<std::filesystem::path>& paths, Communicator& world);

// Adds --trace to a command.
Option add_trace_option(Command command, std::filesystem::path& file);

// Traces a context until this object is destroyed, if a file is given; else does nothing.
class TracedJob {
 public:
  // Collective. Both are borrowed. Throws IoError on all ranks when the file cannot be written.
  TracedJob(JobContext& context, const std::filesystem::path& file);
  ~TracedJob() { context_.trace = nullptr; }
  TracedJob(const TracedJob&) = delete;
  TracedJob& operator=(const TracedJob&) = delete;

  // Writes the file. Collective; call after all traced work. Throws IoError on all ranks.
  void write() const;

 private:
  JobContext& context_;
  const std::filesystem::path& file_;
  std::optional<JobTrace> trace_;
};

}  // namespace tpudist
