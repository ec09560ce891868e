// The hidden cost model must ask for message passing: a ridge regression on what each configurable
// operation chose and on its own bytes, shared across graphs, has to rank graphs of unseen families
// clearly worse than one that also sees whether and by how many bytes an operation's wish fits the
// layout of what it consumes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.hpp"
#include "data/synth/layouts.hpp"
#include "data/synth/presets.hpp"

namespace tpudist::synth {
namespace {

using Vector = std::vector<double>;

// Rows of one graph: features and noise-free run times, both centred, run times with variance 1.
struct Sample {
  std::vector<Vector> features;
  Vector time;
};

double bytes(const Op& op) {
  return static_cast<double>(op.shape.elements()) * bytes_of(op.type);
}

constexpr std::int32_t kFixed = -1, kFlexible = -2;

// Number of the choice that decides the layout of `op`: its own, or through elementwise operations
// that of their first operand; kFixed where nothing chooses it, kFlexible where it is made as its
// user wants it.
std::int32_t decider(const Program& program, const std::vector<std::int32_t>& number,
                     std::int32_t op) {
  while (number[op] < 0) {
    const Op& at = program[op];
    if (at.code == opcode::broadcast || at.code == opcode::constant) return kFlexible;
    if (at.operands.empty() || at.code == opcode::reduce || at.code == opcode::transpose ||
        program[at.operands[0]].shape.rank != at.shape.rank) {
      return kFixed;
    }
    op = at.operands[0];
  }
  return number[op];
}

constexpr std::size_t kMismatches = 12;

// Bytes whose layout (minor dimension; either dimension) differs from what a user wants: as the
// input of a configurable operation, as its kernel, and as a further operand of an elementwise one;
// those whose layout was chosen, then those whose layout is fixed.
template <typename State>
void add_mismatches(const Program& program, const std::vector<std::int32_t>& number,
                    const State& state, double total, double* features) {
  for (std::int32_t i = 0; i < program.nodes(); ++i) {
    const Op& op = program[i];
    const std::int32_t own = number[i];
    const std::int32_t user = decider(program, number, i);
    if (user < 0) continue;
    for (std::size_t k = own >= 0 ? 0 : 1; k < op.operands.size(); ++k) {
      const Op& operand = program[op.operands[k]];
      const std::int32_t by = decider(program, number, op.operands[k]);
      const Layout want = own < 0 ? state(user).output : k ? state(user).kernel : state(user).input;
      if (by == kFlexible || want.minor < 0 || operand.shape.rank < 2) continue;
      const Layout have = by == kFixed ? default_layout(operand.shape) : state(by).output;
      const double weight = bytes(operand) / total;
      double* pair = features + 2 * (own < 0 ? 2 : k) + (by == kFixed ? kMismatches / 2 : 0);
      pair[0] += weight * (have.minor != want.minor);
      pair[1] += weight * (have != want);
    }
  }
}

// Reshapes, and products by the dimensions that they sum over.
constexpr std::size_t kOperations = 8;
std::size_t kind_of(const Op& op) {
  if (op.code == opcode::reshape) return 0;
  if (op.convolution != ConvolutionKind::none) return static_cast<std::size_t>(op.convolution);
  const int last = op.shape.rank - 1;
  return 4 + static_cast<std::size_t>(2 * (op.contracted[0] == last) + (op.contracted[1] == last));
}

Sample sample(const LayoutJob& job, bool with_neighbours) {
  constexpr std::int64_t kRuns = 300;
  const Program program = build_model(job.model);
  const LayoutSpace space(program);
  const LayoutCost cost(program, space.choices);
  const LayoutConfigs configs = random_configs(space, cost, kRuns, 5);
  std::vector<std::int32_t> number(program.ops.size(), -1);
  double total = 0, flops = 0;
  for (std::size_t j = 0; j < space.choices.size(); ++j) {
    number[space.choices[j].op] = static_cast<std::int32_t>(j);
    total += bytes(program[space.choices[j].op]);
    flops += program[space.choices[j].op].flops;
  }
  Sample result;
  for (std::size_t d = 0; d < configs.time.size(); ++d) {
    const auto codes =
        std::span(configs.codes).subspan(d * space.choices.size(), space.choices.size());
    const auto state = [&](std::int32_t j) -> const Choice::State& {
      return space.choices[j].states[codes[j]];
    };
    Vector row(kOperations * 2 * kMaxStates + (with_neighbours ? kMismatches : 0));
    for (std::size_t j = 0; j < codes.size(); ++j) {
      const Op& op = program[space.choices[j].op];
      double* const own = &row[(kind_of(op) * kMaxStates + codes[j]) * 2];
      own[0] += bytes(op) / total;
      own[1] += op.flops / flops;
    }
    if (with_neighbours)
      add_mismatches(program, number, state, total, &row[kOperations * 2 * kMaxStates]);
    result.features.push_back(row);
    result.time.push_back(configs.time[d]);
  }
  return result;
}

void centre(Sample& sample) {
  const auto rows = static_cast<double>(sample.time.size());
  for (std::size_t f = 0; f < sample.features[0].size(); ++f) {
    double mean = 0;
    for (const Vector& row : sample.features) mean += row[f] / rows;
    for (Vector& row : sample.features) row[f] -= mean;
  }
  const double mean = std::accumulate(sample.time.begin(), sample.time.end(), 0.0) / rows;
  double variance = 0;
  for (double& time : sample.time) {
    time -= mean;
    variance += time * time / rows;
  }
  for (double& time : sample.time) time /= std::sqrt(variance);
}

// Solves (X^T X + ridge I) w = X^T y over all rows of all samples by Gauss elimination.
Vector ridge(const std::vector<Sample>& samples, double strength) {
  const std::size_t width = samples[0].features[0].size();
  std::vector<Vector> a(width, Vector(width + 1));
  for (std::size_t i = 0; i < width; ++i) a[i][i] = strength;
  for (const Sample& s : samples) {
    for (std::size_t r = 0; r < s.time.size(); ++r) {
      for (std::size_t i = 0; i < width; ++i) {
        for (std::size_t j = 0; j < width; ++j) a[i][j] += s.features[r][i] * s.features[r][j];
        a[i][width] += s.features[r][i] * s.time[r];
      }
    }
  }
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t k = i + 1; k < width; ++k) {
      const double factor = a[k][i] / a[i][i];
      for (std::size_t j = i; j <= width; ++j) a[k][j] -= factor * a[i][j];
    }
  }
  Vector w(width);
  for (std::size_t i = width; i-- > 0;) {
    w[i] = a[i][width];
    for (std::size_t j = i + 1; j < width; ++j) w[i] -= a[i][j] * w[j];
    w[i] /= a[i][i];
  }
  return w;
}

