#include "models/operators/linear_rows.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/error.hpp"
#include "models/kernels/threads.hpp"

namespace tpudist {
namespace {

// Several blocks of rows, so that threads of the pool take part, whose grad mode is their own.
TEST(LinearRows, EqualsMatmulInSeveralThreads) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    SCOPED_TRACE(at::toString(type));
    ThreadPool pool(3, use_one_thread_per_worker);
    at::manual_seed(1);
    const auto random = [&](at::IntArrayRef sizes) {
      return at::randn(sizes, at::TensorOptions(type)).set_requires_grad(true);
    };
    const at::Tensor x = random({1100, 2, 5}), weight = random({2, 5, 7}), bias = random({2, 7});
    const at::Tensor y = linear_rows(x, weight, bias, pool);
    const at::Tensor expected = at::einsum("rmi,mio->rmo", {x, weight}) + bias;
    const double tolerance = type == at::kDouble ? 1e-12 : 1e-3;
    EXPECT_LE((y - expected).abs().max().item<double>(), tolerance);
    const at::Tensor direction = at::randn(y.sizes(), at::TensorOptions(type));
    const auto gradients = torch::autograd::grad({y}, {x, weight, bias}, {direction});
    const auto wanted = torch::autograd::grad({expected}, {x, weight, bias}, {direction});
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const double scale = wanted[i].abs().max().item<double>();
      EXPECT_LE((gradients[i] - wanted[i]).abs().max().item<double>(), tolerance * scale) << i;
    }
  }
}

TEST(LinearRows, TakesAPartOfALargerWeight) {
  ThreadPool pool(1);
  const at::Tensor x = at::ones({3, 1, 2}, at::kDouble),
                   all = at::arange(12, at::kDouble).view({1, 6, 2});
  const at::Tensor y = linear_rows(x, all.narrow(1, 4, 2), at::Tensor(), pool);
  EXPECT_EQ(y[0][0][0].item<double>(), 8 + 10);
  EXPECT_EQ(y[2][0][1].item<double>(), 9 + 11);
}

TEST(LinearRows, RefusesWhatDoesNotFit) {
  ThreadPool pool(1);
  EXPECT_THROW(linear_rows(at::ones({3, 1, 2}), at::ones({1, 3, 2}), at::Tensor(), pool), Error);
  EXPECT_THROW(linear_rows(at::ones({3, 2, 2}), at::ones({1, 2, 2}), at::Tensor(), pool), Error);
}

}  // namespace
}  // namespace tpudist
