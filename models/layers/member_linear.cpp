#include "models/layers/member_linear.hpp"

#include <ATen/ATen.h>

namespace tpudist {

at::Tensor member_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (x.size(1) == 1) return at::addmm(bias[0], x.squeeze(1), weight[0]).unsqueeze(1);
  // One product for each member, so that it gets the numbers that it gets alone.
  std::vector<at::Tensor> members;
  for (std::int64_t m = 0; m < x.size(1); ++m)
    members.push_back(at::addmm(bias[m], x.select(1, m).contiguous(), weight[m]));
  return at::stack(members, 1);
}

}  // namespace tpudist
