#include "train/loop/training_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/random.hpp"
#include "models/plans/join_plans.hpp"
#include "results/records/initial_and_final_loss.hpp"

namespace tpudist {
namespace {

// The part of a slate's gradient for a chunk: the slate's first configuration and the `others` from
// `next` on. If the loss is translation-invariant, the gradients of a slate sum to 0. The first
// configuration then gets the value that makes each chunk sum to 0 as well. Therefore a chunk, like
// a whole slate, needs no gradient of rows that its configurations share. Computed chunk by chunk,
// the gradients of shared rows would cancel only up to rounding, which can be larger than all other
// rounding errors.
ScoreGradient gradient_of_chunk(const ScoreGradient& slate, std::size_t members, std::size_t next,
                                std::size_t others) {
  ScoreGradient chunk{{}, slate.translation_invariant};
  const std::size_t configs = slate.values.size() / members;
  for (std::size_t m = 0; m < members; ++m) {
    const std::span values = std::span(slate.values).subspan(m * configs, configs);
    const std::span own = values.subspan(next, others);
    double first = next == 1 ? values[0] : 0.0;
    if (slate.is_translation_invariant(static_cast<int>(m))) {
      first = -std::accumulate(own.begin(), own.end(), 0.0);
    }
    chunk.values.push_back(first);
    chunk.values.insert(chunk.values.end(), own.begin(), own.end());
  }
  return chunk;
}

using Clock = std::chrono::steady_clock;

}  // namespace

static_assert(std::is_trivially_copyable_v<StepTimes>);
static_assert(sizeof(StepTimes) == kStepTimes.size() * sizeof(double), "each time has a name");

std::vector<StepTimes> gather_times(Communicator& world, const StepTimes& mine) {
  const auto ranks = static_cast<std::size_t>(world.size());
  std::vector<StepTimes> all(ranks, mine);
  if (ranks == 1) return all;
  const std::vector<std::int64_t> ones(ranks, 1);
  world.all_gather(std::span(&mine, 1), std::span(all), std::span<const std::int64_t>(ones));
  return all;
}

std::pair<std::size_t, double> straggler(const std::vector<StepTimes>& ranks) {
  std::size_t slowest = 0;
  double sum = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    sum += ranks[r].compute;
    if (ranks[r].compute > ranks[slowest].compute) slowest = r;
  }
  const double mean = sum / static_cast<double>(ranks.size());
  return {slowest, mean > 0 ? ranks[slowest].compute / mean : 1.0};
}

nlohmann::json times_json(const std::vector<StepTimes>& ranks) {
  nlohmann::json seconds = nlohmann::json::object();
  for (const auto& [name, time] : kStepTimes) {
    nlohmann::json& list = seconds[name] = nlohmann::json::array();
    for (const StepTimes& of_rank : ranks) list.push_back(of_rank.*time);
  }
  const auto [slowest, ratio] = straggler(ranks);
  return {{"rank_seconds", seconds}, {"slowest_rank", slowest}, {"straggler_ratio", ratio}};
}

// The arguments of a call of the network for its members.
struct TrainingStep::Members {
  Members(const Shared& step, const std::vector<int>& members)
      : parameters(step.parameters),
        first(members.front()),
        count(static_cast<int>(members.size())),
        dropout_keys(step.dropout_keys) {
    if (members.back() - first + 1 == count) return;
    parameters.placed = step.parameters.placed->some(members);
    first = 0;
    dropout_keys.clear();
    for (const int m : members) dropout_keys.push_back(step.dropout_keys[m]);
  }
  Parameters parameters;
  int first, count;
  std::vector<std::uint64_t> dropout_keys;
};

TrainingStep::TrainingStep(const Experiment& experiment, const Network& network,
                           JobContext& context)
    : experiment_(experiment),
      network_(network),
      context_(context),
      side_(network.device() ? make_device_side(experiment, network, context)
                             : make_host_side(experiment, network, context)),
      segments_(experiment.ensemble.members, experiment.batch.configs) {}

