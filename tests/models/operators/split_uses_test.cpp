#include "models/operators/split_uses.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "models/kernels/threads.hpp"

namespace tpudist {
namespace {

using torch::autograd::grad;

// Several blocks of rows, so that threads of the pool take part.
TEST(ForkRows, AddsTheGradientsOfAllUses) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    ThreadPool pool(3, use_one_thread_per_worker);
    const at::Tensor x = at::randn({700, 2, 3}, at::TensorOptions(type)).set_requires_grad(true);
    const auto uses = split_uses(x, 3, pool);
    ASSERT_EQ(uses.size(), 3u);
    for (const at::Tensor& use : uses) EXPECT_TRUE(use.equal(x));
    const at::Tensor y = uses[0] * 2 + uses[1] * uses[2];
    const at::Tensor d_x = grad({y.sum()}, {x})[0];
    const double tolerance = type == at::kDouble ? 1e-14 : 1e-5;
    EXPECT_LE((d_x - (2 * x.detach() + 2)).abs().max().item<double>(), tolerance);
  }
}

TEST(ForkRows, PassesOverUsesWithoutAGradient) {
  ThreadPool pool(1);
  const at::Tensor x = at::ones({4, 1, 2}, at::kDouble).set_requires_grad(true);
  const auto uses = split_uses(x, 2, pool);
  EXPECT_TRUE(grad({(uses[1] * 3).sum()}, {x})[0].equal(at::full_like(x, 3)));
}

}  // namespace
}  // namespace tpudist
