#include "dist/doctor/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json.hpp"
#include "core/numbers.hpp"
#include "core/text_table.hpp"

namespace tpudist {

// nlohmann::json finds these by name in the namespace of the types.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankFacts, rank, host, node, local_rank, process, threads, cores,
                                   cpu_quota, machine_cores, machine_memory, memory_limit, gpus,
                                   device, nccl_libraries, mpi_threads, kernels, srun_tasks,
                                   mpirun_patience)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FolderFacts, path, writable, locks, free_bytes, problem)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DoctorWarning, kind, what, advice, broken)

namespace {

std::string bytes_text(std::int64_t bytes) {
  return format_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)));
}

// Measurements vary by a few percent, so only two digits are significant.
std::string two_digits(double value) {
  if (!(value > 0)) return "0";
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  const double rounded = std::round(value / unit) * unit;
  // Slightly more than the power of ten below, so that 10.0 does not count as 9.99...
  const int decimals = 1 - static_cast<int>(std::floor(std::log10(1.000001 * rounded)));
  return fmt::format("{:.{}f}", rounded, std::clamp(decimals, 0, 9));
}

std::string rate_text(double bytes) {
  return two_digits(bytes / 1e9) + " GB/s";
}

std::string time_text(double seconds) {
  if (seconds < 1e-3) return two_digits(1e6 * seconds) + " us";
  return seconds < 1 ? two_digits(1e3 * seconds) + " ms" : two_digits(seconds) + " s";
}

std::string gpu_text(const RankFacts& rank) {
  if (rank.device < 0) return rank.gpus.empty() ? "none" : fmt::format("- of {}", rank.gpus.size());
  return fmt::format("{} ({})", rank.device, rank.gpus[rank.device].substr(0, 8));
}

std::string ranks_table(const JobFacts& facts) {
  TextTable table({"rank", "host", "node", "local", "GPU", "threads", "cores", "of", "quota",
                   "memory", "limit", "process"});
  for (const RankFacts& rank : facts.ranks) {
    table.rows.push_back({rank.rank, rank.host, rank.node, rank.local_rank, gpu_text(rank),
                          rank.threads, number_ranges(rank.cores), rank.machine_cores,
                          rank.cpu_quota > 0 ? TableCell(rank.cpu_quota, "{:.3g}") : "none",
                          bytes_text(rank.machine_memory),
                          rank.memory_limit > 0 ? bytes_text(rank.memory_limit) : "none",
                          rank.process});
  }
  return "ranks\n" + table.to_text(2);
}

std::string versions_table(const JobFacts& facts) {
  TextTable table({"", ""});
  for (const auto& [name, version] : facts.versions) table.rows.push_back({name, version});
  table.rows.push_back({"MPI threads", facts.ranks.front().mpi_threads});
  table.rows.push_back({"kernels", facts.ranks.front().kernels});
  return "\nversions\n" + table.to_text(2);
}

std::string folder_table(const FolderFacts& folder) {
  const TextTable table{{"", ""},
                        {{"path", folder.path},
                         {"writable", folder.writable ? "yes" : "no"},
                         {"file locks", folder.locks ? "yes" : "no"},
                         {"free", bytes_text(folder.free_bytes)}}};
  return "\nrun folder\n" + table.to_text(2);
}

std::string all_reduce_table(const JobFacts& facts) {
  if (facts.all_reduce.empty()) return "";
  TextTable table({"memory", "bytes", "time", "data", "bus"});
  for (const JobFacts::AllReduceSpeed& speed : facts.all_reduce) {
    table.rows.push_back(
        {speed.memory, bytes_text(speed.bytes), time_text(speed.seconds),
         rate_text(static_cast<double>(speed.bytes) / std::max(speed.seconds, 1e-9)),
         rate_text(bus_bandwidth(speed, facts.ranks.size()))});
  }
  return "\nall-reduce of float32\n" + table.to_text(2);
}

std::string memory_table(const JobFacts& facts) {
  TextTable table({"node", "ranks", "one rank", "all ranks", "ratio"});
  for (const JobFacts::MemorySpeed& speed : facts.memory) {
    table.rows.push_back({speed.node, speed.ranks, rate_text(speed.alone),
                          rate_text(speed.together),
                          two_digits(speed.together / std::max(speed.alone, 1.0))});
  }
  return "\ncopying memory, read and written, one thread a rank\n" + table.to_text(2);
}

}  // namespace

std::string rank_facts_text(const RankFacts& facts) {
  return json_text(nlohmann::json(facts));
}

RankFacts parse_rank_facts(const std::string& text) {
  return nlohmann::json::parse(text).get<RankFacts>();
}

std::string number_ranges(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += fmt::format("{}", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

double bus_bandwidth(const JobFacts::AllReduceSpeed& speed, std::size_t ranks) {
  const auto r = static_cast<double>(ranks);
  return 2 * (r - 1) / r * static_cast<double>(speed.bytes) / std::max(speed.seconds, 1e-9);
}

std::string doctor_text(const JobFacts& facts, const std::vector<DoctorWarning>& warnings) {
  std::string text = ranks_table(facts) + versions_table(facts) + folder_table(facts.folder) +
                     all_reduce_table(facts) + memory_table(facts) + "\n";
  if (warnings.empty()) return text + "no warnings\n";
  for (const DoctorWarning& warning : warnings) {
    text += fmt::format("{}: {}\n  {}\n", warning.broken ? "broken" : "warning", warning.what,
                        warning.advice);
  }
  return text;
}

nlohmann::json doctor_json(const JobFacts& facts, const std::vector<DoctorWarning>& warnings) {
  nlohmann::json all_reduce = nlohmann::json::array(), memory = all_reduce;
  for (const JobFacts::AllReduceSpeed& speed : facts.all_reduce) {
    all_reduce.push_back({{"memory", speed.memory},
                          {"bytes", speed.bytes},
                          {"seconds", speed.seconds},
                          {"bus_bytes_per_second", bus_bandwidth(speed, facts.ranks.size())}});
  }
  for (const JobFacts::MemorySpeed& speed : facts.memory) {
    memory.push_back({{"node", speed.node},
                      {"ranks", speed.ranks},
                      {"alone_bytes_per_second", speed.alone},
                      {"together_bytes_per_second", speed.together}});
  }
  nlohmann::json versions = nlohmann::json::object();
  for (const auto& [name, version] : facts.versions) versions[name] = version;
  return {{"ranks", facts.ranks},     {"versions", versions}, {"folder", facts.folder},
          {"all_reduce", all_reduce}, {"memory", memory},     {"warnings", warnings}};
}

}  // namespace tpudist
