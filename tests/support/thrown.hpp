#pragma once

#include <string>

namespace tpudist::test {

// What the Exception says that `action` throws; "" where it throws nothing. Other exceptions go on.
template <typename Exception, typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace tpudist::test
