#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "models/device/device_backend.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/operators/attend_nodes.hpp"
#include "models/operators/cpu_backend.hpp"
#include "models/operators/operators.hpp"
#include "tests/models/layers/property_network.hpp"
#include "tests/models/plans/make_csr.hpp"

// Every operator, forward and backward, for one or more members in a call, against a plain
// reference in double that LibTorch's autograd differentiates. Each backend's program instantiates
// the same suite.

namespace tpudist::test {

using at::Tensor;
using Tensors = std::vector<Tensor>;

enum class Where { cpu, emulated, gpu };

// A backend, the number of members of a call, and the entries of a device's chunks of rows.
struct Setting {
  Where where;
  std::int64_t members;
  std::int64_t chunk = 128;
};
inline void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.members << (setting.members == 1 ? " member" : " members") << ", chunks of "
       << setting.chunk;
}
inline std::vector<Setting> settings(const std::vector<Where>& places) {
  std::vector<Setting> all;
  for (const Where where : places) {
    for (const std::int64_t members : {1, 2, 5}) all.push_back({where, members});
    // Nearly all rows are long.
    if (where != Where::cpu) all.push_back({where, 2, 2});
  }
  return all;
}

inline void expect_near(const Tensor& actual, const Tensor& expected, at::ScalarType type,
                        const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  if (expected.numel() == 0) return;
  const double scale = std::max(1.0, expected.abs().max().item<double>());
  EXPECT_LE((actual.cpu().to(at::kDouble) - expected).abs().max().item<double>(),
            scale * (type == at::kDouble ? 1e-12 : 1e-5))
      << what;
}

// A backend with the arguments of one test's operators. Add arrays first, then call start().
class OperatorCase {
 public:
  OperatorCase(Setting setting, at::ScalarType type, Precision precision = Precision::fp32)
      : where_(setting.where),
        type_(type),
        precision_(precision),
        small_(setting.chunk < 128),
        adds_as_cpu_(setting.where == Where::emulated && !small_),
        arrays_(setting.chunk) {
    generator_.set_current_seed(7);
    for (std::int64_t m = 0; m < setting.members; ++m) members_.push_back(m);
  }

  DeviceArrays& arrays() { return arrays_; }
  void start() {
    if (where_ == Where::cpu) return;
    DeviceCopies copies(device());
    arrays_.upload(copies);
    device_ = make_device_backend(std::move(arrays_), precision_);
  }

  const Backend& backend() const { return device_ ? *device_ : cpu_; }
  at::ScalarType type() const { return type_; }
  // Whether a device must split all work into small parts.
  bool small() const { return small_; }
  // The members of the running or next call.
  const std::vector<std::int64_t>& members() const { return members_; }
  std::int64_t count() const { return static_cast<std::int64_t>(members_.size()); }
  at::Device device() const { return where_ == Where::gpu ? at::kCUDA : at::kCPU; }

  // Numbers with many equal ones, so that maxima tie and sums of a few are exact.
  Tensor rows(std::int64_t count, std::int64_t channels = 5) {
    return weights({this->count(), count, channels}).mul_(4).round_().div_(4);
  }
  Tensor weights(at::IntArrayRef sizes) {
    return at::randn(sizes, generator_, at::TensorOptions(at::kDouble));
  }

