#include "train/units/step_work.hpp"
#include "core/duration.hpp"

#include <algorithm>
#include <chrono>

namespace tpudist {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

std::int64_t nanoseconds(TimePoint time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

bool shares_slates(const Experiment& experiment) {
  return experiment.batch.order == RowOrder::shared && !experiment.ensemble.vary_order;
}

int drawn_by(const Experiment& experiment, int member) {
  return shares_slates(experiment) ? -1 : experiment.ensemble.number_of(member);
}

StepBuilder::StepBuilder(const Experiment& experiment, const BatchPlanner& planner,
                         const SlateOrder& order, const UnitBuilder& units, int rank)
    : experiment_(experiment), planner_(planner), order_(order), units_(units), rank_(rank) {}

StepWork StepBuilder::build(std::int64_t step) const {
  return build(step,
               std::vector<bool>(static_cast<std::size_t>(experiment_.ensemble.members), true));
}

StepWork StepBuilder::build(std::int64_t step, const std::vector<bool>& training,
                            const std::function<void()>& on_unit, Trace* trace) const {
  const TraceSpan span(trace, "prepare step", step);
  StepWork work;
  work.batch = planner_.plan(step, training);
  for (int unit = 0; unit < work.batch.units(); ++unit) {
    add_passes(work, unit, trace);
    if (on_unit) on_unit();
  }
  // A member's gradients are then summed while they are in the caches.
  std::ranges::stable_sort(work.passes, {}, &UnitPass::first_member);
  return work;
}

std::span<const SlateId> slates_of_unit(const BatchPlan& batch, int unit) {
  const auto at = static_cast<std::size_t>(unit);
  const auto begin = static_cast<std::size_t>(batch.unit_begin[at]),
             end = static_cast<std::size_t>(batch.unit_begin[at + 1]);
  return std::span(batch.slates).subspan(begin, end - begin);
}

std::vector<SlateRows> rows_of_unit(const BatchPlan& batch, const SlateOrder& order, int unit,
                                    int drawn_by) {
  std::vector<SlateRows> slates;
  for (const SlateId& slate : slates_of_unit(batch, unit))
    slates.push_back({slate.graph, order.rows(slate, drawn_by)});
  return slates;
}

std::shared_ptr<const Unit> StepBuilder::build_unit(StepWork& work, int unit, int member,
                                                    Trace* trace) const {
  auto built = std::make_shared<Unit>(
      units_.build(rows_of_unit(work.batch, order_, unit, drawn_by(experiment_, member)),
                   edge_draw(experiment_, work.batch.step, slates_of_unit(work.batch, unit))));
  work.read_seconds += seconds_between(built->begin, built->read);
  work.plan_seconds += seconds_between(built->read, built->planned);
  if (trace) {
    const std::int64_t step = work.batch.step, read = nanoseconds(built->read);
    built->label = trace->keep(units_.graph_name(built->slates.front().graph));
    trace->add({"data", built->label, step, unit, nanoseconds(built->begin), read});
    trace->add({"plan", built->label, step, unit, read, nanoseconds(built->planned)});
  }
  return built;
}

// Members that see the same rows share the unit's data; consecutive members are one pass.
void StepBuilder::add_passes(StepWork& work, int unit, Trace* trace) const {
  const bool shared = shares_slates(experiment_);
  std::shared_ptr<const Unit> data;
  int most = experiment_.batch.member_chunk;  // members of a pass; 0: not known yet
  for (int m = 0; m < experiment_.ensemble.members; ++m) {
    if (work.batch.owners.of(m, unit) != rank_) continue;
    const bool extends = shared && !work.passes.empty() && work.passes.back().unit == unit &&
                         work.passes.back().first_member + work.passes.back().members == m &&
                         work.passes.back().members != most;
    if (extends) {
      ++work.passes.back().members;
      continue;
    }
    if (!data || !shared) {
      data = build_unit(work, unit, m, trace);
      if (most == 0) most = units_.members_together(*data);
    }
    work.passes.push_back({unit, m, 1, data});
  }
}

}  // namespace tpudist
