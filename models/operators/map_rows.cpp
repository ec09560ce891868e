#include "models/operators/map_rows.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "core/error.hpp"
#include "models/kernels/threads.hpp"
#include "models/operators/row_tasks.hpp"
#include "models/operators/saved_state.hpp"

namespace tpudist {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::vector<at::Tensor> block_of(const std::vector<at::Tensor>& rows, std::int64_t first,
                                 std::int64_t count) {
  std::vector<at::Tensor> block;
  for (const at::Tensor& input : rows)
    block.push_back(input.defined() ? input.narrow(0, first, count) : input);
  return block;
}

// The tensors that a backward pass of `function` needs, split in inputs and parameters.
struct Saved {
  std::vector<at::Tensor> rows, parameters;
};

// Runs a block again with a graph of its own and writes the inputs' gradients into `d_rows`.
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
    parameters.push_back(parameter.detach().requires_grad_(parameter.is_floating_point()));
    leaves.push_back(parameters.back());
  }
  at::Tensor result;
  {
    const at::AutoGradMode with_graph(true);
    result = function(rows, parameters);
  }
  variable_list gradients = torch::autograd::grad(
      {result}, leaves, {gradient.narrow(0, first, count)}, false, false, /*allow_unused=*/true);
  std::size_t next = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!d_rows[i].defined()) continue;
    const at::Tensor& own = gradients[next++];
    at::Tensor target = d_rows[i].narrow(0, first, count);
    if (own.defined()) {
      target.copy_(own);
    } else {
      target.zero_();
    }
  }
  return {gradients.begin() + static_cast<std::ptrdiff_t>(next), gradients.end()};
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

// Runs the function on all rows, without a graph. The first block tells the shape of the result.
at::Tensor map_all(const RowFunction& function, const variable_list& rows,
                   const variable_list& parameters, ThreadPool& pool) {
  const std::int64_t count = rows.front().size(0);
  const at::NoGradGuard no_graph;
  const at::Tensor first = function(block_of(rows, 0, std::min(kTaskRows, count)), parameters);
  if (count <= kTaskRows) return first;
  std::vector<std::int64_t> sizes = first.sizes().vec();
  sizes[0] = count;
  const at::Tensor result = at::empty(sizes, first.options());
  result.narrow(0, 0, kTaskRows).copy_(first);
  for_row_blocks(pool, count - kTaskRows, [&](std::int64_t begin, std::int64_t size) {
    use_one_thread_per_worker();
    const at::NoGradGuard task_no_graph;
    begin += kTaskRows;
    result.narrow(0, begin, size).copy_(function(block_of(rows, begin, size), parameters));
  });
  return result;
}

class MapRows : public torch::autograd::Function<MapRows> {
 public:
  static at::Tensor forward(AutogradContext* context, at::TensorList row_list,
                            at::TensorList parameter_list,
                            std::shared_ptr<const RowFunction> function, ThreadPool* pool) {
    const variable_list rows = row_list.vec(), parameters = parameter_list.vec();
    const at::Tensor result = map_all(*function, rows, parameters, *pool);
    variable_list saved = rows;
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    context->save_for_backward(saved);
    context->saved_data["inputs"] = static_cast<std::int64_t>(rows.size());
    context->saved_data["pool"] = borrow(pool);
    context->saved_data["function"] = keep(std::move(function));
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const std::size_t inputs = static_cast<std::size_t>(context->saved_data["inputs"].toInt());
    ThreadPool& pool = borrowed<ThreadPool>(context->saved_data["pool"]);
    const auto kept_function = kept<RowFunction>(context->saved_data["function"]);
    const RowFunction& function = *kept_function;
    variable_list all = context->get_saved_variables();
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(inputs);
    const Saved saved{{all.begin(), middle}, {middle, all.end()}};
    const at::Tensor gradient = gradients[0].contiguous();
    const std::int64_t count = gradient.size(0);

    std::vector<at::Tensor> d_rows(inputs);
    for (std::size_t i = 0; i < inputs; ++i) {
      if (context->needs_input_grad(i)) d_rows[i] = at::empty_like(saved.rows[i]);
    }
    const std::int64_t step = chunk_rows(count), chunks = (count + step - 1) / step;
    std::vector<std::vector<at::Tensor>> partial(static_cast<std::size_t>(chunks));
    pool.parallel_for(chunks, [&](std::int64_t chunk) {
      use_one_thread_per_worker();
      const std::int64_t end = std::min(count, (chunk + 1) * step);
      for (std::int64_t first = chunk * step; first < end; first += kTaskRows) {
        add_in_order(partial[static_cast<std::size_t>(chunk)],
                     backward_of_block(function, saved, gradient, first,
                                       std::min(kTaskRows, end - first), d_rows));
      }
    });
    std::vector<at::Tensor> d_parameters(saved.parameters.size());
    for (const std::vector<at::Tensor>& own : partial) add_in_order(d_parameters, own);

    variable_list result = d_rows;
    result.insert(result.end(), d_parameters.begin(), d_parameters.end());
    result.resize(result.size() + 2);  // the function and the pool
    return result;
  }
};

