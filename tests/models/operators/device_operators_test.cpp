// Every operator on a device against the same operator on the CPU, forward and backward, for three
// members in one call. The device is the emulation of tests/cuda_emulation: the kernels run on the
// CPU, and so do ATen's operations.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/error.hpp"
#include "models/operators/drop_rows.hpp"
#include "models/operators/kernel_operators.hpp"
#include "models/operators/linear_rows.hpp"
#include "models/operators/map_rows.hpp"
#include "models/operators/normalise_groups.hpp"
#include "models/operators/pool_rows.hpp"
#include "models/operators/softmax_gate.hpp"
#include "models/operators/sparse_rows.hpp"
#include "models/operators/split_uses.hpp"
#include "tests/models/layers/property_network.hpp"

namespace tpudist {
namespace {

using namespace test;
using at::Tensor;

constexpr std::int64_t kMembers = 3;

// How closely two results must agree: in all bits where both add the same terms in the same order.
enum class Agreement { bits, rounding };

void expect_agree(const Tensor& device, const Tensor& cpu, Agreement agreement, const char* what) {
  ASSERT_EQ(device.sizes(), cpu.sizes()) << what;
  ASSERT_EQ(device.scalar_type(), cpu.scalar_type()) << what;
  if (agreement == Agreement::bits) {
    EXPECT_TRUE(at::equal(device, cpu)) << what;
    return;
  }
  if (cpu.numel() == 0) return;
  const double scale = std::max(1.0, cpu.abs().max().item<double>());
  EXPECT_LE((device - cpu).abs().max().item<double>(),
            scale * (cpu.scalar_type() == at::kDouble ? 1e-12 : 1e-5))
      << what;
}

// A unit's plan with what operators take of it, on the CPU and on the emulated device.
class OperatorCase {
 public:
  OperatorCase(const std::string& layer, bool refined, at::ScalarType type)
      : network_(layer, 0, false, pool_), type_(type) {
    CounterRng random(41, refined);
    const RepeatedUnit unit = small_unit(random, 2, 3, Configurable::few);
    input_ =
        refined ? refined_unit(network_.network(), unit) : dense_unit(network_.network(), unit);
    context_ = std::make_unique<PlanContext>(plan(), network_.network().plan_shape(),
                                             std::vector<std::vector<std::uint64_t>>{});
    for (std::int64_t i = 0; i < plan().first_rows(); ++i)
      row_keys_.push_back(0x9E3779B97F4A7C15ull * static_cast<std::uint64_t>(i % 7 + 1));
    DeviceArrays arrays;
    for (const auto& plan_layer : plan().layers) arrays.add(*plan_layer);
    for (const auto& groups : context_->groups) {
      if (groups) arrays.add(*groups);
    }
    arrays.add(plan().readout);
    arrays.add(row_keys_);
    arrays.upload(at::kCPU);
    device_ = make_kernel_operators(std::move(arrays));
    generator_.set_current_seed(7);
  }

  const Plan& plan() const { return *input_.plan; }
  const PlanContext& context() const { return *context_; }
  const std::vector<std::uint64_t>& row_keys() const { return row_keys_; }
  const DeviceOperators& device() const { return *device_; }
  ThreadPool& pool() { return pool_; }

  // Numbers of which many are equal, so that maxima tie.
  Tensor rows(std::int64_t count, std::int64_t channels = 5) {
    return at::randn({count, kMembers, channels}, generator_, at::TensorOptions(type_))
        .mul_(4)
        .round_()
        .div_(4);
  }
  Tensor weights(at::IntArrayRef sizes) {
    return at::randn(sizes, generator_, at::TensorOptions(type_));
  }

  // Runs `function(inputs, backend)` on either side and compares results and gradients.
  template <typename Function>
  void expect_same(const std::vector<Tensor>& inputs, Agreement agreement, const char* what,
                   const Function& function) {
    Tensor up;
    std::vector<Tensor> expected, actual;
    for (const bool on_device : {false, true}) {
      const at::AutoGradMode with_graph(true);
      std::vector<Tensor> leaves;
      for (const Tensor& input : inputs)
        leaves.push_back(input.detach().clone().requires_grad_(true));
      const Tensor y = function(leaves, Backend(pool_, on_device ? device_.get() : nullptr));
      if (!up.defined()) up = at::randn(y.sizes(), generator_, y.options().requires_grad(false));
      std::vector<Tensor>& results = on_device ? actual : expected;
      results = torch::autograd::grad({y}, leaves, {up});
      results.insert(results.begin(), y.detach());
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE(i == 0 ? "result" : "gradient " + std::to_string(i - 1));
      expect_agree(actual[i], expected[i], agreement, what);
    }
  }

