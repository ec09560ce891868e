// What `tpudist train` takes in each step, as JSON: the test of the Python package compares its
// slates with it. The batches, rows and data are those of the set-up that the training itself makes.
//
//     training_order EXPERIMENT STEPS [key=value ...]
#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/thread_pool.hpp"
#include "data/loading/dataset.hpp"
#include "dist/collectives/communicator.hpp"
#include "train/experiment/experiment.hpp"
#include "train/units/batch_plan.hpp"
#include "train/units/step_work.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

nlohmann::json slate_json(const Dataset& data, const SlateRows& rows, double weight) {
  const Slate slate = data.slate(rows.graph, rows.rows);
  return {{"graph", data.entry(rows.graph).name},
          {"weight", weight},
          {"rows", rows.rows},
          {"configs", slate.configs},
          {"targets", slate.targets},
          {"states", slate.states},
          {"local_states", slate.local_states}};
}

nlohmann::json training_order(const Experiment& experiment, std::int64_t steps) {
  ThreadPool pool(2);
  const auto alone = make_self_communicator();
  const TrainingSetup setup(experiment, experiment.training_data(), pool, -1, 1, *alone);
  nlohmann::json members = nlohmann::json::array();
  for (int m = 0; m < experiment.ensemble.members; ++m) {
    nlohmann::json batches = nlohmann::json::array();
    for (std::int64_t step = 0; step < steps; ++step) {
      const BatchPlan plan = setup.planner.plan(step);
      nlohmann::json slates = nlohmann::json::array();
      std::size_t index = 0;
      for (int unit = 0; unit < plan.units(); ++unit) {
        for (const SlateRows& rows : rows_of_unit(plan, setup.order, unit, drawn_by(experiment, m)))
          slates.push_back(
              slate_json(setup.data, rows, plan.weights[static_cast<std::size_t>(m)][index++]));
      }
      batches.push_back(std::move(slates));
    }
    members.push_back(std::move(batches));
  }
  return {{"selection_hash", setup.data.selection_hash()},
          {"steps_per_epoch", setup.order.steps_per_epoch()},
          {"members", members}};
}

}  // namespace
}  // namespace tpudist

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    const std::vector<std::string> overrides(argv + 3, argv + argc);
    const tpudist::Experiment experiment = tpudist::load_experiment(argv[1], overrides);
    fmt::print("{}\n", tpudist::training_order(experiment, std::stoll(argv[2])).dump());
    return 0;
  } catch (const tpudist::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
}