// Where the gradient is written by hand.
class MapRowsByHand : public torch::autograd::Function<MapRowsByHand> {
 public:
  static at::Tensor forward(AutogradContext* context, at::TensorList row_list,
                            const RowFunction* function,
                            std::shared_ptr<const RowGradient> gradient, const Backend& backend) {
    const variable_list rows = row_list.vec();
    context->save_for_backward(rows);
    keep_backend(context, backend);
    context->saved_data["gradient"] = keep(std::move(gradient));
    return backend.device ? (*function)(rows, {}) : map_all(*function, rows, {}, backend.pool);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Backend backend = kept_backend(context);
    const auto gradient = kept<RowGradient>(context->saved_data["gradient"]);
    const variable_list rows = context->get_saved_variables();
    const at::Tensor d_result = gradients[0].contiguous();
    variable_list d_rows(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (context->needs_input_grad(i)) d_rows[i] = at::empty_like(rows[i]);
    }
    if (backend.device) {
      (*gradient)(rows, d_result, d_rows);
    } else {
      for_row_blocks(backend.pool, d_result.size(0), [&](std::int64_t first, std::int64_t count) {
        use_one_thread_per_worker();
        const at::NoGradGuard no_graph;
        std::vector<at::Tensor> targets = block_of(d_rows, first, count);
        (*gradient)(block_of(rows, first, count), d_result.narrow(0, first, count), targets);
      });
    }
    d_rows.resize(rows.size() + 3);
    return d_rows;
  }
};

void require_rows(const std::vector<at::Tensor>& rows) {
  if (rows.empty() || rows.front().size(0) == 0)
    throw Error(ErrorKind::failed, "map_rows: there are no rows");
}

}  // namespace

at::Tensor map_rows(const RowFunction& function, const RowGradient& gradient,
                    const std::vector<at::Tensor>& rows, const Backend& backend) {
  require_rows(rows);
  return MapRowsByHand::apply(at::TensorList(rows), &function,
                              std::make_shared<const RowGradient>(gradient), backend);
}

at::Tensor map_rows(const RowFunction& function, const std::vector<at::Tensor>& rows,
                    const std::vector<at::Tensor>& parameters, const Backend& backend) {
  require_rows(rows);
  if (backend.device) return function(rows, parameters);
  return MapRows::apply(at::TensorList(rows), at::TensorList(parameters),
                        std::make_shared<const RowFunction>(function), &backend.pool);
}

at::Tensor join_channels(const std::vector<at::Tensor>& rows, const Backend& backend) {
  return map_rows([](const auto& parts, const auto&) { return at::cat(parts, 2); },
                  [](const auto& parts, const at::Tensor& d_result, auto& d_parts) {
                    std::int64_t first = 0;
                    for (std::size_t i = 0; i < parts.size(); ++i) {
                      const std::int64_t channels = parts[i].size(2);
                      if (d_parts[i].defined())
                        d_parts[i].copy_(d_result.narrow(2, first, channels));
                      first += channels;
                    }
                  },
                  rows, backend);
}

}  // namespace tpudist
