#include "launch/program/job.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/process.hpp"
#include "core/thread_pool.hpp"
#include "core/version.hpp"
#include "dist/collectives/device_memory.hpp"
#include "dist/collectives/mpi_session.hpp"
#include "dist/collectives/node_topology.hpp"
#include "launch/program/build_info.hpp"
#include "launch/program/cores.hpp"
#include "launch/program/exit_code.hpp"
#include "launch/program/output.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/network/network.hpp"

namespace tpudist {
namespace {

// How long a failed rank waits for the errors of other ranks. If all ranks fail, as with a mistake
// in the experiment file, only until the slowest rank has failed.
constexpr std::chrono::milliseconds kPatience{1000};
// After this time, a rank that left the printing to another rank ends the job itself.
constexpr std::chrono::seconds kLastResort{10};

bool is_heard(const RankError& error) {
  return error.heard;
}

// The errors to print, in rank order; at least one.
std::vector<RankError> told_errors(std::span<const RankError> errors) {
  std::vector<RankError> own;
  std::ranges::remove_copy_if(errors, std::back_inserter(own), is_heard);
  if (own.empty()) own.push_back(errors.front());
  return own;
}

// Prints the errors of all ranks that have one, and kills all ranks. Needs a running MPI.
[[noreturn]] void end_with(RankError mine) {
  ErrorExchange exchange(std::move(mine));
  const std::vector<RankError> errors = exchange.wait(kPatience);
  const RankError teller = told_errors(errors).front();
  if (teller.rank != exchange.rank()) std::this_thread::sleep_for(kLastResort);
  print_error_text(error_lines(errors, exchange.ranks()));
  MpiSession::abort(teller.exit_code);
}

// Under srun without PMIx, or with the mpirun of another MPI, every process is an MPI world of its
// own, and all processes would train the same run.
void require_one_world(const Communicator& world) {
  const int started = launched_ranks();
  if (world.size() > 1 || started <= 1) return;
  if (std::getenv("SLURM_STEP_NUM_TASKS") && !std::getenv("OMPI_COMM_WORLD_SIZE")) {
    throw ConfigError(
        fmt::format("srun started {} tasks, but MPI sees each alone; start them with srun "
                    "--mpi=pmix, or mpirun",
                    started));
  }
  throw ConfigError(fmt::format(
      "mpirun started {} ranks, but {}; start them with {}", started,
      found_mpi() ? fmt::format("MPI sees each alone: this program uses {}", mpi_library())
                  : "this program found no MPI",
      found_mpi() ? "the mpirun of that MPI"
                  : "the mpirun that `pip install 'tpudist[mpi]'` brings"));
}

void require_same_work(Communicator& world, const JobOptions& options) {
  if (world.size() == 1) return;
  std::vector<AgreedValue> values{{"the program", fmt::format("version {}, {}", version(),
                                                              to_hex(hash_file("/proc/self/exe")))},
                                  {"--device", options.device},
                                  {"--threads", fmt::format("{}", options.threads)}};
  values.insert(values.end(), options.agreed.begin(), options.agreed.end());
  require_agreement(world, values, "start every rank with the same program, files and arguments");
}

// CPUs of one kind, and GPUs of one kind where GPUs are used.
void require_same_kinds(Communicator& world, const NodeTopology& topology,
                        const JobOptions& options) {
  if (world.size() == 1) return;
  const AgreedValue kinds[] = {
      {"the CPU's kernels", cpu_kernels(options.precision)},
      {"the GPU", topology.device < 0 ? "none" : device_kind(topology.gpu)}};
  try {
    require_agreement(world, kinds,
                      "the results would depend on which rank computes what: use nodes of one "
                      "kind, or accept that with dist.mixed_cpus=warn");
  } catch (const ConfigError& error) {
    if (!options.mixed_cpus) throw;
    if (world.rank() == 0) spdlog::warn("{}", error.what());
  }
}

// Counts the work that this thread finishes, as long as this object lives.
struct CountedWork {
  explicit CountedWork(RankActivity& activity) { count_finished_work(&activity.finished()); }
  ~CountedWork() { count_finished_work(nullptr); }
};

// Call on rank 0, the first rank of its node.
void log_cores(const std::vector<std::string>& masks, int threads) {
  if (const auto text = core_warning(masks, 0, threads, cores_of_binding_mpirun(), cpu_quota());
      !text.empty())
    spdlog::warn("{}", text);
  if (const auto text = crowd_note(masks); !text.empty()) spdlog::info("{}", text);
}

// The device that place_rank looks for. Without CUDA kernels `auto` means the CPU.
std::string usable_device(Communicator& world, const std::string& device) {
  if (runs_on_gpus() || device == "cpu") return device;
  const char* const why = "this program was built without nvcc, so that no network runs on a GPU";
  if (device == "cuda")
    throw ConfigError(fmt::format("device: cuda: {}; choose cpu, or build it with nvcc", why));
  if (world.rank() == 0 && !visible_devices().devices.empty())
    spdlog::warn("device: auto takes the CPU: {}", why);
  return "cpu";
}

void run_placed(Communicator& world, Watchdog& watchdog, const JobOptions& options,
                const std::function<void(JobContext&)>& body) {
  require_one_world(world);
  if (!found_mpi()) spdlog::info("no MPI was found: this is a single process");
  require_same_work(world, options);
  watchdog.name_hosts(all_gather_text(world, host_name()));
  const NodeTopology topology = place_rank(world, usable_device(world, options.device));
  require_same_kinds(world, topology, options);
  const std::vector<std::string> cores = core_masks(world, topology);
  const int threads = options.threads > 0 ? options.threads
                                          : share_of_cores(cores, topology.local_rank, cpu_quota());
  if (world.rank() == 0) log_cores(cores, threads);
  ThreadPool pool(threads, [&] {
    use_one_thread_per_worker();
    count_finished_work(&watchdog.activity().finished());
  });
  use_one_thread_per_worker();
  const CountedWork counted(watchdog.activity());
  Display display(world.rank() == 0);
  JobContext context{world, pool, topology, display.progress(), &watchdog};
  context.commit = source_commit();
  body(context);
  context.enter("end");
}

}  // namespace

void run_job(const JobOptions& options, const std::function<void(JobContext&)>& body) {
  RankActivity activity;
  std::optional<Watchdog> watchdog;  // outlives MPI, whose start and end wait for all ranks
  watchdog.emplace(activity, Watchdog::Options{options.timeout, launched_rank(), launched_ranks(),
                                               /*end=*/{}});
  const MpiSession session(nullptr, nullptr);
  const std::unique_ptr<Communicator> world = session.world(&activity);
  set_up_logging(world->rank(), world->size());
  watchdog.emplace(activity,
                   Watchdog::Options{options.timeout, world->rank(), world->size(), /*end=*/{}});
  activity.enter("set-up");
  if (world->size() == 1) return run_placed(*world, *watchdog, options, body);
  try {
    run_placed(*world, *watchdog, options, body);
  } catch (const std::exception& error) {
    end_all_ranks(error);
  }
}

void end_all_ranks(const std::exception& error) {
  Failure failure = describe_failure(error);
  end_with({.exit_code = failure.exit_code,
            .heard = dynamic_cast<const HeardFromOtherRank*>(&error) != nullptr,
            .message = std::move(failure.message)});
}

int report_to_all_ranks(const Failure& failure) {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (launched_ranks() == 1 || finalized) return print_failure(failure);
  const MpiSession session(nullptr, nullptr);
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks == 1) return print_failure(failure);
  end_with({.exit_code = failure.exit_code, .message = failure.message});
}

std::string error_lines(std::span<const RankError> errors, int ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> lines;
  for (const RankError& error : told_errors(errors)) {
    auto line = std::ranges::find(lines, error.message, [](const auto& l) { return l.first; });
    if (line == lines.end()) line = lines.insert(line, {error.message, {}});
    line->second.push_back(error.rank);
  }
  std::string text;
  for (const auto& [message, of] : lines) {
    const bool all = std::ssize(of) == ranks;
    text += all ? fmt::format("tpudist: error: {}\n", message)
                : fmt::format("tpudist: error ({}): {}\n", rank_list(of), message);
  }
  return text;
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
      if (!files.insert(std::filesystem::weakly_canonical(output.path)).second)
        throw ConfigError(
            fmt::format("{} is given for two outputs; give each a file of its own", path.string()));
    }
  });
}

Option add_trace_option(Command command, std::filesystem::path& file) {
  return command.add_option("--trace", file,
                            "Write what each thread of each rank did when to this file, in "
                            "Chrome's trace format (ui.perfetto.dev opens it)");
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
