#pragma once

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string>
#include <string_view>

#include "statistics/intervals/interval.hpp"

namespace tpudist {

// How often something happened.
struct Share {
  int count = 0, of = 0;

  void add(bool happened) {
    count += happened;
    ++of;
  }
  // "95.2 (1.1)": percent and standard error; of nothing "-".
  std::string text() const {
    if (of == 0) return "-";
    const double share = 1.0 * count / of;
    return fmt::format("{:.1f} ({:.1f})", 100 * share, 100 * std::sqrt(share * (1 - share) / of));
  }
};

inline bool contains(const Interval& interval, double value) {
  return interval.low <= value && value <= interval.high;
}

// The parts of statistics_calibration, by question. `wanted` says which of its tables to print.
using WantedTables = std::function<bool(std::string_view name)>;
// Do intervals hold, and do verdicts err as often as they say?
void calibrate_intervals(const WantedTables& wanted, int repeats);
// What do spreads, collapses and several variants do to them?
void calibrate_variants(const WantedTables& wanted, int repeats);
// Is a choice of configurations as good as is said? `ranked`: the graphs of trained runs; may be empty.
void calibrate_choices(const WantedTables& wanted, const std::string& ranked, int repeats);

}  // namespace tpudist
