#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "statistics/intervals/run_score_table.hpp"
#include "tests/support/level_sequence.hpp"

namespace tpudist {

// The scores of tests/golden/statistics_intervals.py: 7 graphs of 4 families by 3 runs, `seed` 1 or
// 11 there. Out of fold the graphs lie in two folds.
inline RunScoreTable golden_scores(std::uint64_t seed, bool out_of_fold = false) {
  const auto graph = test::level_sequence(7, seed, 400),
             run = test::level_sequence(3, seed + 1, 90),
             cell = test::level_sequence(21, seed + 2, 120);
  RunScoreTable result;
  for (std::size_t g = 0; g < 7; ++g) {
    result.graphs.push_back("g" + std::to_string(g));
    result.families.emplace_back(1, "aaabbcd"[g]);
    if (out_of_fold) result.folds.push_back("0001101"[g] - '0');
    auto& own = result.scores.emplace_back();
    for (std::size_t r = 0; r < 3; ++r)
      own.push_back(0.4 + (graph[g] + run[r] + cell[3 * g + r]) / 1000);
  }
  return result;
}

inline RunScoreTable first_run_of(RunScoreTable scores) {
  for (auto& own : scores.scores) own.resize(1);
  return scores;
}

}  // namespace tpudist