  // Compares result and gradients of `run(inputs, backend)` with those of `reference(inputs)`. The
  // bits must be the same in a second call, with other members, and with members in reverse order.
  // With `exact`, an emulated device must give the bits of the CPU if no row is long.
  template <typename Run, typename Reference>
  void expect_equal(const Tensors& inputs, const std::string& what, const Run& run,
                    const Reference& reference, bool exact = false) {
    Tensor up;
    const auto differentiated = [&](Tensors leaves, at::Device on, at::ScalarType type,
                                    const auto& function) {
      const at::AutoGradMode with_graph(true);
      const Tensor whose = at::tensor(members_, at::kLong);
      for (Tensor& leaf : leaves) {
        leaf = leaf.detach().index_select(0, whose).to(on, type, false, true);
        leaf.requires_grad_(true);
      }
      const Tensor y = function(leaves);
      if (!up.defined()) up = weights(y.sizes());
      Tensors results =
          torch::autograd::grad({y}, leaves, {up.index_select(0, whose).to(y.options())});
      results.insert(results.begin(), y.detach());
      return results;
    };
    const auto computed = [&](const Backend& backend, at::Device on) {
      return differentiated(inputs, on, type_, [&](const Tensors& in) { return run(in, backend); });
    };
    const Tensors expected = differentiated(inputs, at::kCPU, at::kDouble, reference),
                  actual = computed(backend(), device()), again = computed(backend(), device()),
                  cpu = exact && adds_as_cpu_ ? computed(cpu_, at::kCPU) : actual;
    const auto which = [&](std::size_t i) {
      return what + (i == 0 ? ": result" : ": gradient " + std::to_string(i - 1));
    };
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expect_near(actual[i], expected[i], type_, which(i));
      EXPECT_TRUE(at::equal(again[i], actual[i])) << which(i);
      EXPECT_TRUE(at::equal(cpu[i], actual[i])) << which(i) << " has other bits on the CPU";
    }
    const std::vector<std::int64_t> all = members_;
    std::vector<std::vector<std::int64_t>> calls{{all.rbegin(), all.rend()}};
    for (const std::int64_t m : all) calls.push_back({m});
    for (const auto& call : calls) {
      members_ = call;
      const Tensors own = computed(backend(), device());
      for (std::size_t i = 0; i < own.size(); ++i) {
        for (std::size_t m = 0; m < call.size(); ++m) {
          EXPECT_TRUE(at::equal(own[i][static_cast<std::int64_t>(m)], actual[i][call[m]]))
              << which(i) << " of member " << call[m] << " depends on the other members";
        }
      }
    }
    members_ = all;
  }

 private:
  Where where_;
  at::ScalarType type_;
  Precision precision_;
  bool small_, adds_as_cpu_;
  std::vector<std::int64_t> members_;
  ThreadPool pool_{3, use_one_thread_per_worker};
  CpuBackend cpu_{pool_, precision_};
  DeviceArrays arrays_;
  std::unique_ptr<const Backend> device_;
  at::Generator generator_ = at::detail::createCPUGenerator();
};

// A unit's plan, refined or dense, of a network with the layer.
class PlanCase {
 public:
  PlanCase(const std::string& layer, bool refined) : network_(layer, 0, false, pool_) {
    CounterRng random(41, refined);
    const RepeatedUnit unit = small_unit(random, 2, 3, Configurable::few);
    input_ =
        refined ? refined_unit(network_.network(), unit) : dense_unit(network_.network(), unit);
    context_ = std::make_unique<PlanContext>(plan(), network_.network().plan_shape(),
                                             std::vector<std::vector<std::uint64_t>>{});
  }
  const Plan& plan() const { return *input_.plan; }
  // The groups of the network's only layer with groups.
  const RowGroups& groups() const {
    for (const auto& groups : context_->groups) {
      if (groups) return *groups;
    }
    throw Error(ErrorKind::failed, "the plan has no groups");
  }

 private:
  ThreadPool pool_{1};
  PropertyNetwork network_;
  UnitInput input_;
  std::unique_ptr<PlanContext> context_;
};

// A random matrix with few replicas. The last neighbourhoods and sources have no entries; equal
// entries are parallel edges, which merge into a weight.
inline SparseMatrix random_matrix(std::uint64_t key, std::int64_t neighbourhoods,
                                  std::int64_t sources, std::int32_t replicas,
                                  std::int64_t entries) {
  CounterRng rng(key);
  std::vector<CsrEntry> list;
  for (std::int64_t e = 0; e < entries; ++e) {
    list.push_back({static_cast<std::int32_t>(rng.below(neighbourhoods - 2)),
                    static_cast<std::int32_t>(rng.below(sources - 2))});
  }
  SparseMatrix made;
  made.forward = make_csr(neighbourhoods, list);
  made.transposed = transpose(made.forward, sources);
  made.replicas = replicas;
  return made;
}

// The sources of a row, each repeated `weight` times.
inline std::vector<std::int64_t> sources_of(const Csr& matrix, std::int64_t row) {
  std::vector<std::int64_t> sources;
  for (std::int64_t e = matrix.begin[row]; e < matrix.begin[row + 1]; ++e)
    sources.insert(sources.end(), static_cast<std::size_t>(matrix.weight_of(e)), matrix.source[e]);
  return sources;
}

inline Tensor taken(const Tensor& x, const std::vector<std::int64_t>& rows) {
  return x.index_select(1, at::tensor(rows, at::kLong));
}

// The aggregation [M, C] of some rows [M, n, C].
inline Tensor aggregated(const Tensor& rows, Aggregation aggregation) {
  if (rows.size(1) == 0) return rows.sum(1);
  return aggregation == Aggregation::max    ? rows.amax(at::IntArrayRef{1})
         : aggregation == Aggregation::mean ? rows.mean(1)
                                            : rows.sum(1);
}

inline Tensor plain_gather(const Tensor& x, const GatherView& index) {
  if (index.is_identity()) return x;
  return taken(x, {index.index.begin(), index.index.end()});
}

