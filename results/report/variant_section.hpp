#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "results/report/report_input.hpp"
#include "results/report/report_section.hpp"

namespace tpudist {

// "title: text"; only the text for a single variant, which has no title.
std::string about(const ReportedVariant& variant, std::string_view text);

// The variants of one collection that are shown in charts. All charts have one scale, and one
// colour per variant.
struct VariantGroup {
  std::string collection;
  std::string file_end;  // distinguishes this collection's files from others: "" or "-2"
  std::vector<const ReportedVariant*> variants;
  bool several_collections = false;

  bool several() const { return variants.size() > 1; }
  const std::string& metric() const { return variants.front()->metric; }
  // "Heading", with the collection if there are several.
  std::string heading(const std::string& text) const;
  // A legend entry for each of several variants, with the mark "s" (line) or "f" (dot); else empty.
  std::vector<LegendEntry> colours(const std::string& mark) const;
};

// Adds the figures of each collection to a section.
ReportSection group_section(
    const ReportInput& input, ReportSection section,
    const std::function<void(const VariantGroup& group, ReportSection& section)>& add);

// Adds a figure unless its table has no rows.
void add_figure(ReportSection& section, ReportFigure figure);

// Reports once what all these variants lack, with their names unless they are the whole group.
void add_missing(ReportSection& section, const VariantGroup& group,
                 const std::vector<const ReportedVariant*>& lacking, const std::string& text);

}  // namespace tpudist
