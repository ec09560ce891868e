// TPUDIST_CPU=avx2 or plain in the environment restricts a process to the code that it would run on
// a CPU without AVX-512, or without AVX2 too, to test that code on this one. It costs nothing while
// kernels run.
//
// It changes the compiler's own record of the CPU, which the versions of TPUDIST_VECTORISED and
// __builtin_cpu_supports use. The linker's --wrap replaces the function that fills that record by
// the one below (models/kernels/CMakeLists.txt). It is first called while the program is loaded,
// before the C library is ready. So it asks the kernel itself for the environment and calls
// nothing.

#if defined(__x86_64__) && defined(__linux__)

#include <sys/syscall.h>

#include <cstddef>

extern "C" {
// The record, as the compilers' ABI lays it out (libgcc's cpuinfo.h, compiler-rt's cpu_model).
extern struct {
  unsigned vendor, type, subtype, features;
} __cpu_model __attribute__((visibility("hidden")));
int __real___cpu_indicator_init();
int __wrap___cpu_indicator_init();
}

namespace {

constexpr unsigned kAvx2 = 1u << 10, kAvx512f = 1u << 15, kAvx512bw = 1u << 21;

long system_call(long number, long a, long b, long c) {
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c)
               : "rcx", "r11", "memory");
  return result;
}

// How far the current entry of the environment matches `name`, which ends with 0.
struct Match {
  const char* name;
  std::size_t seen = 0;
  bool possible = true, whole = false;

  void see(char c) {
    if (possible && c == name[seen]) {
      whole = whole || c == 0;
      ++seen;
    } else {
      possible = false;
    }
    if (c == 0) seen = 0, possible = true;
  }
};

// The features to hide.
unsigned hidden_features() {
  Match avx2{"TPUDIST_CPU=avx2"}, plain{"TPUDIST_CPU=plain"};
  const long file = system_call(SYS_open, reinterpret_cast<long>("/proc/self/environ"), 0, 0);
  if (file < 0) return 0;
  char bytes[1024];
  for (;;) {
    const long count =
        system_call(SYS_read, file, reinterpret_cast<long>(bytes), static_cast<long>(sizeof bytes));
    if (count <= 0) break;
    for (long i = 0; i < count; ++i) {
      avx2.see(bytes[i]);
      plain.see(bytes[i]);
    }
  }
  system_call(SYS_close, file, 0, 0);
  return (plain.whole ? kAvx2 : 0) | (plain.whole || avx2.whole ? kAvx512f | kAvx512bw : 0);
}

}  // namespace

int __wrap___cpu_indicator_init() {
  static unsigned hidden = 0;
  static bool known = false;
  const int result = __real___cpu_indicator_init();
  if (!known) {
    hidden = hidden_features();
    known = true;
  }
  __cpu_model.features &= ~hidden;
  return result;
}

// For programs without functions that are marked TPUDIST_VECTORISED.
__attribute__((constructor)) static void hold_to_switch() {
  __wrap___cpu_indicator_init();
}

#endif
