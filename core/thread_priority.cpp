#include "core/thread_priority.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tpudist {

void give_way_to_others() {
  constexpr int kNice = 10;
  const auto thread = static_cast<id_t>(::gettid());
  errno = 0;
  const int now = ::getpriority(PRIO_PROCESS, thread);
  if (errno == 0) ::setpriority(PRIO_PROCESS, thread, std::max(now, kNice));
}

}  // namespace tpudist
