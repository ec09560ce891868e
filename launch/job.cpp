#include "launch/job.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <set>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/output_path.hpp"
#include "dist/mpi_session.hpp"
#include "launch/cores.hpp"
#include "launch/display.hpp"
#include "launch/exit_code.hpp"
#include "models/threads.hpp"

namespace tpudist {
namespace {

// Under srun without PMIx every task is an MPI world of its own, and all would train the same run.
void require_one_world(const Communicator& world) {
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (world.size() > 1 || !tasks || std::atoi(tasks) <= 1) return;
  throw ConfigError(fmt::format(
      "srun started {} tasks, but MPI sees each alone; start them with srun --mpi=pmix, or mpirun",
      tasks));
}

}  // namespace

void run_job(const JobOptions& options, const std::function<void(JobContext&)>& body) {
  const MpiSession session(nullptr, nullptr);
  const std::unique_ptr<Communicator> world = session.world();
  set_up_logging(world->rank(), world->size());
  require_one_world(*world);
  const auto run = [&] {
    const NodePlace place = place_rank(*world, options.device);
    const int threads = options.threads > 0 ? options.threads : share_of_cores(*world, place);
    ThreadPool pool(threads, use_one_thread_per_worker);
    use_one_thread_per_worker();
    Display display(world->rank() == 0);
    JobContext context{*world, pool, place, display.progress()};
    body(context);
  };
  if (world->size() == 1) {
    run();
    return;
  }
  try {
    run();
  } catch (const std::exception& error) {
    const Failure failure = describe_failure(error);
    print_failure(failure, world->rank());
    MpiSession::abort(failure.exit_code);
  }
}

void check_outputs(const std::vector<std::filesystem::path>& paths, Communicator& world) {
  run_on_all_ranks(world, [&] {
    if (world.rank() != 0) return;
    std::set<std::filesystem::path> files;
    for (const std::filesystem::path& path : paths) {
      if (path.empty()) continue;
      check_output(path);
      const OutputPath output = resolve_output(path);
      if (output.kind != OutputPath::Kind::file) continue;
      if (!files.insert(std::filesystem::weakly_canonical(output.path)).second) {
        throw ConfigError(
            fmt::format("{} is given for two outputs; give each a file of its own", path.string()));
      }
    }
  });
}

}  // namespace tpudist
