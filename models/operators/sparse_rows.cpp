#include "models/operators/sparse_rows.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "core/error.hpp"
#include "models/kernels/row_kernels.hpp"
#include "models/operators/device_operators.hpp"
#include "models/operators/row_tasks.hpp"
#include "models/operators/saved_state.hpp"
#include "models/operators/typed_rows.hpp"

namespace tpudist {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::int64_t width_of(const at::Tensor& x) {
  return x.size(1) * x.size(2);
}

at::Tensor rows_like(const at::Tensor& x, std::int64_t rows) {
  return at::empty({rows, x.size(1), x.size(2)}, x.options());
}

// The product of a matrix with dense rows.
at::Tensor multiply(const Csr& matrix, std::int64_t replicas, const at::Tensor& x,
                    const Backend& backend) {
  if (backend.device) return backend.device->multiply(matrix, replicas, x);
  at::Tensor y = rows_like(x, matrix.rows() * replicas);
  for_row_blocks(backend.pool, y.size(0), [&](std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "multiply", [&] {
      add_entries(matrix, replicas, first, count, x.const_data_ptr<scalar_t>(), width_of(x),
                  y.mutable_data_ptr<scalar_t>() + first * width_of(x));
    });
  });
  return y;
}

class SumOfGathered : public torch::autograd::Function<SumOfGathered> {
 public:
  static at::Tensor forward(AutogradContext* context, at::TensorList x,
                            std::vector<GatherView> index, const Backend& backend) {
    std::int64_t rows = 0;
    std::vector<std::int64_t> transposed;
    for (std::size_t t = 0; t < x.size(); ++t) {
      rows =
          index[t].is_identity() ? x[t].size(0) : static_cast<std::int64_t>(index[t].index.size());
      transposed.push_back(borrow(index[t].transposed));
    }
    context->saved_data["transposed"] = transposed;
    keep_backend(context, backend);
    if (backend.device) return backend.device->sum_of_gathered(x.vec(), index, rows);
    at::Tensor y = rows_like(x[0], rows);
    const std::int64_t width = width_of(y);
    for_row_blocks(backend.pool, rows, [&](std::int64_t first, std::int64_t count) {
      AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "sum_of_gathered", [&] {
        scalar_t* const out = y.mutable_data_ptr<scalar_t>() + first * width;
        for (std::size_t t = 0; t < x.size(); ++t) {
          const std::int32_t* const taken =
              index[t].is_identity() ? nullptr : index[t].index.data() + first;
          const scalar_t* const in = x[t].const_data_ptr<scalar_t>() + (taken ? 0 : first * width);
          if (t == 0) {
            copy_taken(in, taken, count, width, out);
          } else {
            add_taken(in, taken, count, width, out);
          }
        }
      });
    });
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Backend backend = kept_backend(context);
    const std::vector<std::int64_t> transposed = context->saved_data["transposed"].toIntVector();
    const at::Tensor d_y = gradients[0].contiguous();
    variable_list result;
    for (std::size_t t = 0; t < transposed.size(); ++t) {
      at::Tensor& own = result.emplace_back();
      if (!context->needs_input_grad(t)) continue;
      own = transposed[t] ? multiply(*reinterpret_cast<const Csr*>(transposed[t]), 1, d_y, backend)
                          : d_y;
    }
    result.resize(result.size() + 2);
    return result;
  }
};

class SumRows : public torch::autograd::Function<SumRows> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const SparseMatrix* matrix, bool mean, const Backend& backend) {
    context->saved_data["matrix"] = borrow(matrix);
    context->saved_data["mean"] = mean;
    keep_backend(context, backend);
    const at::Tensor y = multiply(matrix->forward, matrix->replicas, x, backend);
    return mean ? divided(*matrix, y, backend) : y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const SparseMatrix& matrix = borrowed<const SparseMatrix>(context->saved_data["matrix"]);
    const Backend backend = kept_backend(context);
    at::Tensor d_y = gradients[0].contiguous();
    if (context->saved_data["mean"].toBool())
      d_y = divided(matrix, backend.device ? d_y : d_y.clone(), backend);
    return {multiply(matrix.transposed, matrix.replicas, d_y, backend), {}, {}, {}};
  }

 private:
  // Each row divided by the number of its neighbours. It may overwrite `y`.
  static at::Tensor divided(const SparseMatrix& matrix, const at::Tensor& y,
                            const Backend& backend) {
    if (backend.device) return backend.device->divide_by_totals(matrix, y);
    for_row_blocks(backend.pool, y.size(0), [&](std::int64_t first, std::int64_t count) {
      AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "divide", [&] {
        divide_by_totals(matrix.forward, matrix.replicas, first, count, width_of(y),
                         y.mutable_data_ptr<scalar_t>() + first * width_of(y));
      });
    });
    return y;
  }
};

