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

// Computing units for members that do not learn from them, too, costs arithmetic; a block for each
// member costs copies of the units' plans.
constexpr double kShareToCompute = 0.85;

}  // namespace

bool shares_slates(const Experiment& experiment) {
  return !experiment.batch.rows_per_member && !experiment.ensemble.vary_order;
}

int drawn_by(const Experiment& experiment, int member) {
  return shares_slates(experiment) ? -1 : experiment.ensemble.number_of(member);
}

bool share_a_block(double most, double all) {
  return most >= kShareToCompute * all;
}

void JoinedBytes::add(const UnitPass& pass, double leaf) {
  const auto add_to = [&](Leaves& sum) {
    sum.bytes += leaf;
    sum.rows += static_cast<double>(pass.data->input.plan->total_rows());
  };
  for (int m = 0; m < pass.members; ++m) add_to(of_member_[pass.first_member + m]);
  if (units_.insert(pass.data.get()).second) add_to(all_);
}

JoinedBytes::Leaves JoinedBytes::most() const {
  Leaves most;
  for (const auto& [member, own] : of_member_)
    most = {std::max(most.bytes, own.bytes), std::max(most.rows, own.rows)};
  return most;
}

bool JoinedBytes::shares_block() const {
  return share_a_block(most().rows, all_.rows);
}

double JoinedBytes::total() const {
  return static_cast<double>(of_member_.size()) * (shares_block() ? all_.bytes : most().bytes);
}

StepBuilder::StepBuilder(const Experiment& experiment, const BatchPlanner& planner,
                         const SlateOrder& order, const UnitBuilder& units, ThreadPool& pool,
                         int rank, double most_pass_bytes)
    : experiment_(experiment),
      planner_(planner),
      order_(order),
      units_(units),
      pool_(pool),
      rank_(rank),
      most_pass_bytes_(most_pass_bytes) {}

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
  if (units_.joins_units()) join_passes(work);
  std::vector<double> unit_work(work.batch.units());
  for (const OwnUnit& own : units) unit_work[own.unit] = units_.step_work(*own.data);
  work.work = planner_.rank_work(work.batch, unit_work)[rank_];
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

// As many units in one pass as memory has room for; limited calls stay apart.
void StepBuilder::join_passes(StepWork& work) const {
  const double most = experiment_.batch.member_chunk > 0 ? 0 : most_pass_bytes_;
  std::vector<UnitPass> whole;
  for (const UnitPass& pass : work.passes) {
    if (pass.data->chunks.empty()) whole.push_back(pass);
  }
  const std::span<const UnitPass> passes = whole;
  std::size_t begin = 0;
  JoinedBytes bytes;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const double leaf = units_.leaf_bytes(*passes[i].data->input.plan);
    bytes.add(passes[i], leaf);
    if (i > begin && bytes.total() > most) {
      work.joined.push_back(joined(passes.subspan(begin, i - begin)));
      begin = i;
      bytes = {};
      bytes.add(passes[i], leaf);
    }
  }
  if (begin < passes.size()) work.joined.push_back(joined(passes.subspan(begin)));
}

JoinedPass StepBuilder::joined(std::span<const UnitPass> passes) const {
  std::map<int, std::vector<const UnitPass*>> of_member;
  std::vector<const UnitPass*> units;  // the first pass of each unit's data
  std::size_t most = 0;
  JoinedBytes rows;
  for (const UnitPass& pass : passes) {
    const auto same = [&](const UnitPass* other) { return other->data == pass.data; };
    if (std::ranges::none_of(units, same)) units.push_back(&pass);
    rows.add(pass, 0);
    for (int m = pass.first_member; m < pass.first_member + pass.members; ++m) {
      of_member[m].push_back(&pass);
      most = std::max(most, of_member[m].size());
    }
  }
  const bool shared = rows.shares_block();
  const std::size_t slots = shared ? units.size() : most;
  JoinedPass joined;
  std::vector<std::vector<const UnitInput*>> blocks;
  for (const auto& [member, own] : of_member) {
    joined.members.push_back(member);
    std::vector<const UnitInput*> block(slots, nullptr);
    for (std::size_t s = 0; s < slots; ++s) {
      const UnitPass* slot = s < own.size() ? own[s] : nullptr;
      if (shared) {
        const auto found =
            std::ranges::find(own, units[s]->data, [](const UnitPass* pass) { return pass->data; });
        slot = found == own.end() ? nullptr : *found;
      }
      joined.unit.push_back(slot ? slot->unit : -1);
      joined.data.push_back(slot ? slot->data : nullptr);
      if (slot) block[s] = &slot->data->input;
    }
    if (!shared) blocks.push_back(std::move(block));
  }
  if (shared) {
    blocks.emplace_back();
    for (const UnitPass* const unit : units) blocks.back().push_back(&unit->data->input);
  }
  joined.input = units_.join(blocks);
  return joined;
}

}  // namespace tpudist