TrainingStep::~TrainingStep() = default;

StepResult TrainingStep::run(const StepWork& work, TrainingState& state) {
  const std::int64_t step = state.step + 1;
  const auto begin = Clock::now();
  {
    const TraceSpan span(context_.trace, "compute", step);
    run_calls(work, state);
  }
  auto computed = Clock::now();
  TraceSpan reduction(context_.trace, "reduction", step);
  side_->reduce();
  reduction.end();
  auto reduced = Clock::now();
  DeviceWeights::LossAndNorm totals = side_->totals(state);
  // With one rank nothing waited for the device before: count the wait as compute.
  if (network_.device() && context_.world.size() == 1) computed = reduced = Clock::now();
  const TraceSpan span(context_.trace, "optimizer", step);
  StepResult result = update(work, std::move(totals), state);
  times_ = {.reading = work.read_seconds,
            .planning = work.plan_seconds,
            .compute = seconds_between(begin, computed),
            .reduction = seconds_between(computed, reduced),
            .optimizer = seconds_between(reduced, Clock::now())};
  return result;
}

// The leaves of joined passes, and the other passes.
std::vector<TrainingStep::Call> TrainingStep::calls_of(const StepWork& work) {
  std::vector<Call> calls;
  for (const JoinedPass& pass : work.joined) {
    const std::size_t slots = pass.unit.size() / pass.members.size();
    for (std::size_t leaf = 0; leaf < pass.unit.size(); ++leaf) {
      if (pass.unit[leaf] >= 0)
        calls.push_back({pass.unit[leaf], pass.data[leaf].get(), {pass.members[leaf / slots]}, {}});
    }
  }
  for (const UnitPass& pass : work.passes) {
    if (!work.joined.empty() && pass.data->chunks.empty()) continue;
    Call& call = calls.emplace_back(Call{pass.unit, pass.data.get(), {}, {}});
    for (int m = 0; m < pass.members; ++m) call.members.push_back(pass.first_member + m);
  }
  return calls;
}

void TrainingStep::run_calls(const StepWork& work, TrainingState& state) {
  std::vector<Call> calls = calls_of(work);
  segments_.begin(work.batch.slates.size(), state.segments);
  const Shared step{work, side_->begin(work.batch, calls, state), dropout_keys(state)};
  std::size_t joined = 0;
  for (const JoinedPass& pass : work.joined) {
    const auto count = static_cast<std::size_t>(
        std::ranges::count_if(pass.unit, [](int unit) { return unit >= 0; }));
    run_joined(step, pass, calls, joined, count);
    joined += count;
  }
  const auto run = [&](std::size_t i) {
    Call& call = calls[i];
    side_->add({&call, 1}, i, [&](const GradientRows& gradients) {
      if (!call.data->chunks.empty()) return run_chunks(step, call, gradients.host);
      run_gradient(
          step, call, call.data->input,
          [&](const UnitScores& scores) { return loss_gradient(work, call, scores); }, gradients);
    });
  };
  if (network_.device()) {
    for (std::size_t i = joined; i < calls.size(); ++i) run(i);
    // Wait before ranks meet: a slow rank must not count against the timeout of NCCL.
    if (context_.world.size() > 1) network_.device()->wait();
  } else {
    context_.pool.parallel_for(std::ssize(calls),
                               [&](std::int64_t i) { run(static_cast<std::size_t>(i)); });
  }
}