inline Tensor plain_aggregate(const SparseMatrix& matrix, const Tensor& x,
                              Aggregation aggregation) {
  const Tensor blocks = x.view({x.size(0), matrix.transposed.rows(), matrix.replicas * x.size(2)});
  Tensors rows;
  for (std::int64_t row = 0; row < matrix.forward.rows(); ++row)
    rows.push_back(aggregated(taken(blocks, sources_of(matrix.forward, row)), aggregation));
  return at::stack(rows, 1).view({x.size(0), matrix.forward.rows() * matrix.replicas, x.size(2)});
}

// Calls `body` with the rows of each group and their counts [1, n, 1], and puts the results back.
template <typename Body>
Tensor for_each_group(const RowGroups& groups, const Tensor& x, const Body& body) {
  std::vector<std::int64_t> order;
  Tensors parts;
  for (std::int64_t g = 0; g < groups.groups(); ++g) {
    const std::vector<std::int64_t> own(groups.rows.source.begin() + groups.rows.begin[g],
                                        groups.rows.source.begin() + groups.rows.begin[g + 1]);
    if (own.empty()) continue;
    std::vector<double> counts;
    for (const std::int64_t row : own) counts.push_back(groups.count[row]);
    parts.push_back(body(taken(x, own), at::tensor(counts, at::kDouble).view({1, -1, 1})));
    order.insert(order.end(), own.begin(), own.end());
  }
  return taken(at::cat(parts, 1), [&] {
    std::vector<std::int64_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::int64_t>(i);
    return place;
  }());
}

inline Tensor plain_normalise(const RowGroups& groups, const Tensor& x, const Tensor& shift,
                              double eps) {
  return for_each_group(groups, x, [&](const Tensor& rows, const Tensor& counts) {
    const Tensor size = counts.sum(), mean = (counts * rows).sum(1, true) / size,
                 o = rows - (shift.defined() ? shift.unsqueeze(1) * mean : mean);
    return o / ((counts * o * o).sum(1, true) / size + eps).sqrt();
  });
}

inline Tensor plain_gate(const RowGroups& groups, const Tensor& x, const Tensor& temperature) {
  return for_each_group(groups, x, [&](const Tensor& rows, const Tensor& counts) {
    const Tensor power = (rows / temperature.view({-1, 1, 1})).exp();
    return at::cat({rows, rows * power / (counts * power).sum(1, true)}, 2);
  });
}

inline Tensor plain_pool(const Readout& readout, const Tensor& x, Aggregation aggregation) {
  Tensors configs;
  for (std::size_t k = 0; k < readout.slate_of_config.size(); ++k) {
    std::vector<std::int64_t> rows = sources_of(readout.common.forward, readout.slate_of_config[k]);
    for (const std::int64_t cell :
         sources_of(readout.scores.forward, static_cast<std::int64_t>(k))) {
      const auto own = sources_of(readout.cells.forward, cell);
      rows.insert(rows.end(), own.begin(), own.end());
    }
    configs.push_back(aggregated(taken(x, rows), aggregation));
  }
  return at::stack(configs, 1);
}

class Operators : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    use_one_thread_per_worker();
    if (GetParam().where != Where::gpu) return;
    if (!at::hasCUDA()) GTEST_SKIP() << "needs a GPU";
  }

  // body(case) in double and in float32.
  template <typename Body>
  void for_types(const Body& body) const {
    for (const auto type : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(at::toString(type));
      OperatorCase made(GetParam(), type);
      body(made);
    }
  }
  // body(case, plan) for both kinds of plans of a network with the layer.
  template <typename Body>
  void for_plans(const std::string& layer, const Body& body) const {
    for (const bool refined : {false, true}) {
      SCOPED_TRACE(refined ? "refined" : "dense");
      const PlanCase plan(layer, refined);
      for_types([&](OperatorCase& made) { body(made, plan); });
    }
  }
};

inline const std::string kBoth =
    "{layer: sage, width: 5, directions: [consumer_to_producer, producer_to_consumer]}";

TEST_P(Operators, SumOfGathered) {
  for_plans(kBoth, [](OperatorCase& made, const PlanCase& item) {
    for (const auto& layer : item.plan().layers) made.arrays().add(*layer);
    made.start();
    for (const auto& layer : item.plan().layers) {
      Tensors inputs{made.rows(layer->rows_in), made.rows(layer->rows_out)};
      for (const EdgeSet& edges : layer->edges)
        inputs.push_back(made.rows(edges.aggregate.forward.rows() * edges.aggregate.replicas));
      std::vector<GatherView> index{layer->self, {}};
      for (const EdgeSet& edges : layer->edges) index.push_back(edges.neighbourhood);
      made.expect_equal(
          inputs, "sum_of_gathered",
          [&](const Tensors& x, const Backend& backend) {
            std::vector<GatheredTerm> terms;
            for (std::size_t t = 0; t < x.size(); ++t) terms.push_back({x[t], index[t]});
            return sum_of_gathered(terms, backend);
          },
          [&](const Tensors& x) {
            Tensor sum = plain_gather(x[0], index[0]);
            for (std::size_t t = 1; t < x.size(); ++t) sum = sum + plain_gather(x[t], index[t]);
            return sum;
          },
          true);
    }
  });
}

