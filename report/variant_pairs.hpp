#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/report_input.hpp"
#include "statistics/interval.hpp"

namespace tpudist {

// The difference between two variants of one collection, A minus B, by the mean of members.
struct VariantPair {
  std::size_t a = 0, b = 0;  // places in ReportInput::variants
  double difference = 0;
  // These graphs, other trainings: simultaneous 95 % interval and p, adjusted for all pairs
  // (all_pairs). Both variants need two trainings.
  std::optional<Interval> trainings = {};
  std::optional<double> p = {};
  std::optional<Interval> families = {};  // other families, 95 % for this pair alone

  bool shown() const { return p && *p < 0.05; }
};

// The variants of one collection beside each other.
struct VariantComparison {
  bool out_of_fold = false;           // else validation graphs
  std::vector<std::size_t> variants;  // with scores, in the order of ReportInput::variants
  std::size_t best = 0;               // the one with the highest score
  std::vector<VariantPair> pairs;     // a before b; none of a single variant
  std::string method;  // of p: "Tukey", or "Welch and Holm"
  std::string refusal;  // why they cannot be compared (other data, other rows); then without pairs

  // best minus another one, in terms of the pair that is listed: 1, or -1 where best is its b.
  static double sign(const VariantPair& pair, std::size_t best) { return pair.a == best ? 1 : -1; }
};

// A sweep's variants on the graphs that it chooses by, or out of fold where it chooses nothing and there
// are such scores; others on validation graphs where there are scores of them.
VariantComparison compare_variants(const ReportInput& input, const std::string& collection);

}  // namespace tpudist
