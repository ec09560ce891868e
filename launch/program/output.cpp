#include "launch/program/output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>
#include <system_error>

#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

std::atomic<int> first_error{0};  // errno of the first write to standard output that failed

void remember_error(int error) {
  int none = 0;
  first_error.compare_exchange_strong(none, error);
}

// Writes all of the text, or returns the error number. A buffer of the C library would lose its
// content when a signal interrupts the write.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written =
        uninterrupted([&] { return ::write(descriptor, text.data(), text.size()); });
    if (written < 0 && errno == EAGAIN) {  // another program made the shared file non-blocking
      pollfd stream{descriptor, POLLOUT, 0};
      ::poll(&stream, 1, -1);
      continue;
    }
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// Whether standard output is a pipe or socket whose other end is closed.
bool reader_has_left() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace

void print_text(std::string_view text) {
  if (first_error != 0) return;
  if (std::fflush(stdout) != 0) return remember_error(errno);  // output of libraries comes first
  if (const int error = write_all(STDOUT_FILENO, printable(text, "\n\t"))) remember_error(error);
}

void print_error_text(std::string_view text) noexcept {
  try {
    write_all(STDERR_FILENO, printable(text, "\n\t"));
  } catch (const std::bad_alloc&) {
    write_all(STDERR_FILENO, text);
  }
}

void print_next(std::string_view command) {
  if (verbosity() != Verbosity::quiet) print_error_text(fmt::format("next: {}\n", command));
}

void prepare_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // open() takes the lowest free number, which is this stream's. Opened in the wrong direction,
    // the stream still fails when it is used.
    const int wrong_way = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", wrong_way) < 0) return;
  }
}

int finish_output(int exit_code) {
  if (std::fflush(stdout) != 0) remember_error(errno);
  if (std::ferror(stdout) == 0 && first_error == 0) return exit_code;
  if (first_error == EPIPE || reader_has_left()) return exit_code;
  const std::string reason =
      first_error == 0 ? "" : ": " + std::generic_category().message(first_error);
  print_error_text(fmt::format("tpudist: error: cannot write to standard output{}\n", reason));
  return exit_code == 0 ? static_cast<int>(ErrorKind::failed) : exit_code;
}

Display::Display(bool shown) {
  if (!shown || verbosity() == Verbosity::quiet) {
    progress_ = std::make_unique<NoProgress>();
    return;
  }
  progress_ = std::make_unique<ProgressBar>();
  above_.emplace(*progress_);
}

void add_verbosity_options(Command program) {
  for (const Command command : program.commands()) {
    if (!command.commands().empty()) {
      add_verbosity_options(command);
      continue;
    }
    const Option quiet = command.add_flag(
        "--quiet", [] { set_verbosity(Verbosity::quiet); }, "Show results and warnings only");
    command
        .add_flag(
            "--verbose", [] { set_verbosity(Verbosity::verbose); },
            "Log which files are opened, sizes and times")
        .excludes(quiet);
  }
}

}  // namespace tpudist