inline std::vector<SparseMatrix> sparse_matrices() {
  std::vector<SparseMatrix> all;
  for (const std::int32_t replicas : {1, 3}) {
    all.push_back(random_matrix(1, 9, 7, replicas, 30));
    all.push_back(random_matrix(2, 300, 33, replicas, 900));  // several blocks of rows
    all.push_back(random_matrix(3, 20, 30, replicas, 25));
    all.push_back(random_matrix(4, 3, 3, replicas, 0));
  }
  // Long rows, and their transpose.
  const SparseMatrix wide = random_matrix(5, 7, 500, 2, 2000);
  all.push_back(wide);
  all.push_back({wide.transposed, wide.forward, 2});
  return all;
}

TEST_P(Operators, Aggregate) {
  const std::vector<SparseMatrix> matrices = sparse_matrices();
  for_types([&](OperatorCase& made) {
    for (const SparseMatrix& matrix : matrices) made.arrays().add(matrix);
    made.start();
    for (const SparseMatrix& matrix : matrices) {
      // Odd channels, some that take wide loads, and more than a block of the kernels has threads.
      for (const std::int64_t channels : {5, 8, matrix.forward.rows() == 9 ? 200 : 4}) {
        const Tensor x = made.rows(matrix.transposed.rows() * matrix.replicas, channels);
        for (const auto kind : {Aggregation::sum, Aggregation::mean, Aggregation::max}) {
          made.expect_equal(
              {x}, "aggregate_rows",
              [&](const Tensors& in, const Backend& backend) {
                return aggregate_rows(matrix, in[0], kind, backend);
              },
              [&](const Tensors& in) { return plain_aggregate(matrix, in[0], kind); },
              split_long_rows(matrix.transposed, 128).row.empty());
        }
      }
    }
  });
}

// Other neighbourhoods, replicas, members and channels must not see the NaN.
TEST_P(Operators, NanGoesThroughAMaxWhereItIs) {
  const SparseMatrix matrix = random_matrix(2, 40, 33, 3, 200);
  for_types([&](OperatorCase& made) {
    made.arrays().add(matrix);
    made.start();
    const std::int64_t source = matrix.forward.source[1];
    Tensor x = made.rows(33 * 3);
    const std::int64_t member = made.count() - 1;
    x.index_put_({member, source * 3 + 1, 4}, std::numeric_limits<double>::quiet_NaN());
    x = x.to(made.device(), made.type()).set_requires_grad(true);
    const at::AutoGradMode with_graph(true);
    const Tensor y = aggregate_rows(matrix, x, Aggregation::max, made.backend());
    Tensor expected = at::zeros({made.count(), 40 * 3, 5}, at::kBool);
    for (const std::int64_t row : sources_of(matrix.transposed, source))
      expected.index_put_({member, row * 3 + 1, 4}, true);
    EXPECT_TRUE(at::equal(y.isnan().cpu(), expected));
    const Tensor d_x = torch::autograd::grad({y}, {x}, {at::ones_like(y)})[0];
    EXPECT_FALSE(d_x.isnan().any().item<bool>());
  });
}

TEST_P(Operators, Linear) {
  for_types([](OperatorCase& made) {
    made.start();
    // Several blocks of rows, so that threads take part; each has a grad mode of its own.
    const Tensors inputs{made.rows(1100, 6), made.weights({made.count(), 6, 9}),
                         made.weights({made.count(), 9})};
    made.expect_equal(
        inputs, "linear_rows",
        [](const Tensors& in, const Backend& backend) {
          return linear_rows(in[0], in[1], in[2], backend);
        },
        [](const Tensors& in) { return at::bmm(in[0], in[1]) + in[2].unsqueeze(1); });
    // With a part of a larger weight, and without a bias.
    made.expect_equal(
        {made.rows(3, 4), inputs[1]}, "linear_rows of a part",
        [](const Tensors& in, const Backend& backend) {
          return linear_rows(in[0], in[1].narrow(1, 2, 4), Tensor(), backend);
        },
        [](const Tensors& in) { return at::bmm(in[0], in[1].narrow(1, 2, 4)); });
    const Backend& backend = made.backend();
    EXPECT_THROW(linear_rows(at::ones({1, 3, 2}), at::ones({1, 3, 2}), Tensor(), backend), Error);
    EXPECT_THROW(linear_rows(at::ones({2, 3, 2}), at::ones({1, 2, 2}), Tensor(), backend), Error);
  });
}

