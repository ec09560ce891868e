#pragma once

#include <ATen/record_function.h>
#include <cxxabi.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <regex>
#include <set>
#include <string>

#include "tests/cuda_emulation/cuda_runtime.h"

// Counts the launches on a GPU of a network that uses the CPU as its device. For programs with the
// emulated kernels.

namespace tpudist::test {

// The work of all launches of one name. An operation is a product or a sum of two numbers. Among
// ATen's functions only products have operations here. In the project's kernels each number that is
// read counts two operations, its product with a weight and a sum. Bytes are those of operands, as
// often as they are read, and of results; kernels that sum leaves or take steps count only results.
struct LaunchWork {
  std::int64_t launches = 0;
  double operations = 0, bytes = 0;
};

// Counts, as long as it lives, the project's own kernels and the ATen operations of all threads.
// The products in a scope named tpudist::products count as one: a GPU has one call for them.
// Not counted are operations that call others, views, and allocations. One object at a time; no
// ATen operation may run on memory that is host memory on a GPU, too.
class LaunchCounter {
 public:
  LaunchCounter()
      : own_before_(emulation::launches),
        handle_(at::addGlobalCallback(at::RecordFunctionCallback(begin, end)
                                          .needsInputs(true)
                                          .needsOutputs(true)
                                          .scopes({at::RecordScope::FUNCTION}))) {
    const std::scoped_lock lock(counts().mutex, emulation::work_mutex);
    counts().of_name.clear();
    emulation::work_of.clear();
    emulation::counts_work = true;
  }
  ~LaunchCounter() {
    emulation::counts_work = false;
    at::removeCallback(handle_);
  }
  LaunchCounter(const LaunchCounter&) = delete;
  LaunchCounter& operator=(const LaunchCounter&) = delete;

  std::int64_t own_kernels() const { return emulation::launches - own_before_; }
  std::int64_t aten_operations() const {
    std::int64_t sum = 0;
    for (const auto& [name, work] : of_aten()) sum += work.launches;
    return sum;
  }
  std::int64_t launches() const { return own_kernels() + aten_operations(); }
  // By operation; products also by their role, and by inputs x outputs of their weight.
  std::map<std::string, LaunchWork> of_aten() const {
    const std::scoped_lock lock(counts().mutex);
    return counts().of_name;
  }
  // By the name of the kernel, without namespaces.
  std::map<std::string, LaunchWork> of_own_kernels() const {
    const std::scoped_lock lock(emulation::work_mutex);
    std::map<std::string, LaunchWork> all;
    for (const auto& [type, work] : emulation::work_of) {
      LaunchWork& sum = all[short_name(type.name())];
      sum.launches += work.launches;
      sum.operations += 2 * static_cast<double>(work.read_numbers);
      sum.bytes += static_cast<double>(work.read_bytes) + 4 * static_cast<double>(work.elements);
    }
    return all;
  }

 private:
  struct Counts {
    std::mutex mutex;
    std::map<std::string, LaunchWork> of_name;
  };
  struct Call : at::ObserverContext {
    Call* outer = nullptr;
    bool launched_within = false, is_products = false;
    Call* products = nullptr;  // the innermost tpudist::products around it, or itself
    std::string product;       // its role: forward, rows or weights
    double operations = 0, bytes = 0;
  };
  static Counts& counts() {
    static Counts all;
    return all;
  }
  static Call*& innermost() {
    static thread_local Call* call = nullptr;
    return call;
  }

