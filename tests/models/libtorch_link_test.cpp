#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#ifndef TPUDIST_NO_CUDA
#include <nccl.h>
#endif

namespace {

TEST(LibTorchLink, MultipliesSmallMatrices) {
  const at::Tensor product = at::mm(at::ones({2, 3}), at::ones({3, 4}));
  EXPECT_TRUE(at::equal(product, at::full({2, 4}, 3.0f)));
}

#ifndef TPUDIST_NO_CUDA
// A second NCCL in the process, or one of another version, would show here.
TEST(LibTorchLink, LoadsTheNcclOfTheHeader) {
  int version = 0;
  ASSERT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(version, NCCL_VERSION_CODE);
}
#endif

}  // namespace
