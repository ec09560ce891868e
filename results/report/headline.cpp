#include "results/report/variant_pairs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/numbers.hpp"
#include "core/text.hpp"
#include "results/scores/table_intervals.hpp"
#include "statistics/intervals/score_intervals.hpp"

namespace tpudist {
namespace {

std::string range(double low, double high) {
  return fmt::format("{:.4f} to {:.4f}", low, high);
}

std::string signed_range(const Interval& interval) {
  return fmt::format("{:+.4f} to {:+.4f}", interval.low, interval.high);
}

class Headline {
 public:
  Headline(const ReportInput& input, const VariantComparison& found)
      : input_(input), found_(found) {}

  std::vector<std::string> sentences() {
    if (found_.variants.empty()) return {};
    for (const VariantComparison::Pair& pair : found_.pairs) {
      if (pair.a == found_.best) leads_.push_back(&pair);
    }
    if (found_.variants.size() == 1) {
      log_one();
    } else if (leads_.empty()) {
      log_unpaired();
      return std::move(texts_);
    } else {
      log_best();
    }
    log_together();
    log_choice();
    return std::move(texts_);
  }

 private:
  const ReportedVariant& best() const { return input_.variants[found_.best]; }
  const std::string& name_of(std::size_t variant) const { return input_.variants[variant].name(); }

  std::string names(const std::vector<const VariantComparison::Pair*>& leads) const {
    std::vector<std::string> names;
    constexpr std::size_t kMost = 4;
    for (const VariantComparison::Pair* lead : leads) {
      if (names.size() < kMost) names.push_back(name_of(lead->b));
    }
    if (leads.size() > kMost) names.push_back(fmt::format("{} more", leads.size() - kMost));
    return join(names, ", ");
  }

  // "Kendall tau 0.7219 (mean of members, 3 trainings, 7 validation graphs of 4 families)"
  std::string score_text(const ScoreSummary& summary) const {
    return fmt::format("{} {:.4f} (mean of members, {}, {}{} of {})", best().metric, summary.mean,
                       counted(summary.trainings, "training"),
                       counted(summary.graphs, found_.out_of_fold ? "graph" : "validation graph"),
                       found_.out_of_fold ? " out of fold" : "",
                       counted(summary.families, "family"));
  }

  void log_one() {
    const ScoreSummary summary = summarise_members(best(), found_.out_of_fold).value();
    texts_.push_back(fmt::format("{} reaches {}.", best().name(), score_text(summary)));
    if (summary.alike) {
      texts_.push_back(alike_line("Scores of all trainings") + ".");
    } else if (summary.trainings > 1) {
      texts_.push_back(fmt::format("Other trainings on these graphs: {} (95 %).",
                                   range(summary.these_graphs->low, summary.these_graphs->high)));
    } else {
      if (summary.these_graphs) {
        texts_.push_back(fmt::format("Other members of this training: {} (95 %).",
                                     range(summary.these_graphs->low, summary.these_graphs->high)));
      }
      texts_.push_back("How far another training would score, one training cannot tell.");
    }
    if (summary.other_families) {
      texts_.push_back(fmt::format(
          "{} other model families: {}.",
          summary.trainings > 1 ? "Other trainings on" : "The average member of this training on",
          range(summary.other_families->low, summary.other_families->high)));
    }
    if (!summary.alike) log_collapses();
  }

  // Names the risk that an interval for other trainings does not cover.
  void log_collapses() {
    const RunScoreTable& own = found_.out_of_fold ? best().out_of_fold : best().valid;
    if (own.run_count() > 1) texts_.push_back("Collapses: " + collapse_line(own) + ".");
  }

  void log_unpaired() {
    texts_.push_back("The variants are not compared: they were not scored on the same data.");
    if (!found_.refusal.empty()) texts_.push_back(found_.refusal + ".");
  }

