// How often the intervals, tests and verdicts of statistics/ are right where the truth is known: 400
// simulated experiments for each case, the same ones in every run. Standard errors in brackets.
//
//   build/release/bench/statistics_calibration [REPEATS] [designs|beyond|looks|margin|deviations|
//       pairs|collapses|unequal|promise|gain|slowdowns]
//   build/release/bench/statistics_calibration [REPEATS] promise RANKED.json
//
// The last form splits the families of trained runs: RANKED.json is the output of `tpudist rank --json`.
#include <cstdlib>

#include "bench/calibration.hpp"

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 400;
  if (repeats < 1) {
    fmt::print(stderr, "statistics_calibration: {} is no number of repeats\n", argv[1]);
    return 2;
  }
  const std::string_view part = argc > 2 ? argv[2] : "all";
  const auto wanted = [&](std::string_view name) { return part == "all" || part == name; };
  tpudist::calibrate_intervals(wanted, repeats);
  tpudist::calibrate_variants(wanted, repeats);
  tpudist::calibrate_choices(wanted, argc > 3 ? argv[3] : "", repeats);
}
