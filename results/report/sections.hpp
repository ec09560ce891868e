#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "results/report/page.hpp"
#include "results/report/report_input.hpp"

namespace tpudist {

// The sections of a report, each in its own file. A section without content says what is missing.
// One header declares all sections, because a report has all.

// Scores with their two intervals, and the runs with their states.
ReportSection summary_section(const ReportInput& input);
// Loss and validation score of all members by training step.
ReportSection curves_section(const ReportInput& input);
// The score of every graph, with interval and noise ceiling.
ReportSection graphs_section(const ReportInput& input);
// Out-of-fold scores by seed and fold.
ReportSection folds_section(const ReportInput& input);
// The shares of graphs, runs and the rest in the variance of scores.
ReportSection variance_section(const ReportInput& input);
// The score of ensembles of fewer members.
ReportSection sizes_section(const ReportInput& input);
// Slowdown of the best of the k first-ranked configurations against the fastest configuration.
ReportSection slowdown_section(const ReportInput& input);
// Time of a step, and the share of it that waited for data.
ReportSection timing_section(const ReportInput& input);
// Settings and hashes.
ReportSection configuration_section(const ReportInput& input);

// For the sections above.

// All runs with their state and scores; a run in training has the scores so far.
ReportFigure runs_figure(const ReportInput& input);
// The run with the highest score so far, if no run has final scores; empty if there is none.
std::string headline_so_far(const ReportInput& input);

// "title: text"; only the text for a single variant, which has no title.
std::string about(const ReportedVariant& variant, std::string_view text);

// The variants of one collection that are shown in charts. All charts have one scale, and one
// colour per variant.
struct VariantGroup {
  std::string collection;
  std::string file_end;  // distinguishes this collection's files from others: "" or "-2"
  std::vector<const ReportedVariant*> variants = {};
  bool several_collections = false;

  bool several() const { return variants.size() > 1; }
  const std::string& metric() const { return variants.front()->metric; }
  // An empty figure with "heading", and with the collection if there are several. In the table,
  // "variant" is the first column if there are several.
  ReportFigure figure(const std::string& heading, const std::string& table,
                      std::vector<TableColumn> columns) const;
  // Adds a row to the table of such a figure.
  void add_row(ReportFigure& figure, const ReportedVariant& variant, TextTable::Row row) const;
  // A legend entry for each of several variants, with the mark "s" (line) or "f" (dot); else empty.
  std::vector<ReportFigure::LegendEntry> colours(const std::string& mark) const;
};

// Adds the figures of each collection to a section.
ReportSection group_section(
    const ReportInput& input, ReportSection section,
    const std::function<void(const VariantGroup& group, ReportSection& section)>& add);

// Adds a figure unless its table has no rows.
void add_figure(ReportSection& section, ReportFigure figure);

// Reports once what the variants lack for which `has` is false, with their names unless they are
// the whole group.
void add_missing(ReportSection& section, const VariantGroup& group,
                 const std::function<bool(const ReportedVariant&)>& has, const std::string& text);

}  // namespace tpudist