// x with the digits of this precision, in double. The numbers are not subnormal.
inline Tensor rounded_to(Precision precision, const Tensor& x) {
  const auto [mantissa, exponent] = at::frexp(x.detach().cpu().to(at::kDouble));  // 0.5 to 1
  const double unit = std::ldexp(1.0, precision == Precision::tf32 ? -11 : -8);
  const Tensor units = mantissa / unit;
  const Tensor whole = precision == Precision::tf32
                           ? at::sign(units) * (units.abs() + 0.5).floor()  // ties away from 0
                           : units.round();                                 // ties to even
  return at::ldexp(whole * unit, exponent);
}

// Operands are rounded, sums and the bias are not.
inline void expect_linear_of_rounded(const Setting& setting, Precision precision) {
  OperatorCase made(setting, at::kFloat, precision);
  made.start();
  const at::AutoGradMode with_graph(true);
  const auto leaf = [&](const Tensor& x) {
    return x.to(made.device(), at::kFloat).set_requires_grad(true);
  };
  const std::int64_t members = made.count();
  const Tensor x = leaf(made.weights({members, 300, 38})),
               weight = leaf(made.weights({members, 38, 9})),
               bias = leaf(made.weights({members, 9}));
  const Tensor y = linear_rows(x, weight, bias, made.backend());
  const Tensor up = made.weights(y.sizes()).to(y.options());
  const Tensors gradients = torch::autograd::grad({y}, {x, weight, bias}, {up});
  const auto exact = [](const Tensor& tensor) { return tensor.detach().cpu().to(at::kDouble); };
  const auto compare = [&](const Tensor& actual, const Tensor& a, const Tensor& b,
                           const std::string& what) {
    const Tensor expected = at::bmm(rounded_to(precision, a), rounded_to(precision, b));
    if (setting.where == Where::gpu && precision == Precision::tf32) {
      // The rounding of a GPU is not documented; it may truncate.
      const Tensor error = (actual.cpu().to(at::kDouble) - expected).abs();
      const Tensor sizes = at::bmm(exact(a).abs(), exact(b).abs());
      EXPECT_LE((error / sizes).max().item<double>(), std::ldexp(1.0, -9)) << what;
    } else {
      expect_near(actual, expected, at::kFloat, what);
    }
    const Tensor unrounded = at::bmm(exact(a), exact(b));
    const double scale = std::max(1.0, unrounded.abs().max().item<double>());
    EXPECT_GE((actual.cpu().to(at::kDouble) - unrounded).abs().max().item<double>(), 5e-5 * scale)
        << what << " is not rounded";
  };
  compare(y.detach() - bias.detach().unsqueeze(1), x, weight, "result");
  compare(gradients[0], up, weight.transpose(1, 2), "d x");
  compare(gradients[1], x.transpose(1, 2), up, "d weight");
  expect_near(gradients[2], exact(up).sum(1), at::kFloat, "d bias");
}

TEST_P(Operators, LinearInTf32) {
  expect_linear_of_rounded(GetParam(), Precision::tf32);
}

TEST_P(Operators, LinearInBf16) {
  expect_linear_of_rounded(GetParam(), Precision::bf16);
}

TEST_P(Operators, Map) {
  for_types([](OperatorCase& made) {
    made.start();
    const RowFunction function = [](const Tensors& rows, const Tensors& parameters) {
      return at::gelu(rows[0] * parameters[0], "none");
    };
    const Tensor x = made.rows(1100, 6);
    made.expect_equal(
        {x, made.weights({made.count(), 6})}, "map_rows",
        [&](const Tensors& in, const Backend& backend) {
          return map_rows(function, {in[0]}, {in[1]}, backend);
        },
        [&](const Tensors& in) { return function({in[0]}, {in[1].unsqueeze(1)}); });
    // Differentiated by hand, where the operator overwrites values that autograd would have kept.
    made.expect_equal(
        {x, made.rows(1100, 6)}, "map_rows by hand",
        [](const Tensors& in, const Backend& backend) {
          return map_rows(
              [](const auto& rows, Tensor& y) { at::sigmoid_out(y, rows[1]).mul_(rows[0]); },
              [](const auto& rows, const Tensor& d_y, auto& d_rows) {
                const Tensor gate = at::sigmoid(rows[1]);
                at::mul_out(d_rows[0], d_y, gate);
                at::sigmoid_backward_out(d_rows[1], d_y * rows[0], gate);
              },
              in, 6, backend);
        },
        [](const Tensors& in) { return at::sigmoid(in[1]) * in[0]; });
    // One plane for all members, and one for each member.
    const Tensor shared = made.weights({1, 1100, 1}).to(made.device(), made.type());
    made.expect_equal(
        {x}, "map_rows of a shared plane",
        [&](const Tensors& in, const Backend& backend) {
          return map_rows([](const auto& rows, const auto&) { return rows[0] * rows[1]; },
                          {in[0], shared}, {}, backend);
        },
        [&](const Tensors& in) { return in[0] * shared.cpu().to(at::kDouble); });
    EXPECT_THROW(map_rows(function, {at::ones({1, 0, 6})}, {at::ones({1, 6})}, made.backend()),
                 Error);
  });
}

