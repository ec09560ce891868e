#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "results/report/charts/charts.hpp"
#include "results/report/report_input.hpp"
#include "statistics/intervals/interval.hpp"

namespace tpudist {

// A mean over graphs with its intervals.
struct ScoreSummary {
  double mean = 0;       // over trainings and graphs
  double deviation = 0;  // between the means of trainings; NaN for a single training
  int trainings = 0, graphs = 0, families = 0;
  std::optional<ChartInterval> these_graphs, other_families;  // 95 %
  // The sample of `these_graphs`: "3 trainings", or "5 members of one training", which says nothing
  // about other trainings; empty without an interval.
  std::string over;
  bool alike = false;  // several trainings score alike: their spread is unknown
  std::string note;    // how kin count, why an interval is missing or narrower; may be empty
};

// Summarises a variant's trainings by the mean of their members, on validation graphs or out of
// fold. Nothing without scores.
std::optional<ScoreSummary> summarise_members(const ReportedVariant& variant, bool out_of_fold);
// Summarises the members of each training together, on validation graphs. With one training
// `these_graphs` is the jackknife over its members.
std::optional<ScoreSummary> summarise_together(const ReportedVariant& variant);

// The ends of an interval; nothing if the spread is unknown (Interval::is_known).
std::optional<ChartInterval> ends_of(const Interval& interval);

// Comparison of the variants of one collection.
struct VariantComparison {
  // The difference of two variants by the mean of members: a minus b, where a is the better one.
  struct Pair {
    std::size_t a = 0, b = 0;  // indices in ReportInput::variants
    double difference = 0;
    // On these graphs, if trained again: simultaneous 95 % interval and p, adjusted for all pairs
    // (all_pairs). Both variants need two trainings.
    std::optional<Interval> trainings = {};
    std::optional<double> p = {};
    // All trainings of both score alike: their spread is unknown, so interval and p are missing.
    bool alike = false;
    std::optional<Interval> families = {};  // other families, 95 % for this pair alone

    bool shown() const { return p && *p < 0.05; }
  };

  bool out_of_fold = false;           // otherwise on validation graphs
  std::vector<std::size_t> variants;  // those with scores, in the order of ReportInput::variants
  std::size_t best = 0;               // the variant with the highest score
  std::vector<Pair> pairs;            // pairs of the best variant first; empty for one variant
  std::string method;                 // of p: AllPairs::test_name
  std::string refusal;  // why they cannot be compared (different data or rows); then no pairs
};

// Compares a sweep's variants on the graphs by which it chooses (no choice: out of fold, if
// scored), and those of a confirming stage or of no sweep on validation graphs. Without such
// scores, compares on the other kind of graphs.
VariantComparison compare_variants(const ReportInput& input, const std::string& collection);

// The answer of a report in a few sentences with numbers: which variant of a collection scores
// higher, by how much and how certain, or that no variant is shown to be better. For a single
// variant, its score. The first sentence is complete by itself. Empty without scores.
std::vector<std::string> headline(const ReportInput& input, const VariantComparison& found);

}  // namespace tpudist
