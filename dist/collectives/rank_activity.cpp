#include "dist/collectives/rank_activity.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "core/numbers.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

using Fields = std::map<std::string, std::string, std::less<>>;

template <typename T>
bool read(const Fields& fields, std::string_view key, T& value) {
  const auto field = fields.find(key);
  if (field == fields.end()) return false;
  const std::string& text = field->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

bool read(const Fields& fields, std::string_view key, std::string& value) {
  const auto field = fields.find(key);
  if (field == fields.end()) return false;
  value = field->second;
  return true;
}

bool read(const Fields& fields, std::string_view key, bool& value) {
  int number = 0;
  if (!read(fields, key, number)) return false;
  value = number != 0;
  return true;
}

}  // namespace

std::string to_text(const RankStatus& p) {
  return fmt::format(
      "beat {}\nrank {}\nhost {}\nprocess {}\nspace {}\nphase {}\nstep {}\ncollective {}\ncall "
      "{}\nbytes {}\n"
      "waiting {:d}\npatient {:d}\nfailed {:d}\nfinished {}\nsilent {:.3f}\nend {}\n",
      p.beat, p.rank, p.host, p.process, p.space, p.phase, p.step, p.collective, p.call, p.bytes,
      p.waiting, p.patient, p.failed, p.finished, p.silent, p.beat);
}

std::optional<RankStatus> parse_status(std::string_view text) {
  Fields fields;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    fields[line.substr(0, space)] = std::string(trim(line.substr(space + 1)));
  }
  RankStatus p;
  std::uint64_t end = 0;
  const bool whole = read(fields, "beat", p.beat) && read(fields, "end", end) && p.beat == end &&
                     read(fields, "rank", p.rank) && read(fields, "host", p.host) &&
                     read(fields, "process", p.process) && read(fields, "space", p.space) &&
                     read(fields, "phase", p.phase) && read(fields, "step", p.step) &&
                     read(fields, "collective", p.collective) && read(fields, "call", p.call) &&
                     read(fields, "bytes", p.bytes) && read(fields, "waiting", p.waiting) &&
                     read(fields, "patient", p.patient) && read(fields, "failed", p.failed) &&
                     read(fields, "finished", p.finished) && read(fields, "silent", p.silent);
  if (!whole) return std::nullopt;
  return p;
}

std::string describe(const RankStatus& status) {
  std::string text = status.phase;
  if (status.step >= 0) text += fmt::format(", step {}", status.step);
  if (status.collective == 0) return text + ", before the first collective";
  const char* where = status.waiting ? "in" : "after";
  return text + fmt::format(", {} collective {} ({}, {})", where, status.collective, status.call,
                            format_bytes(static_cast<std::uint64_t>(status.bytes)));
}

void RankActivity::enter(const char* phase, std::int64_t step) {
  phase_ = phase;
  step_ = step;
  advance();
}

void RankActivity::fail() {
  failed_behind_ = collective_.load();
  failed_ = true;
}

RankStatus RankActivity::status() const {
  RankStatus status;
  status.phase = phase_;
  status.step = step_;
  status.collective = collective_;
  status.call = call_;
  status.bytes = bytes_;
  status.waiting = waiting_;
  status.patient = patient_;
  status.failed = failed_;
  status.finished = finished_;
  return status;
}

RankActivity::Collective::Collective(RankActivity* activity, const char* call, std::size_t bytes,
                                     bool patient)
    : activity_(activity) {
  if (!activity_) return;
  activity_->call_.store(call, std::memory_order_relaxed);
  activity_->bytes_.store(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  activity_->patient_.store(patient, std::memory_order_relaxed);
  activity_->collective_.fetch_add(1, std::memory_order_relaxed);
  activity_->waiting_.store(true, std::memory_order_release);
}

RankActivity::Collective::~Collective() {
  if (!activity_) return;
  activity_->waiting_.store(false, std::memory_order_relaxed);
  activity_->patient_.store(false, std::memory_order_relaxed);
  activity_->advance();
}

}  // namespace tpudist
