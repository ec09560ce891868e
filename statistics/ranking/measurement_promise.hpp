#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace tpudist {

// How many of the configurations that a ranking puts first have to be measured, to come close to
// the best configuration of the list?

// For one graph: the smallest k such that the best time among the k lowest scores is at most
// (1 + within) times the best time of all. Counts distinct configurations: `config` [n] has equal
// numbers for equal configurations, empty: all rows differ. Repeated measurements count with their
// mean; of tied scores the slow ones come first, so that the order of a file promises nothing.
// Nothing if fewer than two configurations differ, a score is not finite, or a time is not finite
// and above 0. Throws Error if lengths differ.
std::optional<std::int64_t> needed_measurements(std::span<const double> scores,
                                                std::span<const double> times, double within,
                                                std::span<const std::int32_t> config = {});

struct MeasurementPromise {
  std::int64_t count = 0;        // configurations to measure; 0: nothing can be promised
  int families = 0, graphs = 0;  // that it was learned from
  int least_families = 0;        // without so many nothing can be promised at this confidence
};

// For a new program of a new family: `count` is enough with at least this confidence, if the new
// family and those of the G graphs are exchangeable. Hierarchical conformal prediction (Lee, Barber
// and Willett, "Distribution-free inference with hierarchical data", 2023): of F families, a graph
// of family f with n_f graphs weighs 1 / ((F + 1) n_f), and 1 / (F + 1) lies at infinity; `count`
// is the smallest need at which the weights reach the confidence. Graphs of a family may be alike
// in any way. `families` and `needed` [G]; 0 < confidence < 1.
MeasurementPromise promise_measurements(std::span<const std::string> families,
                                        std::span<const std::int64_t> needed, double confidence);

}  // namespace tpudist
