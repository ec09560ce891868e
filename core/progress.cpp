#include "core/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/numbers.hpp"

namespace tpudist {
namespace {

constexpr int kBarWidth = 24;

// One line of printable text: names come from files and could move the cursor.
std::string printable(std::string_view text) {
  std::string safe(text);
  for (char& c : safe) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return safe;
}

// At most `columns` characters, counted as UTF-8 code points.
std::string_view cut(std::string_view text, std::size_t columns) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (columns-- == 0) return text.substr(0, i);
  }
  return text;
}

std::size_t terminal_width(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) return size.ws_col;
  return 80;
}

std::string format_rate(double per_second, std::string_view unit) {
  if (per_second >= 100) return fmt::format("{:.0f} {}/s", per_second, unit);
  if (per_second >= 1) return fmt::format("{:.1f} {}/s", per_second, unit);
  return fmt::format("{} each", format_seconds(1 / per_second));
}

}  // namespace

ProgressBar::ProgressBar() : ProgressBar(Options()) {}

ProgressBar::ProgressBar(Options options) : options_(std::move(options)) {
  if (!options_.now) options_.now = [] { return std::chrono::steady_clock::now(); };
  terminal_ = options_.terminal < 0 ? isatty(options_.descriptor) == 1 : options_.terminal == 1;
}

ProgressBar::~ProgressBar() {
  // Left by an exception, say: keep what the bar shows, and let others begin a new line.
  if (active_ && terminal_) write("\n");
}

void ProgressBar::start(std::string_view title, std::int64_t total, std::string_view unit) {
  std::lock_guard lock(mutex_);
  if (active_) end();
  title_ = printable(title);
  unit_ = printable(unit);
  note_.clear();
  total_ = total;
  done_ = 0;
  active_ = true;
  begin_ = options_.now();
  draw(true);
}

void ProgressBar::advance(std::int64_t count, std::string_view note) {
  std::lock_guard lock(mutex_);
  if (!active_) return;
  done_ += count;
  if (!note.empty()) note_ = printable(note);
  draw(false);
}

void ProgressBar::line(std::string_view text) {
  std::lock_guard lock(mutex_);
  const bool live = active_ && terminal_;
  write(fmt::format("{}{}\n", live ? "\r\x1b[K" : "", text));
  if (live) draw(true);
}

void ProgressBar::finish() {
  std::lock_guard lock(mutex_);
  if (active_) end();
}

void ProgressBar::draw(bool force) {
  const auto now = options_.now();
  const auto interval = terminal_ ? options_.live_interval : options_.plain_interval;
  if (!force && now - drawn_ < interval) return;
  drawn_ = now;
  if (!terminal_) return write(text() + "\n");
  const std::string shown = text();
  // One column is left free, because a full line would wrap.
  write(fmt::format("\r{}\x1b[K", cut(shown, terminal_width(options_.descriptor) - 1)));
}

// The last state, with the time taken in place of the time left.
void ProgressBar::end() {
  const double seconds = std::chrono::duration<double>(options_.now() - begin_).count();
  std::string summary =
      fmt::format("{}: {} {} in {}", title_, format_count(done_), unit_, format_seconds(seconds));
  if (done_ > 0 && seconds > 0) {
    summary += fmt::format(", {}", format_rate(static_cast<double>(done_) / seconds, unit_));
  }
  if (!note_.empty()) summary += ", " + note_;
  write(fmt::format("{}{}\n", terminal_ ? "\r\x1b[K" : "", summary));
  active_ = false;
}

std::string ProgressBar::text() const {
  const double seconds = std::chrono::duration<double>(options_.now() - begin_).count();
  const double rate = seconds > 0 ? static_cast<double>(done_) / seconds : 0;
  std::string text = title_ + ": ";
  if (total_ > 0) {
    const double share =
        std::clamp(static_cast<double>(done_) / static_cast<double>(total_), 0., 1.);
    if (terminal_) {
      const auto filled = static_cast<std::size_t>(share * kBarWidth);
      text +=
          fmt::format("[{}{}] ", std::string(filled, '#'), std::string(kBarWidth - filled, '.'));
    }
    text += fmt::format("{:.0f}%, {} of {} {}", 100 * share, format_count(done_),
                        format_count(total_), unit_);
  } else {
    text += fmt::format("{} {}", format_count(done_), unit_);
  }
  if (rate > 0) {
    text += ", " + format_rate(rate, unit_);
    if (total_ > done_) {
      text += fmt::format(", {} left", format_seconds(static_cast<double>(total_ - done_) / rate));
    }
  }
  if (!note_.empty()) text += ", " + note_;
  return text;
}

void ProgressBar::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(options_.descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody reads: not worth ending a run
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace tpudist
