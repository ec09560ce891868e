#include "train/experiment/same_settings.hpp"

#include <fmt/format.h>

#include "core/config/settings.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace tpudist {

void require_same_settings(const std::vector<ConfigEntry>& then,
                           const std::vector<ConfigEntry>& now, std::string_view where,
                           std::string_view advice) {
  const std::vector<std::string> changes = changed_settings(then, now);
  if (changes.empty()) return;
  throw ConfigError(fmt::format("{}: was written with other settings: {}; {}", where,
                                join(changes, ", "), advice));
}

}  // namespace tpudist