 private:
  ThreadPool pool_{2};
  PropertyNetwork network_;
  at::ScalarType type_;
  UnitInput input_;
  std::unique_ptr<PlanContext> context_;
  std::vector<std::uint64_t> row_keys_;
  std::unique_ptr<const DeviceOperators> device_;
  at::Generator generator_ = at::detail::createCPUGenerator();
};

// body(case) for both kinds of plans and both dtypes.
template <typename Body>
void for_cases(const std::string& layer, const Body& body) {
  for (const bool refined : {false, true}) {
    for (const auto type : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(std::string(refined ? "refined, " : "dense, ") + at::toString(type));
      OperatorCase made(layer, refined, type);
      body(made);
    }
  }
}

const std::string kBoth =
    "{layer: sage, width: 5, directions: [consumer_to_producer, producer_to_consumer]}";

TEST(DeviceOperators, TakeRowsAsTheCpu) {
  for_cases(kBoth, [](OperatorCase& made) {
    for (const auto& layer : made.plan().layers) {
      std::vector<Tensor> inputs{made.rows(layer->rows_in), made.rows(layer->rows_out)};
      for (const EdgeSet& edges : layer->edges)
        inputs.push_back(made.rows(edges.aggregate.forward.rows() * edges.aggregate.replicas));
      made.expect_same(inputs, Agreement::bits, "sum_of_gathered",
                       [&](const std::vector<Tensor>& x, const Backend& backend) {
                         std::vector<GatheredTerm> terms{{x[0], layer->self}, {x[1], {}}};
                         for (std::size_t set = 0; set < layer->edges.size(); ++set)
                           terms.push_back({x[2 + set], layer->edges[set].neighbourhood});
                         return sum_of_gathered(terms, backend);
                       });
    }
  });
}

TEST(DeviceOperators, AggregateAsTheCpu) {
  for (const char* const sum : {"sum", "max"}) {
    const std::string layer = std::string("{layer: sage, width: 5, aggregation: ") + sum + "}";
    for_cases(layer, [&](OperatorCase& made) {
      for (const auto& plan_layer : made.plan().layers) {
        for (const EdgeSet& edges : plan_layer->edges) {
          for (const auto kind : {Aggregation::sum, Aggregation::mean, Aggregation::max}) {
            if ((kind == Aggregation::max) != (std::string(sum) == "max")) continue;
            made.expect_same({made.rows(plan_layer->rows_in)}, Agreement::bits, sum,
                             [&](const std::vector<Tensor>& x, const Backend& backend) {
                               return aggregate_rows(edges.aggregate, x[0], kind, backend);
                             });
          }
        }
      }
    });
  }
}

TEST(DeviceOperators, NormaliseAsTheCpu) {
  for_cases("{layer: graph_norm}", [](OperatorCase& made) {
    int found = 0;
    for (std::size_t i = 0; i < made.plan().layers.size(); ++i) {
      const RowGroups* const groups = made.context().groups[i].get();
      if (!groups) continue;
      ++found;
      const Tensor x = made.rows(made.plan().layers[i]->rows_out);
      const auto run = [&](const std::vector<Tensor>& in, const Backend& backend) {
        return normalise_groups(in[0], in.size() > 1 ? in[1] : Tensor(), 1e-3, *groups, backend);
      };
      made.expect_same({x}, Agreement::rounding, "plain", run);
      made.expect_same({x, made.weights({kMembers, 5})}, Agreement::rounding, "shifted", run);
    }
    EXPECT_EQ(found, 1);
  });
}

TEST(DeviceOperators, GateAsTheCpu) {
  for_cases("{layer: config_attention}", [](OperatorCase& made) {
    int found = 0;
    for (std::size_t i = 0; i < made.plan().layers.size(); ++i) {
      const RowGroups* const groups = made.context().groups[i].get();
      if (!groups) continue;
      ++found;
      const Tensor x = made.rows(made.plan().layers[i]->rows_out);
      const Tensor temperature = at::tensor({0.5, -1.5, 2.0}, x.options());
      made.expect_same({x, temperature}, Agreement::rounding, "softmax_gate",
                       [&](const std::vector<Tensor>& in, const Backend& backend) {
                         return softmax_gate(in[0], in[1], *groups, backend);
                       });
    }
    EXPECT_EQ(found, 1);
  });
}

TEST(DeviceOperators, PoolAsTheCpu) {
  for_cases(kBoth, [](OperatorCase& made) {
    for (const auto kind : {Aggregation::sum, Aggregation::mean, Aggregation::max}) {
      made.expect_same({made.rows(made.plan().rows(made.plan().layers.size()))},
                       Agreement::rounding, "pool_rows",
                       [&](const std::vector<Tensor>& x, const Backend& backend) {
                         return pool_rows(x[0], made.plan().readout, kind, backend);
                       });
    }
  });
}

TEST(DeviceOperators, DropWhatTheCpuDrops) {
  const std::vector<std::uint64_t> member_keys{3, 1ull << 40, 77};
  for_cases(kBoth, [&](OperatorCase& made) {
    made.expect_same({made.rows(made.plan().first_rows(), 131)}, Agreement::bits, "drop_rows",
                     [&](const std::vector<Tensor>& x, const Backend& backend) {
                       return drop_rows(x[0], Dropped::channels, 0.4, member_keys, 2,
                                        made.row_keys(), backend);
                     });
    made.expect_same({made.rows(made.plan().first_rows(), 131)}, Agreement::bits, "whole rows",
                     [&](const std::vector<Tensor>& x, const Backend& backend) {
                       return drop_rows(x[0], Dropped::rows, 0.4, member_keys, 2, made.row_keys(),
                                        backend);
                     });
  });
}

TEST(DeviceOperators, MultiplyAndMapAsTheCpu) {
  for_cases(kBoth, [](OperatorCase& made) {
    const std::vector<Tensor> inputs{made.rows(300, 6), made.weights({kMembers, 6, 9}),
                                     made.weights({kMembers, 9})};
    made.expect_same(inputs, Agreement::rounding, "linear_rows",
                     [](const std::vector<Tensor>& in, const Backend& backend) {
                       return linear_rows(in[0], in[1], in[2], backend);
                     });
    made.expect_same({inputs[0], inputs[1]}, Agreement::rounding, "without bias",
                     [](const std::vector<Tensor>& in, const Backend& backend) {
                       return linear_rows(in[0], in[1], Tensor(), backend);
                     });
    made.expect_same({inputs[0], made.weights({kMembers, 6})}, Agreement::rounding, "map_rows",
                     [](const std::vector<Tensor>& in, const Backend& backend) {
                       return map_rows(
                           [](const auto& rows, const auto& parameters) {
                             return at::gelu(rows[0] * parameters[0], "none");
                           },
                           {in[0]}, {in[1]}, backend);
                     });
  });
}

TEST(DeviceOperators, ForkJoinAndDifferentiateByHandAsTheCpu) {
  for_cases(kBoth, [](OperatorCase& made) {
    made.expect_same({made.rows(300, 6), made.rows(300, 2)}, Agreement::rounding, "fork and join",
                     [](const std::vector<Tensor>& in, const Backend& backend) {
                       const auto uses = split_uses(in[0], 3, backend);
                       return join_channels({uses[0], in[1], uses[1], uses[2]}, backend);
                     });
    // Writes over what autograd would have kept.
    made.expect_same(
        {made.rows(300, 6), made.rows(300, 6)}, Agreement::rounding, "by hand",
        [](const std::vector<Tensor>& in, const Backend& backend) {
          return map_rows(
              [](const auto& rows, const auto&) { return at::sigmoid(rows[1]).mul_(rows[0]); },
              [](const auto& rows, const Tensor& d_y, auto& d_rows) {
                const Tensor gate = at::sigmoid(rows[1]);
                at::mul_out(d_rows[0], d_y, gate);
                at::sigmoid_backward_out(d_rows[1], d_y * rows[0], gate);
              },
              in, backend);
        });
  });
}

TEST(DeviceOperators, NeedTheirArraysOnTheDevice) {
  OperatorCase made(kBoth, true, at::kFloat);
  const Plan plan = made.plan();  // the same numbers at other places
  const Backend backend(made.pool(), &made.device());
  const Tensor x = made.rows(plan.layers[0]->rows_in);
  EXPECT_THROW(
      pool_rows(made.rows(plan.rows(plan.layers.size())), plan.readout, Aggregation::sum, backend),
      Error);
  const PlanLayer layer = *plan.layers[0];
  EXPECT_THROW(aggregate_rows(layer.edges[0].aggregate, x, Aggregation::sum, backend), Error);
}

}  // namespace
}  // namespace tpudist
