// The standard streams for an archive that was not compiled for shared libraries and is linked into one all the same:
// such code cannot reach those of the C library (--wrap in TpudistDependencies.cmake).
#include <stdio.h>

extern FILE* __real_stderr;
extern FILE* __real_stdout;
__attribute__((visibility("hidden"))) FILE* __wrap_stderr;
__attribute__((visibility("hidden"))) FILE* __wrap_stdout;

__attribute__((constructor(101))) static void find_streams(void) {
  __wrap_stderr = __real_stderr;
  __wrap_stdout = __real_stdout;
}
