#include "train/units/batch_plan.hpp"

#include <algorithm>
#include <numeric>

#include "train/units/step_work.hpp"

namespace tpudist {

BatchPlanner::BatchPlanner(const Experiment& experiment, const SlateOrder& order,
                           std::vector<SlateCost> costs, std::vector<int> fold, int ranks,
                           bool joins)
    : batch_(experiment.batch),
      ensemble_(experiment.ensemble),
      order_(order),
      costs_(std::move(costs)),
      fold_(std::move(fold)),
      ranks_(ranks),
      joins_(joins),
      shares_rows_(shares_slates(experiment)) {}

bool BatchPlanner::held_out(int member, int graph) const {
  return !fold_.empty() && fold_[graph] == ensemble_.held_out_fold(member);
}

int BatchPlanner::learners(int graph) const {
  int learners = 0;
  for (int m = 0; m < ensemble_.members; ++m) learners += !held_out(m, graph);
  return learners;
}

BatchPlanner BatchPlanner::for_ranks(int ranks) const {
  BatchPlanner other = *this;
  other.ranks_ = ranks;
  return other;
}

BatchPlan BatchPlanner::plan(std::int64_t step) const {
  return plan(step, std::vector<bool>(ensemble_.members, true));
}

BatchPlan BatchPlanner::plan(std::int64_t step, const std::vector<bool>& training) const {
  BatchPlan plan;
  plan.step = step;
  for (int i = 0; i < batch_.slates; ++i) plan.slates.push_back(order_.item(step, i));
  cut_units(plan);
  for (int m = 0; m < ensemble_.members; ++m) {
    std::vector<double> weights;
    double total = 0;
    for (const SlateId& slate : plan.slates) {
      const bool learns = training[m] && !held_out(m, slate.graph);
      weights.push_back(learns ? slate.weight : 0.0);
      total += weights.back();
    }
    for (double& weight : weights) weight = total > 0 ? weight / total : 0;
    plan.weights.push_back(std::move(weights));
  }
  assign(plan);
  return plan;
}

void BatchPlanner::cut_units(BatchPlan& plan) const {
  if (batch_.unit == UnitKind::graph) {
    std::stable_sort(plan.slates.begin(), plan.slates.end(),
                     [](const SlateId& a, const SlateId& b) { return a.graph < b.graph; });
  }
  for (int i = 0; i < batch_.slates; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool full = !plan.unit_begin.empty() && i - plan.unit_begin.back() == batch_.unit_slates;
    const bool other = i > 0 && batch_.unit == UnitKind::graph &&
                       plan.slates[at].graph != plan.slates[at - 1].graph;
    if (i == 0 || full || other) plan.unit_begin.push_back(i);
  }
  plan.unit_begin.push_back(batch_.slates);
}

double BatchPlanner::unit_cost(const BatchPlan& plan, int unit) const {
  const int begin = plan.unit_begin[unit];
  const int end = plan.unit_begin[static_cast<std::size_t>(unit) + 1];
  const auto of = [&](int slate) -> const SlateCost& { return costs_[plan.slates[slate].graph]; };
  // Slates of one graph in a unit share rows.
  if (batch_.unit == UnitKind::graph) return of(begin).of(end - begin);
  double cost = 0;
  for (int slate = begin; slate < end; ++slate) cost += of(slate).first;
  return cost;
}

double BatchPlanner::work_of(std::span<const WorkItem> leaves) const {
  std::vector<double> of_member(ensemble_.members), of_unit(batch_.slates);
  double sum = 0;
  for (const WorkItem& leaf : leaves) {
    of_member[leaf.member] += leaf.cost;
    of_unit[leaf.unit] = leaf.cost;
    sum += leaf.cost;
  }
  if (!joins_) return sum;
  const double most = std::ranges::max(of_member);
  const auto idle = std::ranges::count(of_member, 0.0);
  // Units whose rows differ from member to member are each computed by one.
  const double all = shares_rows_ ? std::accumulate(of_unit.begin(), of_unit.end(), 0.0) : sum;
  return static_cast<double>(ensemble_.members - idle) * (share_a_block(most, all) ? all : most);
}

std::vector<double> BatchPlanner::rank_work(const BatchPlan& plan,
                                            std::span<const double> unit_work) const {
  std::vector<std::vector<WorkItem>> leaves(ranks_);
  for (int unit = 0; unit < plan.units(); ++unit) {
    for (int m = 0; m < ensemble_.members; ++m) {
      const int owner = plan.owners.of(m, unit);
      if (owner >= 0) leaves[owner].push_back({unit, unit_work[unit], m});
    }
  }
  std::vector<double> work;
  for (const std::vector<WorkItem>& own : leaves) work.push_back(work_of(own));
  return work;
}

// Items are (unit, member), with the member varying fastest, so members of a unit on one rank are
// mostly consecutive.
void BatchPlanner::assign(BatchPlan& plan) const {
  const int members = ensemble_.members;
  std::vector<WorkItem> items;
  std::vector<std::size_t> leaves;  // [items]
  std::vector<double> unit_work;
  for (int unit = 0; unit < plan.units(); ++unit) {
    const double cost = unit_work.emplace_back(unit_cost(plan, unit));
    const int begin = plan.unit_begin[unit];
    const int end = plan.unit_begin[static_cast<std::size_t>(unit) + 1];
    for (int m = 0; m < members; ++m) {
      const auto& weights = plan.weights[m];
      const bool any = std::any_of(weights.begin() + begin, weights.begin() + end,
                                   [](double weight) { return weight > 0; });
      if (!any) continue;
      items.push_back({unit, cost, m});
      leaves.push_back(static_cast<std::size_t>(m) * static_cast<std::size_t>(plan.units()) +
                       static_cast<std::size_t>(unit));
    }
  }
  RankCost together;
  if (joins_) together = [&](std::span<const WorkItem> own) { return work_of(own); };
  const std::vector<int> ranks = assign_by_cost(items, ranks_, together);
  plan.owners.members = members;
  plan.owners.leaves = plan.units();
  plan.owners.owner.assign(
      static_cast<std::size_t>(members) * static_cast<std::size_t>(plan.units()), -1);
  for (std::size_t i = 0; i < items.size(); ++i) plan.owners.owner[leaves[i]] = ranks[i];
  plan.rank_cost = rank_work(plan, unit_work);
}

}  // namespace tpudist
