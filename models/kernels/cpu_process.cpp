#include "models/kernels/cpu_process.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <torch/version.h>

#include <cstdlib>
#include <string_view>

#include "core/error.hpp"
#include "models/kernels/gemm.hpp"

namespace tpudist {
namespace {

// Throws if TPUDIST_CPU requests something that this process does not do.
void check_switch() {
  const char* value = std::getenv("TPUDIST_CPU");
  if (!value || !*value) return;
  const std::string_view wanted = value;
  if (wanted != "avx2" && wanted != "plain") {
    throw ConfigError(fmt::format(
        "TPUDIST_CPU={}: give avx2 or plain, or unset it for all that the CPU has", wanted));
  }
#if defined(__x86_64__)
  __builtin_cpu_init();  // also links it into programs that do not use it otherwise
  if (!__builtin_cpu_supports("avx512f") && (wanted == "avx2" || !__builtin_cpu_supports("avx2")))
    return;
#endif
  throw ConfigError(fmt::format(
      "TPUDIST_CPU={} had no effect: it needs an x86 CPU, /proc, and to be set when the program "
      "starts",
      wanted));
}

bool has_fused_multiply_add() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

}  // namespace

const char* cpu_vectors() {
  check_switch();
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return "avx512f";
  if (__builtin_cpu_supports("avx2")) return "avx2";
#endif
  return "baseline";
}

// The C library chooses its functions by whether the CPU has fused multiply-adds.
std::string cpu_kernels(Precision precision) {
  check_switch();
  std::string text =
      fmt::format("{}, C library {}",
                  has_fused_multiply_add() ? "any x86-64 with FMA" : "a CPU without FMA",
                  ::gnu_get_libc_version());
  if (precision == Precision::bf16)
    text += has_bf16_dot_products() ? ", bf16 dot products" : ", bf16 rounded";
  return text;
}

std::string libtorch_version() {
  return TORCH_VERSION;
}

void use_one_thread_per_worker() {
  thread_local bool done = false;
  if (done) return;
  at::set_num_threads(1);
  done = true;
}

}  // namespace tpudist