  static bool launches_nothing(const std::string& name) {
    static const std::set<std::string> names = {"aten::as_strided",   "aten::chunk",
                                                "aten::contiguous",   "aten::detach",
                                                "aten::detach_",      "aten::empty",
                                                "aten::empty_like",   "aten::empty_strided",
                                                "aten::expand",       "aten::expand_as",
                                                "aten::narrow",       "aten::numpy_T",
                                                "aten::permute",      "aten::requires_grad_",
                                                "aten::reshape",      "aten::resolve_conj",
                                                "aten::resolve_neg",  "aten::resize_",
                                                "aten::select",       "aten::slice",
                                                "aten::split",        "aten::split_with_sizes",
                                                "aten::squeeze",      "aten::squeeze_",
                                                "aten::sym_size",     "aten::t",
                                                "aten::to",           "aten::transpose",
                                                "aten::unflatten",    "aten::unsafe_split",
                                                "aten::unsqueeze",    "aten::unsqueeze_",
                                                "aten::view",         "aten::view_as",
                                                "aten::_unsafe_view", "aten::_reshape_alias",
                                                "aten::is_same_size", "aten::item",
                                                "aten::result_type",  "aten::broadcast_tensors",
                                                "aten::set_",         "aten::alias",
                                                "aten::stride",       "detach"};
    return names.contains(name);
  }

  static std::string short_name(const char* mangled) {
    char* const text = abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr);
    const std::string name = text ? text : mangled;
    std::free(text);
    return std::regex_replace(name, std::regex("tpudist::|cuda_rows::|\\(anonymous namespace\\)::"),
                              "");
  }

  static double bytes_of(const at::IValue& value) {
    double bytes = 0;
    if (value.isTensor() && value.toTensor().defined())
      bytes += static_cast<double>(value.toTensor().nbytes());
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) bytes += bytes_of(tensor);
    return bytes;
  }
  // Adds the product of a [m, k] and b [k, n]. A transposed operand marks a gradient: d_y w^T of
  // rows, x^T d_y of weights.
  static void add_product(const at::Tensor& a, const at::Tensor& b, Call& call) {
    const std::int64_t m = a.size(0), k = a.size(1), n = b.size(1);
    call.operations =
        2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
    const auto of = [&](const char* what, std::int64_t in, std::int64_t out) {
      call.product = std::string(" ") + what + " " + std::to_string(in) + "x" + std::to_string(out);
    };
    if (a.stride(0) == 1 && a.stride(1) != 1) return of("weights", m, n);
    if (k == 1 || (b.stride(0) == 1 && b.stride(1) != 1)) return of("rows", n, k);
    of("forward", k, n);
  }

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
    auto call = std::make_unique<Call>();
    call->outer = std::exchange(innermost(), call.get());
    const auto inputs = function.inputs();
    for (const at::IValue& value : inputs) call->bytes += bytes_of(value);
    if (std::string(function.name()) == "aten::mm")
      add_product(inputs[0].toTensor(), inputs[1].toTensor(), *call);
    call->is_products = std::string_view(function.name()) == "tpudist::products";
    call->products = call->is_products ? call.get() : call->outer ? call->outer->products : nullptr;
    return call;
  }
  static void end(const at::RecordFunction& function, at::ObserverContext* context) {
    Call& call = static_cast<Call&>(*context);
    innermost() = call.outer;
    const std::string name = function.name();
    if (call.products && !call.is_products) {
      if (call.product.empty()) return;
      call.products->product = call.product;
      call.products->operations += call.operations;
      call.products->bytes += call.bytes;
      for (const at::IValue& value : function.outputs()) call.products->bytes += bytes_of(value);
      return;
    }
    if (!call.launched_within) {
      const bool counts_as_one = call.is_products && !call.product.empty();
      if (!counts_as_one && (name.rfind("aten::", 0) != 0 || launches_nothing(name))) return;
      const std::scoped_lock lock(counts().mutex);
      LaunchWork& sum = counts().of_name[(counts_as_one ? "aten::mm" : name) + call.product];
      ++sum.launches;
      sum.operations += call.operations;
      sum.bytes += call.bytes;
      // A given output is already among the operands.
      if (std::string_view(function.overload_name()).find("out") == std::string_view::npos)
        for (const at::IValue& value : function.outputs()) sum.bytes += bytes_of(value);
    }
    if (call.outer) call.outer->launched_within = true;
  }

  const std::int64_t own_before_;
  at::CallbackHandle handle_;
};

}  // namespace tpudist::test