TEST_P(Operators, SplitAndJoin) {
  for_types([](OperatorCase& made) {
    made.start();
    made.expect_equal(
        {made.rows(700, 6), made.rows(700, 2)}, "split_uses and join_channels",
        [](const Tensors& in, const Backend& backend) {
          const auto uses = split_uses(in[0], 4, backend);  // one use stays unused
          return join_channels({uses[0], in[1], uses[1], uses[3]}, backend);
        },
        [](const Tensors& in) {
          return at::cat({in[0], in[1], in[0], in[0]}, 2);
        });
    made.expect_equal(
        {made.rows(4)}, "split_uses of one use",
        [](const Tensors& in, const Backend& backend) {
          return split_uses(in[0], 2, backend)[1] * 3;
        },
        [](const Tensors& in) { return in[0] * 3; });
  });
}

// The masks must be those of the CPU in float32, whose tests check what they depend on.
TEST_P(Operators, Drop) {
  std::vector<std::uint64_t> row_keys;
  for (std::uint64_t i = 0; i < 300; ++i) row_keys.push_back(0x9E3779B97F4A7C15ull * (i % 90 + 1));
  const std::vector<std::uint64_t> member_keys{3, 1ull << 40, 77, 5, 6};
  ThreadPool pool(1);
  const CpuBackend cpu(pool);
  for_types([&](OperatorCase& made) {
    made.arrays().add(row_keys);
    made.start();
    for (const Dropped dropped : {Dropped::channels, Dropped::rows}) {
      const auto drop = [&](const Tensor& x, const Backend& backend) {
        std::vector<std::uint64_t> keys;
        for (const std::int64_t m : made.members()) keys.push_back(member_keys[m]);
        return drop_rows(x, dropped, 0.375, keys, 2, row_keys, backend);
      };
      const Tensor kept = drop(at::ones({made.count(), 300, 131}), cpu) > 0;
      EXPECT_NEAR(kept.to(at::kFloat).mean().item<double>(), 0.625, 0.05);
      const double scale = dropped == Dropped::rows ? 1 : 1 / 0.625;
      made.expect_equal(
          {made.rows(300, 131)}, "drop_rows",
          [&](const Tensors& in, const Backend& backend) { return drop(in[0], backend); },
          [&](const Tensors& in) { return in[0] * kept * scale; }, true);
    }
    EXPECT_THROW(drop_rows(at::ones({5, 299, 2}), Dropped::rows, 0.5, member_keys, 2, row_keys,
                           made.backend()),
                 Error);
  });
}

TEST_P(Operators, NormaliseGroups) {
  for_plans("{layer: graph_norm}", [](OperatorCase& made, const PlanCase& item) {
    const RowGroups& groups = item.groups();
    made.arrays().add(groups);
    made.start();
    const Tensor x = made.rows(static_cast<std::int64_t>(groups.count.size()));
    for (const Tensors& inputs : {Tensors{x}, Tensors{x, made.weights({made.count(), 5})}}) {
      const auto shift = [](const Tensors& in) { return in.size() > 1 ? in[1] : Tensor(); };
      made.expect_equal(
          inputs, "normalise_groups",
          [&](const Tensors& in, const Backend& backend) {
            return normalise_groups(in[0], shift(in), 0.0625, groups, backend);
          },
          [&](const Tensors& in) { return plain_normalise(groups, in[0], shift(in), 0.0625); });
    }
  });
}

TEST_P(Operators, SoftmaxGate) {
  for_plans("{layer: config_attention}", [](OperatorCase& made, const PlanCase& item) {
    const RowGroups& groups = item.groups();
    made.arrays().add(groups);
    made.start();
    made.expect_equal(
        {made.rows(static_cast<std::int64_t>(groups.count.size())),
         at::tensor({0.5, -1.5, 2.0, 1.0, 0.25}, at::kDouble).narrow(0, 0, made.count())},
        "softmax_gate",
        [&](const Tensors& in, const Backend& backend) {
          return softmax_gate(in[0], in[1], groups, backend);
        },
        [&](const Tensors& in) { return plain_gate(groups, in[0], in[1]); });
  });
}

// Room for a few rows of a group, or for some groups of two heads and five members.
inline std::int64_t small_chunks(std::size_t layer) {
  return layer % 2 == 0 ? 40 : 20'000;
}