// Forward and backward pass of a unit or a chunk, with the loss between them.
void TrainingStep::run_gradient(const Shared& step, const Call& call, const UnitInput& input,
                                const LossGradient& loss, const GradientRows& gradients) {
  const auto begin_span = [&](std::optional<TraceSpan>& span, const char* name) {
    span.emplace(context_.trace, name, step.work.batch.step + 1, call.unit, call.data->label);
  };
  std::optional<TraceSpan> span;
  begin_span(span, "forward");
  const auto between = [&](const UnitScores& scores) {
    begin_span(span, "loss");
    ScoreGradient gradient = loss(scores);
    begin_span(span, "backward");
    return gradient;
  };
  const Members members(step, call.members);
  network_.gradient(members.parameters, members.first, members.count, input, between, gradients,
                    needs_common(), members.dropout_keys);
}

// The calls of a joined pass, whose leaves they are.
void TrainingStep::run_joined(const Shared& step, const JoinedPass& pass, std::vector<Call>& calls,
                              std::size_t first, std::size_t count) {
  const JoinedUnits& units = *pass.input.plan->units;
  std::vector<int> leaves;
  for (std::size_t leaf = 0; leaf < pass.unit.size(); ++leaf) {
    if (pass.unit[leaf] >= 0) leaves.push_back(static_cast<int>(leaf));
  }
  const std::span<Call> own = std::span(calls).subspan(first, count);
  std::optional<TraceSpan> span;
  const auto begin_span = [&](const char* name) {
    span.emplace(context_.trace, name, step.work.batch.step + 1);
  };
  const auto loss = [&](const UnitScores& scores) {
    begin_span("loss");
    ScoreGradient gradient{std::vector<double>(scores.delta.size(), 0.0), {}};
    const auto configs = static_cast<std::size_t>(scores.configs),
               slots = static_cast<std::size_t>(units.slots);
    context_.pool.parallel_for(std::ssize(own), [&](std::int64_t i) {
      const auto leaf = static_cast<std::size_t>(leaves[static_cast<std::size_t>(i)]);
      // With several blocks the runs of a member are those of its block.
      const RowRun& run = units.configs->runs[leaf % units.configs->runs.size()];
      const std::size_t at = units.blocks == 1 ? leaf / slots * configs : 0;
      const auto begin = static_cast<std::ptrdiff_t>(at) + run.begin;
      Call& call = own[static_cast<std::size_t>(i)];
      const UnitScores of_leaf{
          1,
          run.count,
          {scores.delta.begin() + begin, scores.delta.begin() + begin + run.count},
          std::vector<double>(call.data->slates.size())};
      std::ranges::copy(loss_gradient(step.work, call, of_leaf).values,
                        gradient.values.begin() + begin);
    });
    begin_span("backward");
    return gradient;
  };
  begin_span("forward");
  const Members members(step, pass.members);
  side_->add(own, first, [&](const GradientRows& rows) {
    network_.gradient(members.parameters, members.first, members.count, leaves, pass.input, loss,
                      rows, members.dropout_keys);
  });
}

// A slate in two passes: the scores of all chunks, then the gradient chunk by chunk.
void TrainingStep::run_chunks(const Shared& step, Call& call,
                              std::span<const std::span<float>> gradients) {
  const std::vector<UnitInput>& chunks = call.data->chunks;
  const std::size_t members = call.members.size();
  const Members own_members(step, call.members);
  const std::size_t configs = call.data->slates[0].configs.size();
  UnitScores all{static_cast<int>(members), static_cast<std::int64_t>(configs),
                 std::vector<double>(members * configs), std::vector<double>(members, 0.0)};
  std::size_t next = 1;  // the first configuration of the slate that is not in an earlier chunk
  for (const UnitInput& chunk : chunks) {
    const TraceSpan span(context_.trace, "scores of chunk", step.work.batch.step + 1, call.unit,
                         call.data->label);
    const UnitScores scores = network_.scores(own_members.parameters, own_members.first,
                                              own_members.count, chunk, own_members.dropout_keys);
    const auto count = static_cast<std::size_t>(scores.configs);
    for (std::size_t m = 0; m < members; ++m) {
      const auto score = [&](std::size_t k) {
        return scores.common[m] + scores.delta[m * count + k];
      };
      if (next == 1) all.delta[m * configs] = score(0);
      for (std::size_t k = 1; k < count; ++k) all.delta[m * configs + next + k - 1] = score(k);
    }
    next += count - 1;
  }
  const ScoreGradient whole = loss_gradient(step.work, call, all);

  const auto length = static_cast<std::size_t>(network_.parameters().length());
  const Buffer buffer = buffers_.take(static_cast<std::int64_t>(members * length));
  std::vector<std::span<float>> parts;
  for (std::size_t m = 0; m < members; ++m)
    parts.push_back(buffer.first(members * length).subspan(m * length, length));
  next = 1;
  for (const UnitInput& chunk : chunks) {
    const auto others = static_cast<std::size_t>(chunk.plan->configs) - 1;
    const auto own = [&](const UnitScores&) {
      return gradient_of_chunk(whole, members, next, others);
    };
    const bool fresh = next == 1;
    run_gradient(step, call, chunk, own,
                 fresh ? gradients : std::span<const std::span<float>>(parts));
    for (std::size_t m = 0; !fresh && m < members; ++m) {
      for (std::size_t i = 0; i < length; ++i) gradients[m][i] += parts[m][i];
    }
    next += others;
  }
}

