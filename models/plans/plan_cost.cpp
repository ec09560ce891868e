#include "models/plans/plan_cost.hpp"

namespace tpudist {
namespace {

// How many rows, neighbourhoods and entries of neighbourhoods one step works on.
struct StepSizes {
  std::int64_t before = 0, neighbourhoods = 0, behind = 0, entries = 0;
};

double forward_work(const LayerWork& work, const StepSizes& sizes) {
  return work.before * static_cast<double>(sizes.before) +
         work.neighbourhood * static_cast<double>(sizes.neighbourhoods) +
         work.behind * static_cast<double>(sizes.behind);
}

// Sums of weight gradients of one layer while they are computed in chunks of rows (products.cu): at
// most 16 MB, about this many numbers per row.
constexpr double kMostInChunks = 1 << 22, kInChunks = 128;

// Adds what a layer keeps: numbers of the rows behind it, and others. While its gradients are
// computed, a layer holds about as many numbers again.
void keep(double rows, const LayerWork& work, double others, PlanCost& cost) {
  cost.kept += rows * (static_cast<double>(work.floats) + work.kept.behind) + others;
  cost.most_held = std::max(cost.most_held, cost.kept + rows * work.widest + others +
                                                std::min(kMostInChunks, kInChunks * rows));
}

PlanCost first_rows_cost(std::int64_t rows, std::int64_t input_rows, std::int64_t states,
                         const NetworkWork& network) {
  PlanCost cost;
  cost.forward = network.input_row * static_cast<double>(input_rows) +
                 network.state * static_cast<double>(states) +
                 forward_work(network.steps[0], {0, 0, rows});
  cost.backward = cost.needed_backward = 2 * cost.forward;
  cost.states = static_cast<double>(rows * network.steps[0].floats);
  keep(static_cast<double>(rows), network.steps[0],
       network.kept_of_input * static_cast<double>(input_rows) +
           network.kept_of_state * static_cast<double>(states),
       cost);
  return cost;
}

void add_step(const LayerWork& work, const StepSizes& all, const StepSizes& needed,
              const NetworkWork& network, PlanCost& cost) {
  const double forward = forward_work(work, all);
  cost.forward += forward;
  cost.backward += 2 * forward;
  cost.needed_backward += 2 * (network.skips_unneeded ? forward_work(work, needed) : forward);
  cost.states += static_cast<double>(all.behind * work.floats);
  cost.entries += static_cast<double>(all.entries * work.entry);
  keep(static_cast<double>(all.behind), work,
       work.kept.before * static_cast<double>(all.before) +
           work.kept.neighbourhood * static_cast<double>(all.neighbourhoods) +
           work.kept.entry * static_cast<double>(all.entries),
       cost);
}

}  // namespace

PlanCost plan_cost(const Plan& plan, const NetworkWork& network, std::size_t first) {
  PlanCost cost = first_rows_cost(plan.rows(first), plan.nodes, plan.states, network);
  for (std::size_t i = 0; i + 1 < network.steps.size(); ++i) {
    const PlanLayer& layer = *plan.layers[first + i];
    const NeededCounts& counts = plan.needed_counts[first + i];
    // An upper bound: a fused layer multiplies only the rows that are own ones.
    StepSizes all{layer.rows_in, 0, layer.rows_out}, needed{counts.self_rows, 0, counts.rows};
    for (std::size_t set = 0; set < layer.edges.size(); ++set) {
      const SparseMatrix& matrix = layer.edges[set].aggregate;
      all.neighbourhoods += matrix.forward.rows() * matrix.replicas;
      all.entries += matrix.forward.entries() * matrix.replicas;
      needed.neighbourhoods += counts.neighbourhoods[set];
    }
    add_step(network.steps[i + 1], all, needed, network, cost);
  }
  return cost;
}

PlanCost dense_plan_cost(std::int64_t rows, std::span<const std::int64_t> needed_rows,
                         std::span<const std::int64_t> entries, std::int64_t input_rows,
                         std::int64_t states, const NetworkWork& network) {
  PlanCost cost = first_rows_cost(rows, input_rows, states, network);
  for (std::size_t i = 0; i < needed_rows.size(); ++i) {
    const LayerWork& work = network.steps[i + 1];
    const std::int64_t needed = needed_rows[i];
    add_step(work, {rows, work.edge_sets * rows, rows, entries[i]},
             {needed, work.edge_sets * needed, needed}, network, cost);
  }
  return cost;
}

}  // namespace tpudist