double kendall(const Vector& x, const Vector& y) {
  double sum = 0, pairs = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double product = (x[i] - x[j]) * (y[i] - y[j]);
      sum += product > 0 ? 1 : product < 0 ? -1 : 0;
      pairs += 1;
    }
  }
  return sum / pairs;
}

// Mean Kendall tau on the valid and test graphs of a regression on the train graphs.
double tau_on_unseen(std::string_view source, bool with_neighbours) {
  const Preset preset = preset_named("demo");
  const Plan& plan = source == "xla" ? *preset.xla : *preset.nlp;
  std::vector<Sample> train, unseen;
  for (const LayoutJob& job : layout_jobs(plan, source, 1)) {
    Sample s = sample(job, with_neighbours);
    centre(s);
    (job.split == 0 ? train : unseen).push_back(std::move(s));
  }
  const Vector w = ridge(train, 1e-3);
  double mean = 0;
  for (const Sample& s : unseen) {
    Vector prediction;
    for (const Vector& row : s.features) {
      prediction.push_back(std::inner_product(row.begin(), row.end(), w.begin(), 0.0));
    }
    mean += kendall(prediction, s.time) / static_cast<double>(unseen.size());
  }
  return mean;
}

class SynthLearnability : public ::testing::TestWithParam<const char*> {};

TEST_P(SynthLearnability, neighboursAreNeededToRankUnseenGraphs) {
  const double alone = tau_on_unseen(GetParam(), false);
  const double with_neighbours = tau_on_unseen(GetParam(), true);
  RecordProperty("tau_alone", std::to_string(alone));
  RecordProperty("tau_with_neighbours", std::to_string(with_neighbours));
  EXPECT_LT(alone, 0.7);
  EXPECT_GT(with_neighbours, alone + 0.1);
  EXPECT_GT(with_neighbours, 0.7);
}

INSTANTIATE_TEST_SUITE_P(Sources, SynthLearnability, ::testing::Values("xla", "nlp"));

}  // namespace
}  // namespace tpudist::synth
