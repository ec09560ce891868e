#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "models/kernels/cpu_blocks.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/operators/cpu_backend.hpp"
#include "models/operators/saved_state.hpp"

namespace tpudist {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A block of rows of one member; `x` may be undefined.
at::Tensor block_of(const at::Tensor& x, std::int64_t member, std::int64_t first,
                    std::int64_t count) {
  if (!x.defined()) return x;
  return (x.size(0) == 1 ? x : x.narrow(0, member, 1)).narrow(1, first, count);
}

std::vector<at::Tensor> block_of(const std::vector<at::Tensor>& rows, std::int64_t first,
                                 std::int64_t count, std::int64_t member = 0) {
  std::vector<at::Tensor> block;
  for (const at::Tensor& input : rows) block.push_back(block_of(input, member, first, count));
  return block;
}

// The tensors that a backward pass of `function` needs, split into inputs and parameters.
struct Saved {
  std::vector<at::Tensor> rows, parameters;
};

// Runs a block again with its own autograd graph and writes the inputs' gradients into `d_rows`.
// Returns the parameters' gradients.
std::vector<at::Tensor> backward_of_block(const RowFunction& function, const Saved& saved,
                                          const at::Tensor& gradient, std::int64_t first,
                                          std::int64_t count,
                                          const std::vector<at::Tensor>& d_rows) {
  std::vector<at::Tensor> rows = block_of(saved.rows, first, count), parameters, leaves;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!d_rows[i].defined()) continue;
    rows[i] = rows[i].detach().requires_grad_(true);
    leaves.push_back(rows[i]);
  }
  for (const at::Tensor& parameter : saved.parameters) {
    // One for each row, whose gradients are then added.
    std::vector<std::int64_t> sizes = parameter.sizes().vec();
    sizes[1] = count;
    parameters.push_back(
        parameter.detach().expand(sizes).requires_grad_(parameter.is_floating_point()));
    leaves.push_back(parameters.back());
  }
  at::Tensor result;
  {
    const at::AutoGradMode with_graph(true);
    result = function(rows, parameters);
  }
  variable_list gradients = torch::autograd::grad(
      {result}, leaves, {gradient.narrow(1, first, count)}, false, false, /*allow_unused=*/true);
  std::size_t next = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!d_rows[i].defined()) continue;
    const at::Tensor& own = gradients[next++];
    at::Tensor target = d_rows[i].narrow(1, first, count);
    if (own.defined()) {
      target.copy_(own);
    } else {
      target.zero_();
    }
  }
  std::vector<at::Tensor> d_parameters;
  for (std::size_t i = 0; next < gradients.size(); ++next, ++i) {
    const at::Tensor& of_rows = gradients[next];
    d_parameters.push_back(
        of_rows.defined()
            ? rows_in_order(of_rows.flatten(2).contiguous()).view(saved.parameters[i].sizes())
            : at::Tensor());
  }
  return d_parameters;
}

// Adds up the gradients of the parameters over the blocks of one chunk, in order.
void add_in_order(std::vector<at::Tensor>& sums, const std::vector<at::Tensor>& more) {
  if (sums.empty()) sums.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (!more[i].defined()) continue;
    if (sums[i].defined()) {
      sums[i].add_(more[i]);
    } else {
      sums[i] = more[i].clone();
    }
  }
}

// Runs the function on all rows, without a graph. The first block determines the shape of the
// result.
at::Tensor map_all(const RowFunction& function, const variable_list& rows,
                   const variable_list& parameters, ThreadPool& pool) {
  const std::int64_t count = rows.front().size(1);
  const at::NoGradGuard no_graph;
  const at::Tensor first = function(block_of(rows, 0, std::min(kBlockRows, count)), parameters);
  if (count <= kBlockRows) return first;
  const at::Tensor result = rows_like(first, count);
  result.narrow(1, 0, kBlockRows).copy_(first);
  for_row_blocks(pool, count - kBlockRows, [&](std::int64_t begin, std::int64_t size) {
    use_one_thread_per_worker();
    const at::NoGradGuard task_no_graph;
    begin += kBlockRows;
    result.narrow(1, begin, size).copy_(function(block_of(rows, begin, size), parameters));
  });
  return result;
}