// Two heads of 2 and of 3 channels, on each plan layer's own neighbours.
TEST_P(Operators, AttendNodes) {
  for_plans("{layer: self_attention, width: 5}", [](OperatorCase& made, const PlanCase& item) {
    std::vector<const PlanLayer*> layers;
    for (const auto& layer : item.plan().layers) {
      if (layer->edges.size() == 3) layers.push_back(layer.get());
    }
    ASSERT_FALSE(layers.empty());
    std::vector<std::unique_ptr<NodeAttention>> attentions;
    for (const PlanLayer* layer : layers) {
      NodeAttention& own =
          *attentions.emplace_back(std::make_unique<NodeAttention>(*layer, 0.25, made.type()));
      made.arrays().add(own);
      if (made.small()) own.padded_floats = small_chunks(attentions.size());
    }
    made.start();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const PlanLayer& layer = *layers[i];
      // w of every row after and every row before, 0 between two configurations.
      const auto sources = [](const EdgeSet& edges, std::int64_t row) {
        std::vector<std::int64_t> rows;
        const std::int64_t of = edges.neighbourhood(row), replicas = edges.aggregate.replicas;
        for (const std::int64_t source : sources_of(edges.aggregate.forward, of / replicas))
          rows.push_back(source * replicas + of % replicas);
        return rows;
      };
      const Tensor weights = at::zeros({layer.rows_out, layer.rows_in}, at::kDouble);
      for (std::int64_t row = 0; row < layer.rows_out; ++row) {
        for (std::size_t set = 0; set < 3; ++set) {
          for (const std::int64_t source : sources(layer.edges[set], row))
            weights[row][source] += set == 0 ? 0.25 : 0.75;
        }
      }
      made.expect_equal(
          {made.rows(layer.rows_out, 4), made.rows(layer.rows_in, 4), made.rows(layer.rows_in, 6)},
          "attend_nodes",
          [&](const Tensors& in, const Backend& backend) {
            return attend_nodes(in[0], in[1], in[2], *attentions[i], 2, backend);
          },
          [&](const Tensors& in) {
            const auto heads = [](const Tensor& x) {
              return x.unflatten(2, {2, -1}).transpose(1, 2);
            };
            const Tensor powers =
                (at::matmul(heads(in[0]), heads(in[1]).transpose(2, 3)) / std::sqrt(2.0)).exp() *
                weights;
            return at::matmul(powers / powers.sum(3, true), heads(in[2]))
                .transpose(1, 2)
                .flatten(2);
          });
    }
  });
}

// Two heads of 2 and of 3 channels; rows before in one and in several groups, of several nodes.
TEST_P(Operators, AttendLinearly) {
  int apart = 0, shared = 0, merged = 0;
  for_plans("{layer: graph_norm}", [&](OperatorCase& made, const PlanCase& item) {
    std::vector<const PlanLayer*> layers;
    std::vector<std::unique_ptr<NodeAttention>> attentions;
    for (const auto& layer : item.plan().layers) {
      if (layer->edges.size() != 1 || layer->edges[0].neighbourhood.is_identity()) continue;
      layers.push_back(layer.get());
      NodeAttention& own =
          *attentions.emplace_back(std::make_unique<NodeAttention>(*layer, 1, made.type()));
      made.arrays().add(own);
      if (made.small()) own.padded_floats = small_chunks(attentions.size());
      ++(own.apart ? apart : shared);
      merged += own.merged;
    }
    ASSERT_FALSE(layers.empty());
    made.start();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const PlanLayer& layer = *layers[i];
      const EdgeSet& nodes = layer.edges[0];
      made.expect_equal(
          {made.rows(layer.rows_out, 4), made.rows(layer.rows_in, 4), made.rows(layer.rows_in, 6)},
          "attend_linearly",
          [&](const Tensors& in, const Backend& backend) {
            return attend_linearly(in[0], in[1], in[2], *attentions[i], 2, backend);
          },
          [&](const Tensors& in) {
            const auto heads = [](const Tensor& x, std::int64_t width) {
              return x.unflatten(2, {2, width});
            };
            const Tensor q = heads(at::elu(in[0]) + 1, 2), k = heads(at::elu(in[1]) + 1, 2),
                         v = heads(in[2], 3);
            const auto of_rows = [&](const Tensor& x) {
              return plain_gather(plain_aggregate(nodes.aggregate, x.flatten(2), Aggregation::sum),
                                  nodes.neighbourhood);
            };
            const Tensor s = of_rows((k.unsqueeze(4) * v.unsqueeze(3)).flatten(2, 4)),
                         z = of_rows(k);
            const Tensor sums = (q.unsqueeze(4) * s.unflatten(2, {2, 2, 3})).sum(3);
            return (sums / ((q * heads(z, 2)).sum(3, true) + 1e-6)).flatten(2);
          });
    }
  });
  EXPECT_GT(apart, 0);
  EXPECT_GT(shared, 0);
  EXPECT_GT(merged, 0);
}

