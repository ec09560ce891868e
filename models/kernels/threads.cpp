#include "models/kernels/threads.hpp"

#include <ATen/Parallel.h>

namespace tpudist {

void use_one_thread_per_worker() {
  thread_local bool done = false;
  if (done) return;
  at::set_num_threads(1);
  done = true;
}

}  // namespace tpudist
