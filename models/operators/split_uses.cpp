#include "models/operators/split_uses.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/operators/row_tasks.hpp"
#include "models/operators/saved_state.hpp"

namespace tpudist {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename T>
void add_rows(const std::vector<const T*>& terms, std::int64_t count, T* sum) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] = terms[0][i] + terms[1][i];
  for (std::size_t t = 2; t < terms.size(); ++t) {
    for (std::int64_t i = 0; i < count; ++i) sum[i] += terms[t][i];
  }
}

at::Tensor sum_of(const variable_list& terms, ThreadPool& pool) {
  at::Tensor sum = at::empty_like(terms[0]);
  const std::int64_t width = sum.size(1) * sum.size(2);
  for_row_blocks(pool, sum.size(0), [&](std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(sum.scalar_type(), "split_uses", [&] {
      std::vector<const scalar_t*> rows;
      for (const at::Tensor& term : terms)
        rows.push_back(term.const_data_ptr<scalar_t>() + first * width);
      add_rows(rows, count * width, sum.mutable_data_ptr<scalar_t>() + first * width);
    });
  });
  return sum;
}

class ForkRows : public torch::autograd::Function<ForkRows> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& x, std::int64_t count,
                               ThreadPool* pool) {
    context->set_materialize_grads(false);
    context->saved_data["pool"] = borrow(pool);
    variable_list uses;
    for (std::int64_t i = 0; i < count; ++i) uses.push_back(x.detach());
    return uses;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    ThreadPool& pool = borrowed<ThreadPool>(context->saved_data["pool"]);
    variable_list terms;
    for (const at::Tensor& gradient : gradients) {
      if (gradient.defined()) terms.push_back(gradient.contiguous());
    }
    at::Tensor sum;
    if (terms.size() == 1) sum = terms[0];
    if (terms.size() > 1) sum = sum_of(terms, pool);
    return {sum, {}, {}};
  }
};

}  // namespace

std::vector<at::Tensor> split_uses(const at::Tensor& x, int count, const Backend& backend) {
  if (backend.device) return std::vector<at::Tensor>(static_cast<std::size_t>(count), x);
  return ForkRows::apply(x, static_cast<std::int64_t>(count), &backend.pool);
}

}  // namespace tpudist
