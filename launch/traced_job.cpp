#include "launch/traced_job.hpp"

#include "core/log.hpp"
#include "launch/job.hpp"

namespace tpudist {

Option add_trace_option(Command command, std::filesystem::path& file) {
  return command.add_option(
      "--trace", file,
      "Write what each thread of each rank did when to this file, in Chrome's "
      "trace format (ui.perfetto.dev opens it)");
}

TracedJob::TracedJob(JobContext& context, const std::filesystem::path& file)
    : context_(context), file_(file) {
  check_outputs({file}, context.world);
  if (!file.empty()) context.trace = &trace_.emplace(context.world).trace();
}

void TracedJob::write() const {
  if (!trace_) return;
  trace_->write(context_.world, file_);
  if (context_.world.rank() == 0) spdlog::info("wrote {}", file_.string());
}

}  // namespace tpudist