class MapRows : public torch::autograd::Function<MapRows> {
 public:
  static at::Tensor forward(AutogradContext* context, at::TensorList row_list,
                            at::TensorList parameter_list, const RowFunction* function,
                            ThreadPool* pool) {
    const variable_list rows = row_list.vec(), parameters = parameter_list.vec();
    const at::Tensor result = map_all(*function, rows, parameters, *pool);
    variable_list saved = rows;
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    context->save_for_backward(saved);
    keep_state(context, State{*function, rows.size(), *pool});
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const State& state = kept_state<State>(context);
    const std::size_t inputs = state.inputs;
    variable_list all = context->get_saved_variables();
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(inputs);
    const Saved saved{{all.begin(), middle}, {middle, all.end()}};
    const at::Tensor gradient = gradients[0].contiguous();
    const std::int64_t count = gradient.size(1);

    std::vector<at::Tensor> d_rows(inputs);
    for (std::size_t i = 0; i < inputs; ++i) {
      if (context->needs_input_grad(i)) d_rows[i] = rows_like(saved.rows[i]);
    }
    const std::int64_t step = chunk_rows(count), chunks = (count + step - 1) / step;
    std::vector<std::vector<at::Tensor>> partial(static_cast<std::size_t>(chunks));
    state.pool.parallel_for(chunks, [&](std::int64_t chunk) {
      use_one_thread_per_worker();
      const std::int64_t end = std::min(count, (chunk + 1) * step);
      for (std::int64_t first = chunk * step; first < end; first += kBlockRows) {
        add_in_order(partial[static_cast<std::size_t>(chunk)],
                     backward_of_block(state.function, saved, gradient, first,
                                       std::min(kBlockRows, end - first), d_rows));
      }
    });
    std::vector<at::Tensor> d_parameters(saved.parameters.size());
    for (const std::vector<at::Tensor>& own : partial) add_in_order(d_parameters, own);

    variable_list result = d_rows;
    result.insert(result.end(), d_parameters.begin(), d_parameters.end());
    result.resize(result.size() + 2);  // the function and the pool
    return result;
  }

 private:
  struct State {
    RowFunction function;
    std::size_t inputs;
    ThreadPool& pool;
  };
};

template <typename T>
void add_terms(const std::vector<const T*>& terms, std::int64_t count, T* sum) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] = terms[0][i] + terms[1][i];
  for (std::size_t t = 2; t < terms.size(); ++t) {
    for (std::int64_t i = 0; i < count; ++i) sum[i] += terms[t][i];
  }
}

}  // namespace

at::Tensor CpuBackend::map(const RowFunction& function, const std::vector<at::Tensor>& rows,
                           const std::vector<at::Tensor>& parameters) const {
  return MapRows::apply(at::TensorList(rows), at::TensorList(parameters), &function, &pool_);
}

void CpuBackend::for_tasks(std::int64_t count,
                           const std::function<void(std::int64_t)>& body) const {
  pool_.parallel_for(count, [&](std::int64_t task) {
    use_one_thread_per_worker();
    body(task);
  });
}

at::Tensor CpuBackend::map_by_hand(const RowWriter& function, const std::vector<at::Tensor>& rows,
                                   std::int64_t channels) const {
  const at::Tensor& x = rows.front();
  const at::Tensor result = make_rows(x.size(0), x.size(1), channels, x.options());
  for_row_blocks(pool_, x.size(1), [&](std::int64_t first, std::int64_t count) {
    use_one_thread_per_worker();
    const at::NoGradGuard no_graph;
    for (std::int64_t m = 0; m < result.size(0); ++m) {
      at::Tensor target = block_of(result, m, first, count);
      function(block_of(rows, first, count, m), target);
    }
  });
  return result;
}

void CpuBackend::map_gradient(const RowGradient& gradient, const std::vector<at::Tensor>& rows,
                              const at::Tensor& d_result, std::vector<at::Tensor>& d_rows) const {
  for_row_blocks(pool_, d_result.size(1), [&](std::int64_t first, std::int64_t count) {
    use_one_thread_per_worker();
    const at::NoGradGuard no_graph;
    for (std::int64_t m = 0; m < d_result.size(0); ++m) {
      std::vector<at::Tensor> targets = block_of(d_rows, first, count, m);
      gradient(block_of(rows, first, count, m), block_of(d_result, m, first, count), targets);
    }
  });
}

at::Tensor CpuBackend::sum(const std::vector<at::Tensor>& terms) const {
  at::Tensor sum = rows_like(terms[0]);
  const std::int64_t width = sum.size(2);
  for_row_blocks(pool_, sum.size(1), [&](std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(sum.scalar_type(), "sum", [&] {
      std::vector<const scalar_t*> rows(terms.size());
      for (std::int64_t m = 0; m < sum.size(0); ++m) {
        for (std::size_t t = 0; t < terms.size(); ++t)
          rows[t] = plane<scalar_t>(terms[t], m) + first * width;
        add_terms(rows, count * width, mutable_plane<scalar_t>(sum, m) + first * width);
      }
    });
  });
  return sum;
}

}  // namespace tpudist
