#include "train/weights/exported_weights.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/log.hpp"
#include "models/kernels/cpu_process.hpp"
#include "results/checkpoints/weights_file.hpp"

namespace tpudist {
namespace {

std::filesystem::path numbered(const std::filesystem::path& file, int number) {
  return file.parent_path() /
         fmt::format("{}-member-{}{}", file.stem().string(), number, file.extension().string());
}

}  // namespace

std::vector<ExportedMember> exported_members(const TrainedRun& run,
                                             const std::filesystem::path& file,
                                             std::optional<int> number) {
  const EnsembleConfig& ensemble = run.experiment.ensemble;
  const int first = ensemble.first_member, last = ensemble.number_of(ensemble.members - 1);
  if (number && (*number < first || *number > last)) {
    throw ConfigError(fmt::format("{}: has no member {}; it has the members {} to {}",
                                  run.path.string(), *number, first, last));
  }
  if (number && !run.use[*number - first]) {
    throw ConfigError(fmt::format(
        "{}: member {} failed in training (its loss was not finite) and has no weights to export",
        run.path.string(), *number));
  }
  std::vector<ExportedMember> members;
  for (int m = 0; m < ensemble.members; ++m) {
    const int own = ensemble.number_of(m);
    if (number && own != *number) continue;
    if (!run.use[m]) {
      spdlog::warn("member {} failed in training and is not exported", own);
      continue;
    }
    const bool alone = number || ensemble.members == 1;
    members.push_back({own, alone ? file : numbered(file, own)});
  }
  return members;
}

void export_weights(const TrainedRun& run, const std::vector<ExportedMember>& members) {
  ThreadPool pool(1, use_one_thread_per_worker);
  const Network network = make_network(run.experiment, -1, pool);
  const ParameterTable& table = network.parameters();
  const auto length = static_cast<std::size_t>(table.length());
  for (const ExportedMember& member : members) {
    const auto place =
        static_cast<std::size_t>(member.number - run.experiment.ensemble.first_member) * length;
    const std::span<const float> flat = std::span<const float>(run.flat).subspan(place, length);
    write_weights(member.path, table, flat,
                  {{"format", "pt"},
                   {"collection", run.experiment.data.collection.name},
                   {"experiment", run.experiment.name},
                   {"member", std::to_string(member.number)},
                   {"step", std::to_string(run.step)},
                   {"weights", run.averaged ? "averaged" : "raw"}});
  }
}

}  // namespace tpudist
