#pragma once

#include <string>

namespace tpudist::test {

// The message of the Exception that `action` throws; "" if nothing. Passes on other exceptions.
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
