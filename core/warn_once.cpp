#include "core/warn_once.hpp"

#include <mutex>
#include <set>

#include "core/log.hpp"

namespace tpudist {

void warn_once(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> told;
  {
    const std::lock_guard lock(mutex);
    if (!told.insert(text).second) return;
  }
  spdlog::warn("{}", text);
}

}  // namespace tpudist
