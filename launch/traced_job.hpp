#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "dist/job_trace.hpp"
#include "launch/command_line.hpp"
#include "train/experiment/context.hpp"

namespace tpudist {

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
