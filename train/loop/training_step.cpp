#include "train/loop/training_step.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/duration.hpp"
#include "core/log.hpp"
#include "core/random.hpp"
#include "dist/collectives/gradient_reducer.hpp"
#include "dist/collectives/nccl_communicator.hpp"
#include "models/kernels/leaf_sums.hpp"

namespace tpudist {
namespace {

constexpr std::int64_t kRowExtra = 16;  // floats after a gradient: the loss, padded to 64 bytes

// The part of a slate's gradient for a chunk: the slate's first configuration and the `others` from
// `next` on. If the loss is translation-invariant, the gradients of a slate sum to 0. The first
// configuration then gets the value that makes each chunk sum to 0 as well. So a chunk, like a
// whole slate, needs no gradient of rows that its configurations share. Computed chunk by chunk,
// these gradients would cancel only up to rounding, which can be larger than all other rounding
// errors.
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

// Without kernels no rank has a device.
AddLeaves leaf_adder() {
#ifdef TPUDIST_WITH_CUDA_KERNELS
  return [](int members, std::int64_t length, const std::int32_t* plan, float* leaves,
            float* sums) { launch_leaf_sums(members, length, plan, leaves, sums, nullptr); };
#else
  return {};
#endif
}

}  // namespace

TrainingStep::TrainingStep(const Experiment& experiment, const Network& network,
                           JobContext& context)
    : experiment_(experiment),
      network_(network),
      context_(context),
      length_(network.parameters().length()),
      row_length_(length_ + kRowExtra) {
  const double timeout = experiment.dist.timeout;
  const int device = context.place.device;
  if (device >= 0 && context.world.size() > 1) {
    RankActivity* const activity = context.watchdog ? &context.watchdog->activity() : nullptr;
    nccl_ = make_nccl_communicator(context.world, device, {activity, timeout});
  }
  Communicator& communicator = nccl_ ? *nccl_ : context.world;
  if (experiment.dist.reduce == ReduceMode::all_reduce) {
    reducer_ = make_all_reduce_reducer(communicator, row_length_, context.pool);
  } else if (nccl_) {
    reducer_ = make_device_tree_reducer({context.world, *nccl_, device, leaf_adder(), timeout},
                                        row_length_, context.pool);
  } else {
    reducer_ = make_tree_reducer(context.world, row_length_, context.pool);
  }
}

TrainingStep::~TrainingStep() = default;

StepResult TrainingStep::run(const StepWork& work, TrainingState& state) {
  const std::int64_t step = state.step + 1;
  const auto begin = Clock::now();
  {
    const TraceSpan span(context_.trace, "compute", step);
    reducer_->begin(work.batch.owners);
    context_.pool.parallel_for(static_cast<std::int64_t>(work.passes.size()), [&](std::int64_t i) {
      run_pass(work, work.passes[static_cast<std::size_t>(i)], state);
    });
  }
  const auto computed = Clock::now();
  TraceSpan reduction(context_.trace, "reduction", step);
  const std::span<const float> sums = reducer_->finalize();
  reduction.end();
  const auto reduced = Clock::now();
  const TraceSpan span(context_.trace, "optimizer", step);
  StepResult result = update(work, sums, state);
  times_ = {.reading = work.read_seconds,
            .planning = work.plan_seconds,
            .compute = seconds_between(begin, computed),
            .reduction = seconds_between(computed, reduced),
            .optimizer = seconds_between(reduced, Clock::now())};
  return result;
}

// Forward and backward pass of a unit or a chunk, with the loss between them.
void TrainingStep::run_gradient(const UnitPass& pass, const UnitInput& input,
                                const TrainingState& state, const LossGradient& loss,
                                std::span<const std::span<float>> gradients) {
  const auto begin_span = [&](std::optional<TraceSpan>& span, const char* name) {
    span.emplace(context_.trace, name, state.step + 1, pass.unit, pass.data->label);
  };
  std::optional<TraceSpan> span;
  begin_span(span, "forward");
  const auto between = [&](const UnitScores& scores) {
    begin_span(span, "loss");
    ScoreGradient gradient = loss(scores);
    begin_span(span, "backward");
    return gradient;
  };
  network_.gradient(state.flat, pass.first_member, pass.members, input, between, gradients,
                    !experiment_.loss->is_translation_invariant(), dropout_keys(state));
}

void TrainingStep::run_pass(const StepWork& work, const UnitPass& pass,
                            const TrainingState& state) {
  const auto rows = static_cast<std::size_t>(pass.members);
  const auto stride = static_cast<std::size_t>(row_length_);
  const Buffer buffer = buffers_.take(static_cast<std::int64_t>(rows * stride));
  const std::span<float> flat = buffer.first(rows * stride);
  std::vector<std::span<float>> gradients;
  for (std::size_t m = 0; m < rows; ++m) {
    gradients.push_back(flat.subspan(m * stride, static_cast<std::size_t>(length_)));
  }
  std::vector<double> losses;
  if (pass.data->chunks.empty()) {
    run_gradient(
        pass, pass.data->input, state,
        [&](const UnitScores& scores) { return loss_gradient(work, pass, scores, losses); },
        gradients);
  } else {
    run_chunks(work, pass, state, gradients, losses);
  }
  const TraceSpan span(context_.trace, "add gradients", state.step + 1, pass.unit,
                       pass.data->label);
  for (std::size_t m = 0; m < rows; ++m) {
    const std::span<float> row = flat.subspan(m * stride, stride);
    std::fill(row.begin() + length_, row.end(), 0.0f);
    row[static_cast<std::size_t>(length_)] = static_cast<float>(losses[m]);
    reducer_->add(pass.first_member + static_cast<int>(m), pass.unit, row);
  }
}

// A slate in two passes: the scores of all chunks, then the gradient chunk by chunk.
void TrainingStep::run_chunks(const StepWork& work, const UnitPass& pass,
                              const TrainingState& state,
                              std::span<const std::span<float>> gradients,
                              std::vector<double>& losses) {
  const std::vector<UnitInput>& chunks = pass.data->chunks;
  const auto members = static_cast<std::size_t>(pass.members);
  const std::size_t configs = pass.data->slates[0].configs.size();
  UnitScores all{pass.members, static_cast<std::int64_t>(configs),
                 std::vector<double>(members * configs), std::vector<double>(members, 0.0)};
  std::size_t next = 1;  // the first configuration of the slate that is not in an earlier chunk
  for (const UnitInput& chunk : chunks) {
    const TraceSpan span(context_.trace, "scores of chunk", state.step + 1, pass.unit,
                         pass.data->label);
    const UnitScores scores =
        network_.scores(state.flat, pass.first_member, pass.members, chunk, dropout_keys(state));
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
  const ScoreGradient whole = loss_gradient(work, pass, all, losses);

  const auto length = static_cast<std::size_t>(length_);
  const auto stride = static_cast<std::size_t>(row_length_);
  const Buffer buffer = buffers_.take(static_cast<std::int64_t>(members * stride));
  std::vector<std::span<float>> parts;
  for (std::size_t m = 0; m < members; ++m) {
    parts.push_back(buffer.first(members * stride).subspan(m * stride, length));
  }
  next = 1;
  for (const UnitInput& chunk : chunks) {
    const auto others = static_cast<std::size_t>(chunk.plan->configs) - 1;
    const auto own = [&](const UnitScores&) {
      return gradient_of_chunk(whole, members, next, others);
    };
    const bool fresh = next == 1;
    run_gradient(pass, chunk, state, own,
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

// Weighted d loss / d score of a pass, [members, configs], and each member's weighted loss.
ScoreGradient TrainingStep::loss_gradient(const StepWork& work, const UnitPass& pass,
                                          const UnitScores& scores,
                                          std::vector<double>& losses) const {
  ScoreGradient gradient{std::vector<double>(scores.delta.size(), 0.0),
                         std::vector<bool>(static_cast<std::size_t>(pass.members), true)};
  losses.assign(static_cast<std::size_t>(pass.members), 0.0);
  const std::size_t slates = pass.data->slates.size();
  for (int i = 0; i < pass.members; ++i) {
    const int m = pass.first_member + i;
    std::size_t at = static_cast<std::size_t>(i) * static_cast<std::size_t>(scores.configs);
    for (std::size_t s = 0; s < slates; ++s) {
      const Slate& slate = pass.data->slates[s];
      const std::size_t count = slate.targets.size();
      const std::size_t index =
          static_cast<std::size_t>(work.batch.unit_begin[static_cast<std::size_t>(pass.unit)]) + s;
      const double weight = work.batch.weights[static_cast<std::size_t>(m)][index];
      if (weight > 0) {
        std::vector<double> values(scores.delta.begin() + static_cast<std::ptrdiff_t>(at),
                                   scores.delta.begin() + static_cast<std::ptrdiff_t>(at + count));
        if (!experiment_.loss->is_translation_invariant()) {
          for (double& value : values)
            value += scores.common[static_cast<std::size_t>(i) * slates + s];
        }
        const auto number = static_cast<std::uint64_t>(experiment_.ensemble.number_of(m));
        const std::uint64_t ties = mix_key(
            {experiment_.order_seed, number, static_cast<std::uint64_t>(work.batch.step), index});
        const std::span<double> out = std::span(gradient.values).subspan(at, count);
        const SlateLoss::Value value = experiment_.loss->evaluate(values, slate.targets, ties, out);
        losses[static_cast<std::size_t>(i)] += weight * value.loss;
        if (!value.translation_invariant)
          gradient.translation_invariant[static_cast<std::size_t>(i)] = false;
        for (double& value : out) value *= weight;
      }
      at += count;
    }
  }
  return gradient;
}

StepResult TrainingStep::update(const StepWork& work, std::span<const float> sums,
                                TrainingState& state) {
  StepResult result;
  const auto members = static_cast<std::size_t>(experiment_.ensemble.members);
  result.norm = state.optimizer.gradient_norms(sums, row_length_, context_.pool);
  for (std::size_t m = 0; m < members; ++m) {
    result.loss.push_back(
        sums[m * static_cast<std::size_t>(row_length_) + static_cast<std::size_t>(length_)]);
    bool present = false;
    for (int unit = 0; unit < work.batch.owners.leaves; ++unit) {
      present = present || work.batch.owners.of(static_cast<int>(m), unit) >= 0;
    }
    const bool takes =
        present && state.failed[m] == 0 && judge(m, result, state) == StepVerdict::take;
    result.stepped.push_back(takes);
  }
  const double factor = experiment_.schedule(state.step, experiment_.train.steps);
  result.rate = experiment_.optimizer.rate * factor;
  take_step(sums, result, factor, state);
  ++state.step;
  state.average.add(state.flat, state.training(), state.step, experiment_.train.steps,
                    context_.pool);
  return result;
}

// Applies and logs the decision for a member that has a slate.
StepVerdict TrainingStep::judge(std::size_t m, const StepResult& result, TrainingState& state) {
  const StepVerdict verdict = state.bad_loss.judge(m, result.loss[m], result.norm[m]);
  if (verdict == StepVerdict::take) return verdict;
  std::string_view what = "the member is left out from here on";
  std::string rate;
  if (verdict == StepVerdict::skip) what = "the member takes no step";
  if (verdict == StepVerdict::leave) state.failed[m] = 1;
  if (verdict == StepVerdict::roll_back) {
    state.roll_back(m);
    what = "the member goes back to the last regular checkpoint";
    rate = fmt::format(", with {:g} of its rate", state.bad_loss.rate_factor(m));
  }
  spdlog::warn("member {}: loss {} and gradient norm {} at step {}: {}{}",
               experiment_.ensemble.number_of(static_cast<int>(m)), result.loss[m], result.norm[m],
               state.step, what, rate);
  return verdict;
}

// Members that were rolled back have lower rates; members of equal rates step together.
void TrainingStep::take_step(std::span<const float> sums, const StepResult& result, double factor,
                             TrainingState& state) {
  std::set<double> shares;
  for (std::size_t m = 0; m < result.stepped.size(); ++m)
    shares.insert(state.bad_loss.rate_factor(m));
  for (const double share : shares) {
    std::vector<bool> members = result.stepped;
    for (std::size_t m = 0; m < members.size(); ++m) {
      if (state.bad_loss.rate_factor(m) != share) members[m] = false;
    }
    state.optimizer.step(state.flat, sums, row_length_, result.norm, members, factor * share,
                         context_.pool);
  }
}

}  // namespace tpudist