TEST_P(Operators, Pool) {
  for_plans(kBoth, [](OperatorCase& made, const PlanCase& item) {
    const Plan& plan = item.plan();
    made.arrays().add(plan.readout);
    made.start();
    for (const auto kind : {Aggregation::sum, Aggregation::mean, Aggregation::max}) {
      made.expect_equal(
          {made.rows(plan.rows(plan.layers.size()))}, "pool_rows",
          [&](const Tensors& x, const Backend& backend) {
            return pool_rows(x[0], plan.readout, kind, backend);
          },
          [&](const Tensors& x) { return plain_pool(plan.readout, x[0], kind); });
    }
  });
}

// Means over the needed part of a plan also count the nodes that the part leaves out.
TEST_P(Operators, MeansCountNodesThatAreLeftOut) {
  for_plans(kBoth, [](OperatorCase& made, const PlanCase& item) {
    Readout readout = item.plan().readout;
    readout.left_out.assign(static_cast<std::size_t>(readout.common.forward.rows()), 4);
    made.arrays().add(readout);
    made.start();
    made.expect_equal(
        {made.rows(item.plan().rows(item.plan().layers.size()))}, "pool_rows",
        [&](const Tensors& x, const Backend& backend) {
          return pool_rows(x[0], readout, Aggregation::mean, backend);
        },
        [&](const Tensors& x) {
          const Tensor sums = plain_pool(readout, x[0], Aggregation::sum),
                       counts = plain_pool(readout, at::ones_like(x[0]), Aggregation::sum) + 4;
          return sums / counts;
        });
  });
}

// A member's product is then the same BLAS call, whatever other members there are.
TEST_P(Operators, GivePlanesAtMultiplesOf256Bytes) {
  std::vector<std::uint64_t> row_keys(7);
  for_types([&](OperatorCase& made) {
    made.arrays().add(row_keys);
    made.start();
    const auto given = [&](std::int64_t channels) {
      return made.rows(7, channels).to(made.device(), made.type()).set_requires_grad(true);
    };
    const auto expect_planes = [&](const Tensor& x, const std::string& what) {
      const std::int64_t bytes = static_cast<std::int64_t>(x.element_size());
      for (std::int64_t m = 0; m < x.size(0); ++m) {
        EXPECT_TRUE(x[m].is_contiguous()) << what;
        EXPECT_EQ(x[m].storage_offset() * bytes % 256, 0) << what;
      }
      EXPECT_TRUE(as_planes(x).is_same(x)) << what;
    };
    const at::AutoGradMode with_graph(true);
    const Backend& backend = made.backend();
    const Tensor x = given(5), y = given(3),
                 weight = made.weights({made.count(), 5, 3}).to(made.device(), made.type());
    expect_planes(as_planes(x), "a copy");
    expect_planes(linear_rows(x, weight, Tensor(), backend), "linear_rows");
    expect_planes(sum_of_gathered({{x, {}}, {x, {}}}, backend), "sum_of_gathered");
    expect_planes(join_channels({x, y}, backend), "join_channels");
    const std::vector<std::uint64_t> keys(static_cast<std::size_t>(made.count()), 3);
    expect_planes(drop_rows(x, Dropped::channels, 0.5, keys, 1, row_keys, backend), "drop_rows");
    const auto twice = [](const auto& rows, const auto&) { return rows[0] * 2; };
    const Tensor mapped = map_rows(twice, {x}, {}, backend);
    expect_planes(mapped, "map_rows");
    const Tensor joined = join_channels(split_uses(as_planes(mapped), 2, backend), backend);
    expect_planes(torch::autograd::grad({joined}, {mapped}, {at::ones_like(joined)})[0],
                  "the gradient of split_uses");
  });
}

TEST_P(Operators, OfADeviceNeedTheirArraysThere) {
  if (GetParam().where == Where::cpu) return;
  const PlanCase item(kBoth, true);
  OperatorCase made(GetParam(), at::kFloat);
  for (const auto& layer : item.plan().layers) made.arrays().add(*layer);
  made.arrays().add(item.plan().readout);
  made.start();
  const Plan plan = item.plan();  // the same numbers at other places
  const auto rows = [&](std::int64_t count) {
    return made.rows(count).to(made.device(), at::kFloat);
  };
  EXPECT_THROW(pool_rows(rows(plan.rows(plan.layers.size())), plan.readout, Aggregation::sum,
                         made.backend()),
               Error);
  const PlanLayer layer = *plan.layers[0];
  EXPECT_THROW(aggregate_rows(layer.edges[0].aggregate, rows(layer.rows_in), Aggregation::sum,
                              made.backend()),
               Error);
}

}  // namespace tpudist::test
