#include "launch/output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "core/error.hpp"

namespace tpudist {
namespace {

std::atomic<int> first_error{0};  // errno of the first write to standard output that failed

void remember_error() {
  int none = 0;
  first_error.compare_exchange_strong(none, errno);
}

// True for a pipe or socket whose other end is closed.
bool reader_has_left() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace

void print_text(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) remember_error();
}

void prepare_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is this one. What is open the wrong way round still fails when used.
    const int wrong_way = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", wrong_way) < 0) return;
  }
}

int finish_output(int exit_code) {
  if (std::fflush(stdout) != 0) remember_error();
  if (std::ferror(stdout) == 0 && first_error == 0) return exit_code;
  if (first_error == EPIPE || reader_has_left()) return exit_code;
  const std::string reason =
      first_error == 0 ? "" : ": " + std::generic_category().message(first_error);
  fmt::print(stderr, "tpudist: error: cannot write to standard output{}\n", reason);
  return exit_code == 0 ? static_cast<int>(ErrorKind::failed) : exit_code;
}

}  // namespace tpudist
