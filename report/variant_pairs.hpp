#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/report_input.hpp"
#include "statistics/intervals/interval.hpp"

namespace tpudist {

// The difference between two variants of one collection, A minus B, by the mean of members.
struct VariantPair {
  std::size_t a = 0, b = 0;  // indices in ReportInput::variants
  double difference = 0;
  // These graphs, other trainings: simultaneous 95 % interval and p, adjusted for all pairs
  // (all_pairs). Both variants need two trainings.
  std::optional<Interval> trainings = {};
  std::optional<double> p = {};
  // All trainings of both score alike: their spread is not known, and both of these are missing.
  bool alike = false;
  std::optional<Interval> families = {};  // other families, 95 % for this pair alone

  bool shown() const { return p && *p < 0.05; }
};

// Comparison of the variants of one collection.
struct VariantComparison {
  bool out_of_fold = false;           // otherwise on validation graphs
  std::vector<std::size_t> variants;  // those with scores, in the order of ReportInput::variants
  std::size_t best = 0;               // the one with the highest score
  std::vector<VariantPair> pairs;     // a before b; empty for a single variant
  std::string method;                 // of p: "Tukey", or "Welch and Holm"
  std::string refusal;  // why they cannot be compared (different data or rows); then there are no
                        // pairs

  // The sign of best minus the other variant relative to the pair: 1, or -1 if best is its b.
  static double sign(const VariantPair& pair, std::size_t best) { return pair.a == best ? 1 : -1; }
};

// Compares a sweep's variants on the graphs that it chooses by; if it chooses nothing, out of fold
// if there are such scores. Compares other variants on validation graphs if there are scores.
VariantComparison compare_variants(const ReportInput& input, const std::string& collection);

}  // namespace tpudist
