// How often an interval for other families holds the truth where BERTs score alike:
//
//     kin_table [REPEATS]
//
// "apart": every family is taken as independent; "together": BERTs as one. The
// effects of two BERT families correlate by 0, 0.5 or 0.8; half of a graph's variance is its
// family's. Where all families are BERTs the truth is the mean of all BERTs. One training, so that
// only families vary.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "statistics/intervals/score_intervals.hpp"

namespace tpudist {
namespace {

struct Design {
  const char* name;
  std::vector<int> berts, others;  // graphs of each family
};

RunScoreTable draw(const Design& design, double alike, std::uint64_t key) {
  CounterRng random(key);
  RunScoreTable table;
  const double common = design.others.empty() ? 0 : random.normal();
  const auto add = [&](const std::string& family, double effect, int graphs) {
    for (int g = 0; g < graphs; ++g) {
      table.graphs.push_back(fmt::format("{} {}", family, g));
      table.families.push_back(family);
      table.scores.push_back({0.12 * std::sqrt(0.5) * (effect + random.normal())});
    }
  };
  for (std::size_t f = 0; f < design.berts.size(); ++f)
    add(fmt::format("kin_l{}", f),
        std::sqrt(alike) * common + std::sqrt(1 - alike) * random.normal(), design.berts[f]);
  for (std::size_t f = 0; f < design.others.size(); ++f)
    add(fmt::format("other{}", f), random.normal(), design.others[f]);
  return table;
}

void print_line(const Design& design, double alike, int repeats) {
  int apart = 0, together = 0;
  double width_apart = 0, width_together = 0, degrees = 0;
  for (int key = 0; key < repeats; ++key) {
    RunScoreTable table = draw(design, alike, mix_key({static_cast<std::uint64_t>(key), 79}));
    const auto add = [&](int& held, double& width) {
      const Interval found = family_interval({&table, 1})->interval;
      held += found.low <= 0 && 0 <= found.high;
      width += (found.high - found.low) / 2 / repeats;
      degrees = found.degrees;
    };
    add(apart, width_apart);
    for (std::string& family : table.families) {
      if (family.starts_with("kin")) family.replace(0, 3, "bert");
    }
    add(together, width_together);
  }
  fmt::print("| {} | {:.1f} | {:.1f} % | {:.3f} | {:.1f} % | {:.3f} | {:.2g} |\n", design.name,
             alike, 100.0 * apart / repeats, width_apart, 100.0 * together / repeats,
             width_together, degrees);
}

}  // namespace
}  // namespace tpudist

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 4000;
  fmt::print(
      "{} repeats\n\n| graphs of BERTs and others | alike | apart | half width | together | half "
      "width | degrees |\n|---|---|---|---|---|---|---|\n",
      repeats);
  for (const tpudist::Design& design :
       std::vector<tpudist::Design>{{"5 x 1, 4 x 1", {1, 1, 1, 1, 1}, {1, 1, 1, 1}},
                                    {"4/4/3/3/2, 4 x 1", {4, 4, 3, 3, 2}, {1, 1, 1, 1}},
                                    {"4/3/2/1/1, 4/3/1/1", {4, 3, 2, 1, 1}, {4, 3, 1, 1}},
                                    {"3 x 1, 6 x 1", {1, 1, 1}, {1, 1, 1, 1, 1, 1}},
                                    {"7 x 1, 2 x 1", {1, 1, 1, 1, 1, 1, 1}, {1, 1}},
                                    {"8 x 1, 1", {1, 1, 1, 1, 1, 1, 1, 1}, {1}},
                                    {"9 x 1, none", std::vector<int>(9, 1), {}}}) {
    for (const double alike : {0.0, 0.5, 0.8}) tpudist::print_line(design, alike, repeats);
  }
}