class LargestRows : public torch::autograd::Function<LargestRows> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const SparseMatrix* matrix, const Backend& backend) {
    const at::Tensor best = largest(*matrix, x, backend);
    context->save_for_backward({x, best});
    context->saved_data["matrix"] = borrow(matrix);
    keep_backend(context, backend);
    return best;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const SparseMatrix& matrix = borrowed<const SparseMatrix>(context->saved_data["matrix"]);
    const Backend backend = kept_backend(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &best = saved[1], d_y = gradients[0].contiguous();
    if (backend.device) return {backend.device->largest_gradient(matrix, x, best, d_y), {}, {}};
    return {gradient(matrix, x, best, d_y.clone(), backend.pool), {}, {}};
  }

 private:
  static at::Tensor largest(const SparseMatrix& matrix, const at::Tensor& x,
                            const Backend& backend) {
    if (backend.device) return backend.device->largest(matrix, x);
    at::Tensor best = rows_like(x, matrix.forward.rows() * matrix.replicas);
    for_row_blocks(backend.pool, best.size(0), [&](std::int64_t first, std::int64_t count) {
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "largest", [&] {
        segment_max(matrix.forward, matrix.replicas, first, count, x.const_data_ptr<scalar_t>(),
                    width_of(x), best.mutable_data_ptr<scalar_t>() + first * width_of(x));
      });
    });
    return best;
  }

  // `share` begins as the gradient of `best`.
  static at::Tensor gradient(const SparseMatrix& matrix, const at::Tensor& x,
                             const at::Tensor& best, const at::Tensor& share, ThreadPool& pool) {
    const std::int64_t width = width_of(x);
    at::Tensor d_x = at::empty_like(x);
    for_row_blocks(pool, share.size(0), [&](std::int64_t first, std::int64_t count) {
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "shares", [&] {
        share_of_largest(matrix.forward, matrix.replicas, first, count,
                         x.const_data_ptr<scalar_t>(),
                         best.const_data_ptr<scalar_t>() + first * width, width,
                         share.mutable_data_ptr<scalar_t>() + first * width);
      });
    });
    for_row_blocks(pool, x.size(0), [&](std::int64_t first, std::int64_t count) {
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "segment_max_backward", [&] {
        gradient_of_largest(matrix.transposed, matrix.replicas, first, count,
                            x.const_data_ptr<scalar_t>() + first * width,
                            best.const_data_ptr<scalar_t>(), share.const_data_ptr<scalar_t>(),
                            width, d_x.mutable_data_ptr<scalar_t>() + first * width);
      });
    });
    return d_x;
  }
};

}  // namespace

at::Tensor gather_rows(const at::Tensor& x, const GatherView& index, const Backend& backend) {
  if (index.is_identity()) return x;
  return sum_of_gathered({{x, index}}, backend);
}

at::Tensor sum_of_gathered(const std::vector<GatheredTerm>& terms, const Backend& backend) {
  variable_list x;
  std::vector<GatherView> index;
  for (const GatheredTerm& term : terms) {
    x.push_back(term.x.contiguous());
    index.push_back(term.index);
  }
  if (x.empty()) throw Error(ErrorKind::failed, "sum_of_gathered: there are no terms");
  return SumOfGathered::apply(at::TensorList(x), index, backend);
}

at::Tensor aggregate_rows(const SparseMatrix& matrix, const at::Tensor& x, Aggregation aggregation,
                          const Backend& backend) {
  if (aggregation == Aggregation::max) return LargestRows::apply(x.contiguous(), &matrix, backend);
  return SumRows::apply(x.contiguous(), &matrix, aggregation == Aggregation::mean, backend);
}

}  // namespace tpudist
