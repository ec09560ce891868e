#include "statistics/noise/measured_configs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "core/error.hpp"
#include "core/means.hpp"

namespace tpudist {

std::span<const double> MeasuredConfigs::times_of(std::int64_t config) const {
  const auto c = static_cast<std::size_t>(config);
  return std::span(log_times).subspan(static_cast<std::size_t>(begin[c]),
                                      static_cast<std::size_t>(begin[c + 1] - begin[c]));
}

double MeasuredConfigs::mean_of(std::int64_t config) const {
  return mean(times_of(config));
}

double MeasuredConfigs::median_of(std::int64_t config) const {
  const auto times = times_of(config);
  if (times.size() == 1) return times[0];
  return median({times.begin(), times.end()});
}

std::string fault_of_times(std::span<const double> times) {
  const auto bad =
      std::ranges::find_if(times, [](double time) { return !(time > 0) || std::isinf(time); });
  if (bad == times.end()) return {};
  return fmt::format("run time {} of measurement {} is not positive and finite", *bad,
                     bad - times.begin());
}

MeasuredConfigs measured_configs(std::span<const double> times,
                                 std::span<const std::int32_t> config) {
  if (times.size() != config.size()) {
    throw Error(ErrorKind::failed,
                fmt::format("{} run times of {} configurations", times.size(), config.size()));
  }
  if (std::string fault = fault_of_times(times); !fault.empty()) throw DataError(std::move(fault));
  MeasuredConfigs measured;
  measured.whole = std::ranges::all_of(times, [](double time) { return time == std::floor(time); });
  std::unordered_map<std::int32_t, std::int64_t> first;  // row of each configuration
  for (std::size_t i = 0; i < config.size(); ++i)
    first.try_emplace(config[i], static_cast<std::int64_t>(i));
  measured.rows.resize(times.size());
  std::iota(measured.rows.begin(), measured.rows.end(), std::int64_t{0});
  const auto first_of = [&](std::int64_t row) {
    return first.at(config[static_cast<std::size_t>(row)]);
  };
  std::ranges::stable_sort(measured.rows, {}, first_of);
  for (std::size_t i = 0; i < measured.rows.size(); ++i) {
    if (i == 0 || first_of(measured.rows[i]) != first_of(measured.rows[i - 1]))
      measured.begin.push_back(static_cast<std::int64_t>(i));
    measured.log_times.push_back(std::log(times[static_cast<std::size_t>(measured.rows[i])]));
  }
  measured.begin.push_back(static_cast<std::int64_t>(times.size()));
  return measured;
}

}  // namespace tpudist
