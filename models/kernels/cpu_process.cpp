#include "models/kernels/cpu_process.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <cstdlib>
#include <initializer_list>
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

#if defined(__x86_64__)

// The widest instructions of the list in models/kernels/row_kernels.cpp that the CPU has.
const char* row_kernels() {
  if (__builtin_cpu_supports("avx512f")) return "avx512f";
  return __builtin_cpu_supports("avx2") ? "avx2" : "baseline";
}

// BLAS libraries choose by the maker of the CPU and by these instruction sets. TPUDIST_CPU does not
// hide avx512cd, which all CPUs with AVX-512 have: a BLAS ignores it.
std::string kind_of_cpu() {
  std::string kind = __builtin_cpu_is("intel") ? "Intel"
                     : __builtin_cpu_is("amd") ? "AMD"
                                               : "other";
  if (__builtin_cpu_supports("fma")) kind += " fma";
  if (__builtin_cpu_supports("avx2")) kind += " avx2";
  if (__builtin_cpu_supports("avx512f")) kind += " avx512f";
  if (__builtin_cpu_supports("avx512cd")) kind += " avx512cd";
  if (__builtin_cpu_supports("avx512vnni")) kind += " avx512vnni";
  if (__builtin_cpu_supports("avx512bf16")) kind += " avx512bf16";
  return kind;
}

#else

const char* row_kernels() {
  return "baseline";
}

std::string kind_of_cpu() {
  return "other";
}

#endif

// The variables that change the choice of kernels or of a BLAS, as far as they are set.
std::string settings() {
  std::string text;
  for (const char* name : {"TPUDIST_CPU", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS",
                           "MKL_DEBUG_CPU_TYPE", "OPENBLAS_CORETYPE", "ATEN_CPU_CAPABILITY"}) {
    if (const char* value = std::getenv(name); value && *value)
      text += fmt::format(", {}={}", name, value);
  }
  return text;
}

}  // namespace

std::string cpu_kernels() {
  check_switch();
  return fmt::format("rows {}, float32 {}, bf16 {} ({}{})", row_kernels(),
                     tiles_beat_blas() ? "own tiles" : "BLAS",
                     has_bf16_dot_products() ? "dot products" : "rounded", kind_of_cpu(),
                     settings());
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
