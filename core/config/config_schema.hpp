#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/config/config.hpp"

namespace tpudist {

// A JSON Schema (draft 7) of the files that `read` reads, so that editors complete and check them.
// It is found by reading: a file of nothing, then one more for each word, boolean, number or map
// that a key accepts and that may lead to other keys. `starts`: overrides of further files to
// begin from, for values that no reader lists. `read` may throw ConfigError for a made file.
// A map in a list takes the keys that go with its first choice among words (`layer: gat`); a list
// in a list of the same name is taken for the same list.
std::string config_schema(const std::string& title, const std::vector<std::string>& starts,
                          const std::function<void(ConfigDocument&)>& read);

}  // namespace tpudist
