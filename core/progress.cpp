#include "core/progress.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "core/descriptor.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kMostBar = 24, kLeastBar = 8;
constexpr std::size_t kShortNote = 16;  // columns; a number such as a loss is shorter

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

// Characters of UTF-8.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

// At most `most` characters.
std::string cut(std::string_view text, std::size_t most) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins_character(text[i]) && most-- == 0) return std::string(text.substr(0, i));
  }
  return std::string(text);
}

// The non-empty parts, with ", " between.
std::string listed(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    if (!part.empty()) text += fmt::format("{}{}", text.empty() ? "" : ", ", part);
  }
  return text;
}

bool is_given(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

// If Open MPI's mpirun started this process, `descriptor` is a pipe to mpirun, which forwards it.
// The terminal is then that of mpirun, the parent process. Nothing if there is none, or if mpirun
// adds a prefix to each line.
Descriptor terminal_of(int descriptor) {
  if (isatty(descriptor) == 1) return Descriptor(dup(descriptor));
  if (descriptor != STDERR_FILENO || !is_given("OMPI_COMM_WORLD_RANK")) return {};
  for (const char* marks : {"OMPI_MCA_orte_tag_output", "OMPI_MCA_orte_timestamp_output"})
    if (is_given(marks)) return {};
  Descriptor above(open(fmt::format("/proc/{}/fd/{}", getppid(), STDERR_FILENO).c_str(),
                        O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  return isatty(above.get()) == 1 ? std::move(above) : Descriptor();
}

bool is_live(int descriptor) {
  const char* kind = std::getenv("TERM");
  return terminal_of(descriptor) && !(kind && std::string_view(kind) == "dumb");
}

std::size_t terminal_width(int descriptor) {
  winsize size{};
  const Descriptor terminal = terminal_of(descriptor);
  if (ioctl(terminal.get(), TIOCGWINSZ, &size) == 0 && size.ws_col > 1) return size.ws_col;
  return 80;
}

std::string format_amount(std::int64_t count, std::string_view unit) {
  return unit == "bytes" ? format_bytes(static_cast<std::uint64_t>(count)) : format_count(count);
}

// "500 graphs", "1.2 GiB".
std::string with_unit(std::string amount, std::string_view unit) {
  return unit == "bytes" ? amount : fmt::format("{} {}", amount, unit);
}

// "50.0 graphs/s", or short "50.0/s"; nothing where the rate is not known.
std::string format_rate(double per_second, std::string_view unit, bool is_short) {
  if (!(per_second > 0)) return "";
  if (unit == "bytes") return format_bytes(static_cast<std::uint64_t>(per_second)) + "/s";
  if (per_second < 1) return fmt::format("{} each", format_seconds(1 / per_second));
  const std::string name = is_short ? "" : fmt::format(" {}", unit);
  return fmt::format("{:.{}f}{}/s", per_second, per_second >= 100 ? 0 : 1, name);
}

}  // namespace

// The pieces of the line about the innermost job; unknown pieces are empty.
struct ProgressBar::Pieces {
  std::string outer;  // the jobs around it: "train 40 % > "
  std::string title, percent, count, short_count, rate, short_rate, left, note;
  double share = -1;  // done / total; negative: unknown

  std::string titled(std::string_view text) const {
    return title.empty() ? std::string(text) : fmt::format("{}: {}", title, text);
  }
  std::string full() const { return listed({percent, count, rate, left, note}); }
  std::string compact() const { return listed({percent, short_count, short_rate, left, note}); }

  // "TITLE: [####....] NUMBERS" in at most `width` columns; nothing where the bar gets too short.
  std::string with_bar(const std::string& numbers, std::size_t width) const {
    const std::string head = outer + titled("");
    const std::size_t taken = columns(head) + columns(numbers) + 3;
    if (share < 0 || taken + kLeastBar > width) return "";
    const std::size_t bar = std::min(kMostBar, width - taken);
    const auto filled = static_cast<std::size_t>(share * static_cast<double>(bar));
    return fmt::format("{}[{}{}] {}", head, std::string(filled, '#'),
                       std::string(bar - filled, '.'), numbers);
  }

  // The richest line that fits into `width` columns.
  std::string fitted(std::size_t width) const {
    Pieces plain = *this;  // without a name for a note, and without the outer jobs
    if (columns(note) > kShortNote) plain.note.clear();
    for (const Pieces* pieces : {this, &std::as_const(plain)}) {
      for (const std::string& numbers : {pieces->full(), pieces->compact()}) {
        if (std::string line = pieces->with_bar(numbers, width); !line.empty()) return line;
      }
    }
    const std::string shorter = listed({percent, short_count, short_rate, left});
    for (const std::string& line :
         {outer + plain.titled(plain.full()), plain.titled(plain.full()),
          plain.titled(plain.compact()), plain.titled(shorter), shorter,
          listed({percent, short_count, left}), listed({percent, left})}) {
      if (columns(line) <= width) return line;
    }
    return cut(percent.empty() ? short_count : percent, width);
  }
};

ProgressBar::ProgressBar() : ProgressBar(Options()) {}

ProgressBar::ProgressBar(Options options) : options_(std::move(options)) {
  if (!options_.now) options_.now = [] { return std::chrono::steady_clock::now(); };
  terminal_ = options_.terminal < 0 ? is_live(options_.descriptor) : options_.terminal == 1;
}

ProgressBar::~ProgressBar() {
  // If jobs are open, for example after an exception, keep the bar and start a new line.
  if (!jobs_.empty() && terminal_) write("\n");
}

void ProgressBar::start(std::string_view title, std::int64_t total, std::string_view unit) {
  const MutexLock lock(mutex_);
  jobs_.push_back({printable(title), printable(unit), "", total, 0, options_.now()});
  draw(jobs_.size() == 1);
}

void ProgressBar::advance(std::int64_t count, std::string_view note) {
  const MutexLock lock(mutex_);
  if (jobs_.empty()) return;
  jobs_.back().done += count;
  if (!note.empty()) jobs_.back().note = printable(note);
  draw(false);
}

void ProgressBar::line(std::string_view text) {
  const MutexLock lock(mutex_);
  const bool live = !jobs_.empty() && terminal_;
  write(fmt::format("{}{}\n", live ? "\r\x1b[K" : "", printable(text, "\n\t")));
  if (live) draw(true);
}

void ProgressBar::finish() {
  const MutexLock lock(mutex_);
  if (jobs_.empty()) return;
  const Job job = std::move(jobs_.back());
  jobs_.pop_back();
  if (jobs_.empty()) {
    write(fmt::format("{}{}\n", terminal_ ? "\r\x1b[K" : "", summary(job)));
  } else {
    draw(terminal_);
  }
}

void ProgressBar::draw(bool force) {
  const auto now = options_.now();
  const auto interval = terminal_ ? options_.live_interval : options_.plain_interval;
  if (!force && now - drawn_ < interval) return;
  drawn_ = now;
  const Pieces shown = pieces();
  if (!terminal_) return write(shown.outer + shown.titled(shown.full()) + "\n");
  // One column is left free, because a full line would wrap.
  write(fmt::format("\r{}\x1b[K", shown.fitted(terminal_width(options_.descriptor) - 1)));
}

// The last state, with the time taken in place of the time left.
std::string ProgressBar::summary(const Job& job) const {
  const double seconds = seconds_between(job.begin, options_.now());
  const double rate = seconds > 0 ? static_cast<double>(job.done) / seconds : 0;
  return fmt::format(
      "{}: {}", job.title,
      listed({fmt::format("{} in {}", with_unit(format_amount(job.done, job.unit), job.unit),
                          format_seconds(seconds)),
              format_rate(rate, job.unit, false), job.note}));
}

ProgressBar::Pieces ProgressBar::pieces() const {
  const auto share = [](const Job& job) {
    if (job.total <= 0) return -1.0;
    return std::clamp(static_cast<double>(job.done) / static_cast<double>(job.total), 0., 1.);
  };
  Pieces pieces;
  for (std::size_t i = 0; i + 1 < jobs_.size(); ++i) {
    pieces.outer += jobs_[i].title;
    if (jobs_[i].total > 0) pieces.outer += fmt::format(" {:.0f}%", 100 * share(jobs_[i]));
    pieces.outer += " > ";
  }
  const Job& job = jobs_.back();
  pieces.title = job.title;
  pieces.note = job.note;
  pieces.share = share(job);
  std::string done = format_amount(job.done, job.unit);
  pieces.count = with_unit(done, job.unit);
  pieces.short_count = done;
  if (job.total > 0) {
    const std::string total = format_amount(job.total, job.unit);
    pieces.percent = fmt::format("{:.0f}%", 100 * pieces.share);
    pieces.count = with_unit(fmt::format("{} of {}", done, total), job.unit);
    pieces.short_count = fmt::format("{}/{}", done, total);
  }
  const double seconds = seconds_between(job.begin, options_.now());
  if (job.done <= 0 || seconds <= 0) return pieces;
  const double rate = static_cast<double>(job.done) / seconds;
  pieces.rate = format_rate(rate, job.unit, false);
  pieces.short_rate = format_rate(rate, job.unit, true);
  if (job.total > job.done) {
    pieces.left =
        fmt::format("{} left", format_seconds(static_cast<double>(job.total - job.done) / rate));
  }
  return pieces;
}

void ProgressBar::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written =
        uninterrupted([&] { return ::write(options_.descriptor, text.data(), text.size()); });
    if (written <= 0) return;  // a closed output does not end a run
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace tpudist
