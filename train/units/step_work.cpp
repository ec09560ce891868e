#include "train/units/step_work.hpp"

#include <algorithm>
#include <chrono>

#include "core/numbers.hpp"

namespace tpudist {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

std::int64_t nanoseconds(TimePoint time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

bool shares_slates(const Experiment& experiment) {
  return !experiment.batch.rows_per_member && !experiment.ensemble.vary_order;
}

int drawn_by(const Experiment& experiment, int member) {
  return shares_slates(experiment) ? -1 : experiment.ensemble.number_of(member);
}

StepBuilder::StepBuilder(const Experiment& experiment, const BatchPlanner& planner,
                         const SlateOrder& order, const UnitBuilder& units, ThreadPool& pool,
                         int rank)
    : experiment_(experiment),
      planner_(planner),
      order_(order),
      units_(units),
      pool_(pool),
      rank_(rank) {}

StepWork StepBuilder::build(std::int64_t step) const {
  return build(step, std::vector<bool>(experiment_.ensemble.members, true));
}

StepWork StepBuilder::build(std::int64_t step, const std::vector<bool>& training,
                            const std::function<void()>& on_unit, Trace* trace) const {
  const TraceSpan span(trace, "prepare step", step);
  StepWork work;
  work.batch = planner_.plan(step, training);
  std::vector<OwnUnit> units = own_units(work.batch);
  pool_.parallel_for(static_cast<std::int64_t>(units.size()), [&](std::int64_t i) {
    OwnUnit& own = units[i];
    own.data = build_unit(work.batch, own, trace);
    if (on_unit) on_unit();
  });
  for (const OwnUnit& own : units) add_passes(work, own);
  // The gradients of a member are then summed while they are in the caches.
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

std::vector<StepBuilder::OwnUnit> StepBuilder::own_units(const BatchPlan& batch) const {
  const bool shared = shares_slates(experiment_);
  std::vector<OwnUnit> units;
  for (int unit = 0; unit < batch.units(); ++unit) {
    for (int m = 0; m < experiment_.ensemble.members; ++m) {
      if (batch.owners.of(m, unit) != rank_) continue;
      units.push_back({unit, m, nullptr});
      if (shared) break;
    }
  }
  return units;
}

std::shared_ptr<const Unit> StepBuilder::build_unit(const BatchPlan& batch, const OwnUnit& own,
                                                    Trace* trace) const {
  auto built = std::make_shared<Unit>(
      units_.build(rows_of_unit(batch, order_, own.unit, drawn_by(experiment_, own.member)),
                   graph_draw(experiment_, batch.step, slates_of_unit(batch, own.unit))));
  if (trace) {
    const std::int64_t read = nanoseconds(built->read);
    built->label = trace->keep(units_.graph_name(built->slates.front().graph));
    trace->add({"data", built->label, batch.step, own.unit, nanoseconds(built->begin), read});
    trace->add({"plan", built->label, batch.step, own.unit, read, nanoseconds(built->planned)});
  }
  return built;
}

// Members with the same rows share the unit's data; consecutive members are one pass.
void StepBuilder::add_passes(StepWork& work, const OwnUnit& own) const {
  work.read_seconds += seconds_between(own.data->begin, own.data->read);
  work.plan_seconds += seconds_between(own.data->read, own.data->planned);
  const int chunk = experiment_.batch.member_chunk;
  const int most = chunk > 0 ? chunk : units_.members_together(*own.data);
  const int end = shares_slates(experiment_) ? experiment_.ensemble.members : own.member + 1;
  UnitPass pass{own.unit, own.member, 0, own.data};
  for (int m = own.member; m < end; ++m) {
    const bool owned = work.batch.owners.of(m, own.unit) == rank_;
    if (pass.members > 0 && (!owned || pass.members == most)) {
      work.passes.push_back(pass);
      pass.members = 0;
    }
    if (!owned) continue;
    if (pass.members == 0) pass.first_member = m;
    ++pass.members;
  }
  if (pass.members > 0) work.passes.push_back(pass);
}

}  // namespace tpudist
