#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "tests/cuda_emulation/cuda_runtime.h"

// What a network that takes the CPU for its device would launch on a GPU. For programs with the
// emulated kernels.

namespace tpudist::test {

// Counts as long as it lives: the project's own kernels, and ATen's operations of all threads. An
// operation that calls others does not count itself; nor do views, and what only takes memory.
// There may be one at a time, and no ATen operation may run on what is host memory on a GPU too.
class LaunchCounter {
 public:
  LaunchCounter()
      : own_before_(emulation::launches),
        handle_(at::addGlobalCallback(
            at::RecordFunctionCallback(begin, end).scopes({at::RecordScope::FUNCTION}))) {
    const std::scoped_lock lock(counts().mutex);
    counts().of_name.clear();
  }
  ~LaunchCounter() { at::removeCallback(handle_); }
  LaunchCounter(const LaunchCounter&) = delete;
  LaunchCounter& operator=(const LaunchCounter&) = delete;

  std::int64_t own_kernels() const { return emulation::launches - own_before_; }
  std::int64_t aten_operations() const {
    std::int64_t sum = 0;
    for (const auto& [name, count] : by_name()) sum += count;
    return sum;
  }
  std::int64_t launches() const { return own_kernels() + aten_operations(); }
  std::map<std::string, std::int64_t> by_name() const {
    const std::scoped_lock lock(counts().mutex);
    return counts().of_name;
  }

 private:
  struct Counts {
    std::mutex mutex;
    std::map<std::string, std::int64_t> of_name;
  };
  struct Call : at::ObserverContext {
    Call* outer = nullptr;
    bool launched_within = false;
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
    static const std::set<std::string> names = {"aten::as_strided",
                                                "aten::chunk",
                                                "aten::contiguous",
                                                "aten::detach",
                                                "aten::detach_",
                                                "aten::empty",
                                                "aten::empty_like",
                                                "aten::empty_strided",
                                                "aten::expand",
                                                "aten::expand_as",
                                                "aten::narrow",
                                                "aten::numpy_T",
                                                "aten::permute",
                                                "aten::requires_grad_",
                                                "aten::reshape",
                                                "aten::resolve_conj",
                                                "aten::resolve_neg",
                                                "aten::resize_",
                                                "aten::select",
                                                "aten::slice",
                                                "aten::split",
                                                "aten::split_with_sizes",
                                                "aten::squeeze",
                                                "aten::squeeze_",
                                                "aten::sym_size",
                                                "aten::t",
                                                "aten::to",
                                                "aten::transpose",
                                                "aten::unsafe_split",
                                                "aten::unsqueeze",
                                                "aten::unsqueeze_",
                                                "aten::view",
                                                "aten::view_as",
                                                "aten::_unsafe_view",
                                                "aten::_reshape_alias",
                                                "aten::is_same_size",
                                                "aten::item",
                                                "aten::result_type",
                                                "aten::broadcast_tensors",
                                                "aten::set_",
                                                "aten::alias",
                                                "aten::stride",
                                                "detach"};
    return names.contains(name);
  }

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction&) {
    auto call = std::make_unique<Call>();
    call->outer = std::exchange(innermost(), call.get());
    return call;
  }
  static void end(const at::RecordFunction& function, at::ObserverContext* context) {
    Call& call = static_cast<Call&>(*context);
    innermost() = call.outer;
    const std::string name = function.name();
    if (!call.launched_within) {
      if (name.rfind("aten::", 0) != 0 || launches_nothing(name)) return;
      const std::scoped_lock lock(counts().mutex);
      ++counts().of_name[name];
    }
    if (call.outer) call.outer->launched_within = true;
  }

  const std::int64_t own_before_;
  at::CallbackHandle handle_;
};

}  // namespace tpudist::test
