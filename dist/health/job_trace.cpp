#include "dist/health/job_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/process.hpp"

namespace tpudist {
namespace {

constexpr int kRounds = 32;

// Microseconds with all digits of nanoseconds, so that nested spans stay nested.
std::string microseconds(std::int64_t ns) {
  const std::int64_t size = std::abs(ns);
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

std::string metadata(std::string_view what, int rank, std::size_t track,
                     std::string_view argument) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}},)"
                     "\n",
                     what, traced_process(rank), traced_thread(rank, track), argument);
}

void add_span(const TracedSpan& span, int rank, std::size_t track, std::int64_t shift,
              std::string& text) {
  auto out = std::back_inserter(text);
  fmt::format_to(out, R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{)",
                 span.name, traced_process(rank), traced_thread(rank, track),
                 microseconds(span.begin - shift), microseconds(span.end - span.begin));
  const char* comma = "";
  const auto number = [&](const char* name, std::int64_t value) {
    if (value < 0) return;
    fmt::format_to(out, R"({}"{}":{})", comma, name, value);
    comma = ",";
  };
  number("step", span.step);
  number("unit", span.unit);
  if (span.detail)
    fmt::format_to(out, R"({}"graph":{})", comma, json_text(nlohmann::json(span.detail)));
  text += "}},\n";
}

// The text of rank `from`, on rank 0; empty elsewhere.
std::string to_root(Communicator& world, int from, const std::string& mine) {
  if (from == 0) return world.rank() == 0 ? mine : std::string();
  auto size = static_cast<std::int64_t>(mine.size());
  world.broadcast(std::span(&size, 1), from);
  std::vector<std::int64_t> send(world.size(), 0), receive = send;
  std::string text;
  if (world.rank() == 0) {
    text.resize(size);
    receive[from] = size;
  }
  if (world.rank() == from) send[0] = size;
  const std::span<const char> given =
      world.rank() == from ? std::span<const char>(mine) : std::span<const char>();
  world.all_to_all(given, send, std::span<char>(text), receive);
  return text;
}

// Where rank 0 writes: a file, which gets its name at the end, or a device.
class Destination {
 public:
  explicit Destination(const std::filesystem::path& path) : path_(path) {
    if (resolve_output(path).kind == OutputPath::Kind::file) temporary_.emplace(path);
    out_.open(temporary_ ? temporary_->path() : path, std::ios::binary);
  }

  void write(std::string_view text) {
    out_.write(text.data(), static_cast<std::streamsize>(text.size()));
  }

  void finish() {
    out_.close();
    if (!out_) throw IoError(fmt::format("{}: cannot write; is the disk full?", path_.string()));
    if (temporary_) temporary_->commit();
  }

 private:
  const std::filesystem::path path_;
  std::optional<TemporaryFile> temporary_;
  std::ofstream out_;
};

void warn_of_dropped(Communicator& world, const std::vector<TraceTrack>& tracks, std::size_t most) {
  std::int64_t dropped = 0;
  for (const TraceTrack& track : tracks) dropped += track.dropped;
  if (world.size() > 1) world.all_reduce(std::span(&dropped, 1), ReduceOp::sum);
  if (dropped == 0 || world.rank() != 0) return;
  spdlog::warn(
      "trace: {} older spans were dropped; it keeps the newest {} of each thread, so trace fewer "
      "steps to see all",
      dropped, most);
}

}  // namespace

ClockOffset offset_within(std::int64_t lower, std::int64_t upper) {
  const std::int64_t middle = lower + (upper - lower) / 2;
  const std::int64_t offset = lower <= 0 && upper >= 0 ? 0 : middle;
  return {offset, std::max(offset - lower, upper - offset)};
}

ClockOffset measure_clock_offset(Communicator& world, const std::function<std::int64_t()>& now) {
  const auto ranks = static_cast<std::size_t>(world.size());
  const auto own = static_cast<std::size_t>(world.rank());
  if (ranks == 1) return {};
  const std::vector<std::int64_t> ones(ranks, 1);
  std::vector<std::int64_t> before(ranks);
  std::vector<std::int64_t> lower(ranks, std::numeric_limits<std::int64_t>::min());
  std::int64_t upper = std::numeric_limits<std::int64_t>::max();
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t begin = now();
    world.all_gather(std::span(&begin, 1), std::span(before), std::span<const std::int64_t>(ones));
    const std::int64_t end = now();
    upper = std::min(upper, end - before[0]);
    // The lower bounds need rank 0's time after the exchange, so rank 0 broadcasts them.
    for (std::size_t r = 0; r < ranks; ++r) lower[r] = std::max(lower[r], before[r] - end);
  }
  world.broadcast(std::span(lower), 0);
  return own == 0 ? ClockOffset{} : offset_within(lower[own], upper);
}

JobTrace::JobTrace(Communicator& world, std::size_t spans_of_a_thread) : trace_(spans_of_a_thread) {
  world.barrier();
  start_ = Trace::now();
  world.broadcast(std::span(&start_, 1), 0);
  clock_ = measure_clock_offset(world, Trace::now);
  trace_.name_thread("main");
}

std::string trace_events(const std::vector<TraceTrack>& tracks, int rank, const std::string& host,
                         std::int64_t start, const ClockOffset& clock) {
  const std::string name = json_text(nlohmann::json(fmt::format("rank {} on {}", rank, host)));
  std::string text = metadata("process_name", rank, 0, fmt::format(R"("name":{})", name));
  text += metadata("process_sort_index", rank, 0, fmt::format(R"("sort_index":{})", rank));
  if (clock.error > 0) {
    text += metadata("process_labels", rank, 0,
                     fmt::format(R"("labels":"clock within {} us")", microseconds(clock.error)));
  }
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    const TraceTrack& track = tracks[t];
    std::string thread = track.thread;
    if (track.dropped > 0) thread += fmt::format(" ({} older spans dropped)", track.dropped);
    text += metadata("thread_name", rank, t,
                     fmt::format(R"("name":{})", json_text(nlohmann::json(thread))));
    text += metadata("thread_sort_index", rank, t, fmt::format(R"("sort_index":{})", t));
    for (const TracedSpan& span : track.spans) add_span(span, rank, t, start + clock.offset, text);
  }
  return text.substr(0, text.size() - 2);  // without the last comma
}

void JobTrace::write(Communicator& world, const std::filesystem::path& path) const {
  const bool root = world.rank() == 0;
  const std::vector<TraceTrack> tracks = trace_.tracks();
  const std::string mine = trace_events(tracks, world.rank(), host_name(), start_, clock_);
  std::optional<Destination> destination;
  run_on_first_rank(world, [&] {
    destination.emplace(path);
    destination->write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  });
  for (int rank = 0; rank < world.size(); ++rank) {
    const std::string text = to_root(world, rank, mine);
    if (!root) continue;
    if (rank > 0) destination->write(",\n");
    destination->write(text);
  }
  run_on_first_rank(world, [&] {
    destination->write("\n]}\n");
    destination->finish();
  });
  warn_of_dropped(world, tracks, trace_.most());
}

}  // namespace tpudist