  void log_best() {
    const ScoreSummary summary = summarise_members(best(), found_.out_of_fold).value();
    const VariantComparison::Pair& next = *leads_.front();
    std::vector<const VariantComparison::Pair*> beaten, tied;
    bool tested = true, alike = false;
    for (const VariantComparison::Pair* lead : leads_) {
      alike = alike || lead->alike;
      (lead->shown() ? beaten : tied).push_back(lead);
      tested = tested && lead->p.has_value();
    }
    if (!tested) {
      texts_.push_back(
          fmt::format("No winner can be named: {} has the highest score, {}, {:.4f} more than {}.",
                      best().name(), score_text(summary), next.difference, name_of(next.b)));
      texts_.push_back(
          alike ? "Whether training again would agree is not known: all trainings of two variants "
                  "score alike, which says nothing of their spread."
                : "Whether training again would agree, a variant with a single training cannot "
                  "tell: train at least 3 seeds of each, a number that you fix beforehand.");
    } else if (tied.empty()) {
      texts_.push_back(fmt::format(
          "{} scores higher on these graphs if trained again: {}, {:.4f} more than {}{}.",
          best().name(), score_text(summary), next.difference, name_of(next.b),
          leads_.size() > 1 ? ", the next best" : ""));
    } else {
      texts_.push_back(
          fmt::format("Undecided: {} has the highest score, {}, but the {:.4f} that it is ahead of "
                      "{} may be luck of its trainings.",
                      best().name(), score_text(summary), next.difference, name_of(next.b)));
    }
    if (tested) {
      texts_.push_back(fmt::format(
          "Other trainings on these graphs: a difference of {} (95 %{}); p {:.3g} ({} decides).",
          signed_range(*next.trainings),
          found_.pairs.size() > 1 ? fmt::format(", all {} pairs at once", found_.pairs.size()) : "",
          *next.p, found_.method));
      if (!tied.empty() && !beaten.empty())
        texts_.push_back(fmt::format("It is better than {}.", names(beaten)));
      if (tied.size() > 1)
        texts_.push_back(fmt::format("It is not told apart from {}.", names(tied)));
    }
    if (next.families) {
      texts_.push_back(fmt::format(
          "On other model families the difference {}may be {} (95 %){}.",
          tested ? "" : "of these trained models ", signed_range(*next.families),
          next.families->low > 0 ? ""
                                 : fmt::format(", so {} may be better there", name_of(next.b))));
    }
    if (tested) log_collapses();
  }

  void log_together() {
    const auto own = summarise_together(best());
    if (!own) return;
    std::string text = fmt::format("Its members together reach {:.4f}{}", own->mean,
                                   found_.out_of_fold ? " on validation graphs" : "");
    std::size_t first = found_.best;
    double highest = own->mean;
    for (const std::size_t v : found_.variants) {
      const auto other = summarise_together(input_.variants[v]);
      if (other && other->mean > highest) highest = other->mean, first = v;
    }
    if (first != found_.best)
      text += fmt::format("; by this second number {} is first ({:.4f})", name_of(first), highest);
    texts_.push_back(text + ".");
  }

  // The number of variants in the first stage of this group, including those that a rung dropped.
  std::ptrdiff_t variants_begun() const {
    const SweepRecord& sweep = *input_.results.sweep;
    const std::string& label = input_.variants[found_.best].runs.front().variant;
    const auto at =
        static_cast<std::size_t>(std::ranges::find(sweep.labels, label) - sweep.labels.begin());
    if (at >= sweep.variant_group.size()) return std::ssize(found_.variants);
    return std::ranges::count(sweep.variant_group, sweep.variant_group[at]);
  }

  void log_choice() {
    if (!input_.results.sweep) return;
    const SweepRecord& sweep = *input_.results.sweep;
    for (const Stage& stage : sweep.stages) {
      if (stage.name != input_.results.stage) continue;
      if (stage.confirms) {
        texts_.push_back(fmt::format("These are the fresh seeds that confirm the choice, on {}.",
                                     sweep.confirmed_on));
      } else if (const auto begun = variants_begun(); begun > 2) {
        texts_.push_back(
            fmt::format("The best of {} variants looks better than it is: its score has to be "
                        "confirmed by fresh seeds.",
                        begun));
      }
    }
  }

  const ReportInput& input_;
  const VariantComparison& found_;
  std::vector<const VariantComparison::Pair*>
      leads_;  // the best variant against the others, by difference
  std::vector<std::string> texts_;
};

}  // namespace

std::vector<std::string> headline(const ReportInput& input, const VariantComparison& found) {
  return Headline(input, found).sentences();
}

}  // namespace tpudist
