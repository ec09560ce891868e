#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist::test {

// Why there can be no pseudo-terminal here; empty if there can.
inline std::string why_no_terminal() {
  int master = -1, slave = -1;
  if (openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) {
    return std::string("no pseudo-terminal can be opened (") + std::strerror(errno) +
           "): is /dev/pts mounted?";
  }
  close(master);
  close(slave);
  return "";
}

// Put this first in a test, which is then skipped e.g. in a chroot without /dev/pts.
#define TPUDIST_NEEDS_TERMINAL() \
  if (const std::string why = ::tpudist::test::why_no_terminal(); !why.empty()) GTEST_SKIP() << why

// The text on a terminal of some width after all output: plain characters, carriage return, line
// feed and "erase to the end of the line". Any other character is shown.
class Screen {
 public:
  explicit Screen(std::size_t columns) : columns_(columns), lines_(1) {}

  void write(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      std::string& line = lines_[row_];
      if (text[i] == '\r') {
        column_ = 0;
      } else if (text[i] == '\n') {
        down();
      } else if (text.substr(i).starts_with("\x1b[K")) {
        line.resize(std::min(line.size(), column_));
        i += 2;
      } else {
        put(text[i]);
      }
    }
  }

  // The lines from the top; a wrapped line is two lines.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  void down() {
    if (++row_ == lines_.size()) lines_.emplace_back();
  }

  void put(char c) {
    if (column_ == columns_) {  // a full line wraps with the next character
      down();
      column_ = 0;
    }
    std::string& line = lines_[row_];
    if (line.size() <= column_) line.resize(column_ + 1, ' ');
    line[column_++] = c;
  }

  std::size_t columns_, row_ = 0, column_ = 0;
  std::vector<std::string> lines_;
};

// A terminal for a part of this process: output to `descriptor` appears on the screen.
class PseudoTerminal {
 public:
  explicit PseudoTerminal(unsigned short columns) : screen_(columns) {
    winsize size{};
    size.ws_row = 24, size.ws_col = columns;
    if (openpty(&master_, &slave_, nullptr, nullptr, &size) != 0) {
      throw std::runtime_error("cannot open a pseudo-terminal");
    }
    fcntl(master_, F_SETFL, O_NONBLOCK);
    setenv("TERM", "xterm", 1);  // tests may have "dumb"
  }
  ~PseudoTerminal() {
    close(master_);
    close(slave_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  int descriptor() const { return slave_; }

  const std::vector<std::string>& lines() {
    std::array<char, 4096> buffer;
    ssize_t count = 0;
    while ((count = read(master_, buffer.data(), buffer.size())) > 0) {
      screen_.write({buffer.data(), static_cast<std::size_t>(count)});
    }
    return screen_.lines();
  }

 private:
  int master_ = -1, slave_ = -1;
  Screen screen_;
};

struct TerminalOutcome {
  int exit_code = -1;
  std::vector<std::string> lines;
};

// Runs `child`, which must not return, in a process whose standard streams are a terminal of this
// width, and returns the final content of the screen.
inline TerminalOutcome run_on_terminal(unsigned short columns, const std::function<void()>& child) {
  winsize size{};
  size.ws_row = 24, size.ws_col = columns;
  int master = -1;
  const pid_t process = forkpty(&master, nullptr, nullptr, &size);
  if (process < 0) throw std::runtime_error("cannot start a process on a pseudo-terminal");
  if (process == 0) {
    setenv("TERM", "xterm", 1);
    child();
    _exit(126);
  }
  Screen screen(columns);
  std::array<char, 4096> buffer;
  ssize_t count = 0;
  while ((count = read(master, buffer.data(), buffer.size())) > 0) {  // EIO at the end
    screen.write({buffer.data(), static_cast<std::size_t>(count)});
  }
  close(master);
  TerminalOutcome outcome{-1, screen.lines()};
  int status = 0;
  if (waitpid(process, &status, 0) == process && WIFEXITED(status)) {
    outcome.exit_code = WEXITSTATUS(status);
  }
  return outcome;
}

}  // namespace tpudist::test