// [M] key of each member's dropout in this step.
std::vector<std::uint64_t> TrainingStep::dropout_keys(const TrainingState& state) const {
  std::vector<std::uint64_t> keys;
  for (int m = 0; m < experiment_.ensemble.members; ++m) {
    keys.push_back(mix_key({experiment_.init_seed, experiment_.order_seed,
                            static_cast<std::uint64_t>(experiment_.ensemble.number_of(m)),
                            static_cast<std::uint64_t>(state.step)}));
  }
  return keys;
}

// Weighted d loss / d score of a call, [members, configs]. Sets each member's weighted loss.
ScoreGradient TrainingStep::loss_gradient(const StepWork& work, Call& call,
                                          const UnitScores& scores) {
  ScoreGradient gradient{std::vector<double>(scores.delta.size(), 0.0),
                         std::vector<bool>(call.members.size(), true)};
  call.losses.assign(call.members.size(), 0.0);
  const std::size_t slates = call.data->slates.size();
  for (std::size_t i = 0; i < call.members.size(); ++i) {
    const int m = call.members[i];
    std::size_t at = i * static_cast<std::size_t>(scores.configs);
    for (std::size_t s = 0; s < slates; ++s) {
      const Slate& slate = call.data->slates[s];
      const std::size_t count = slate.targets.size();
      const std::size_t index = static_cast<std::size_t>(work.batch.unit_begin[call.unit]) + s;
      const double weight = work.batch.weights[m][index];
      if (weight > 0) {
        std::vector<double> values(scores.delta.begin() + static_cast<std::ptrdiff_t>(at),
                                   scores.delta.begin() + static_cast<std::ptrdiff_t>(at + count));
        if (needs_common()) {
          for (double& value : values) value += scores.common[i * slates + s];
        }
        if (segments_.cut()) segments_.mix(*call.data, s, index, m, values);
        const auto number = static_cast<std::uint64_t>(experiment_.ensemble.number_of(m));
        const std::uint64_t ties = mix_key(
            {experiment_.order_seed, number, static_cast<std::uint64_t>(work.batch.step), index});
        const std::span<double> out = std::span(gradient.values).subspan(at, count);
        const SlateLoss::Value value = experiment_.loss->evaluate(values, slate.targets, ties, out);
        call.losses[i] += weight * value.loss;
        if (!value.translation_invariant) gradient.translation_invariant[i] = false;
        const double scale = segments_.cut() ? weight * call.data->segments[s].scale : weight;
        for (double& value : out) value *= scale;
      }
      at += count;
    }
    if (experiment_.loss->batch)
      add_batch_loss(*experiment_.loss->batch, work, call, i, scores, gradient);
  }
  return gradient;
}

