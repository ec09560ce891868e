#include "train/experiment/read_fault_tolerance.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>

#include "core/duration.hpp"

namespace tpudist {
namespace {

// Seconds. `words`: other allowed values of the key.
double duration_of(ConfigNode& node, const char* key, const std::string& text,
                   const char* words = "") {
  const std::optional<double> seconds = parse_duration(text);
  if (!seconds) {
    node.mistake(key, fmt::format("must be {}a time such as 90 (seconds), 45m, 7h30m or 1:30:00, "
                                  "at most 1e9 s, not \"{}\"",
                                  words, text));
  }
  return seconds.value_or(0);
}

}  // namespace

TimeLimitConfig read_time_limit(ConfigNode& train) {
  const std::string text = train.text("time_limit", "auto");
  if (text == "auto") return {};
  if (text == "none") return {.seconds = std::nullopt, .slurm = false};
  return {.seconds = duration_of(train, "time_limit", text, "`auto`, `none` or "), .slurm = true};
}

BadLossConfig read_bad_loss(ConfigNode& train, const TrainConfig& config) {
  BadLossConfig bad_loss;
  const std::string policy = train.choice("on_bad_loss", "stop", {"stop", "skip", "roll_back"});
  bad_loss.policy = policy == "skip"        ? BadLossPolicy::skip
                    : policy == "roll_back" ? BadLossPolicy::roll_back
                                            : BadLossPolicy::stop;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  bad_loss.above = train.number("bad_loss_above", kInfinity, {0, kInfinity});
  if (bad_loss.policy == BadLossPolicy::roll_back && config.checkpoint_every == 0) {
    train.mistake("on_bad_loss",
                  "rolls members back to the last regular checkpoint, and there are none: give "
                  "train.checkpoint_every");
  }
  return bad_loss;
}

double read_timeout(ConfigNode& dist) {
  return duration_of(dist, "timeout", dist.text("timeout", "10m"));
}

}  // namespace tpudist
