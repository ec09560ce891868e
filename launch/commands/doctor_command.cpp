#include <exception>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/log.hpp"
#include "core/process.hpp"
#include "core/trace.hpp"
#include "dist/collectives/device_memory.hpp"
#include "dist/collectives/mpi_session.hpp"
#include "dist/collectives/nccl_communicator.hpp"
#include "dist/collectives/node_topology.hpp"
#include "dist/doctor/doctor.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/build_info.hpp"
#include "launch/program/cores.hpp"
#include "launch/program/job.hpp"
#include "launch/program/output.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/network/network.hpp"

namespace tpudist {
namespace {

constexpr double kNcclTimeout = 60;  // seconds for one call

struct DoctorArguments {
  std::filesystem::path run_dir = "runs";
  bool json = false;
};

std::vector<std::pair<std::string, std::string>> versions() {
  auto versions = build_versions();
  for (auto& version : cuda_versions()) versions.push_back(std::move(version));
  const std::string report = nccl_version_report();
  versions.emplace_back("NCCL", report.starts_with("NCCL: ") ? report.substr(6) : report);
  versions.emplace_back("CPU vectors", cpu_vectors());
  versions.emplace_back("NVTX", has_nvtx() ? "ranges" : "no");
  return versions;
}

RankFacts own_facts(Communicator& world, const NodeTopology& topology) {
  RankFacts facts = find_surroundings();
  facts.rank = world.rank();
  facts.node = topology.node;
  facts.local_rank = topology.local_rank;
  facts.device = topology.device;
  facts.threads = share_of_cores(core_masks(world, topology), topology.local_rank, cpu_quota());
  facts.kernels = cpu_kernels(Precision::bf16);
  return facts;
}

void time_nccl(Communicator& world, const NodeTopology& topology, JobFacts& facts) {
  if (topology.device < 0 || world.size() == 1) return;
  const auto nccl = make_nccl_communicator(world, topology.device, nullptr, kNcclTimeout);
  for (JobFacts::AllReduceSpeed& speed : time_all_reduce(*nccl)) facts.all_reduce.push_back(speed);
}

// Collective.
JobFacts examine(Communicator& world, const std::filesystem::path& folder) {
  JobFacts facts;
  const NodeTopology topology = place_rank(world, runs_on_gpus() ? "auto" : "cpu");
  facts.runs_on_gpus = runs_on_gpus();
  const std::string own = rank_facts_text(own_facts(world, topology));
  for (const std::string& text : all_gather_text(world, own))
    facts.ranks.push_back(parse_rank_facts(text));
  facts.versions = versions();
  facts.nccl_agrees = nccl_version_report().find("NOT EQUAL") == std::string::npos;
  if (world.rank() == 0) facts.folder = try_folder(folder);
  facts.all_reduce = time_all_reduce(world);
  time_nccl(world, topology, facts);
  const auto node = world.split(topology.node);
  facts.memory = time_memory(world, *node, topology.node);
  return facts;
}

void run(const DoctorArguments& arguments) {
  std::int64_t broken = 0;
  {
    const MpiSession session(nullptr, nullptr);
    const auto world = session.world();
    set_up_logging(world->rank(), world->size());
    JobFacts facts;
    try {
      facts = examine(*world, arguments.run_dir);
    } catch (const std::exception& error) {  // perhaps on one rank only
      if (world->size() > 1) end_all_ranks(error);
      throw;
    }
    if (world->rank() == 0) {
      const std::vector<DoctorWarning> warnings = doctor_warnings(facts);
      arguments.json ? print_json(doctor_json(facts, warnings), 2)
                     : print_text(doctor_text(facts, warnings));
      broken = !warnings.empty() && warnings.front().broken;
    }
    world->broadcast(std::span(&broken, 1), 0);
  }
  if (broken) throw EndWith(1);
}

}  // namespace

void add_doctor_command(Command app) {
  auto arguments = std::make_shared<DoctorArguments>();
  const Command command = app.add_command(
      "doctor", "Show what hosts, GPUs, MPI and the file system give to a job, and what to mend");
  command.footer(
      "Start it as the job is to be started. It takes some seconds. Exit code 1 when nothing could "
      "be trained that way,\n"
      "0 also with warnings.\n\n"
      "Example:\n  mpirun -np 8 tpudist doctor --run-dir runs");
  command.add_option("--run-dir", arguments->run_dir, "Folder in which runs are to lie")
      .show_default();
  command.add_flag("--json", arguments->json, "Print JSON");
  command.run([arguments] { run(*arguments); });
}

}  // namespace tpudist