// Whether scores need the part that the configurations of a slate share. Segments do: the table
// compares scores of several slates.
bool TrainingStep::needs_common() const {
  return !experiment_.loss->is_translation_invariant || experiment_.data.cuts_segments();
}

// Adds the batch loss of member i of the call: over all slates from which the member learns,
// weighted by the sum of their weights. The unit must hold the whole batch.
void TrainingStep::add_batch_loss(const BatchLoss& batch, const StepWork& work, Call& call,
                                  std::size_t i, const UnitScores& scores,
                                  ScoreGradient& gradient) const {
  const std::vector<double>& weights = work.batch.weights[call.members[i]];
  const std::size_t slates = call.data->slates.size();
  std::vector<double> values, targets;
  std::vector<std::size_t> places;  // of `values` in the gradient
  double weight = 0;
  std::size_t at = i * static_cast<std::size_t>(scores.configs);
  for (std::size_t s = 0; s < slates; ++s) {
    const std::vector<double>& own = call.data->slates[s].targets;
    if (weights[s] > 0) {
      weight += weights[s];
      const double unit = batch.relative ? std::ranges::min(own) : 1;
      for (std::size_t k = 0; k < own.size(); ++k) {
        values.push_back(scores.common[i * slates + s] + scores.delta[at + k]);
        targets.push_back(own[k] / unit);
        places.push_back(at + k);
      }
    }
    at += own.size();
  }
  std::vector<double> of_batch(values.size());
  const auto number = static_cast<std::uint64_t>(experiment_.ensemble.number_of(call.members[i]));
  const std::uint64_t ties = mix_key(
      {experiment_.order_seed, number, static_cast<std::uint64_t>(work.batch.step), slates});
  const SlateLoss::Value value = batch.loss.evaluate(values, targets, ties, of_batch);
  call.losses[i] += weight * batch.weight * value.loss;
  gradient.translation_invariant[i] = false;
  for (std::size_t k = 0; k < places.size(); ++k)
    gradient.values[places[k]] += weight * batch.weight * of_batch[k];
}

StepResult TrainingStep::update(const StepWork& work, DeviceWeights::LossAndNorm totals,
                                TrainingState& state) {
  StepResult result{std::move(totals.loss), std::move(totals.norm), {}, 0, totals.bits};
  for (std::size_t m = 0; m < result.loss.size(); ++m) {
    bool present = false;
    for (int unit = 0; unit < work.batch.owners.leaves; ++unit) {
      present = present || work.batch.owners.of(static_cast<int>(m), unit) >= 0;
    }
    const bool takes =
        present && state.failed[m] == 0 && judge(m, result, state) == StepVerdict::take;
    result.stepped.push_back(takes);
    if (takes) add_loss(state.losses, m, state.step, experiment_.train.steps, result.loss[m]);
  }
  const double factor = experiment_.schedule(state.step, experiment_.train.steps);
  result.rate = experiment_.optimizer.rate * factor;
  side_->step(state, result.norm, result.stepped, factor);
  segments_.update(work.batch, result.stepped, context_.world, state.segments);
  ++state.step;
  side_->add_point(state);
  return result;
}

// Applies and logs the decision for a member that has a slate.
StepVerdict TrainingStep::judge(std::size_t m, const StepResult& result, TrainingState& state) {
  const StepVerdict verdict = state.bad_loss.judge(m, result.loss[m], result.norm[m]);
  if (verdict == StepVerdict::take) return verdict;
  if (verdict == StepVerdict::leave) state.failed[m] = 1;
  spdlog::warn("member {}: loss {} and gradient norm {} at step {}: the member {}",
               experiment_.ensemble.number_of(static_cast<int>(m)), result.loss[m], result.norm[m],
               state.step,
               verdict == StepVerdict::skip ? "takes no step" : "is left out from here on");
  return verdict;
}

}  // namespace tpudist
