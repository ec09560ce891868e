#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "report/report_input.hpp"
#include "report/report_section.hpp"

namespace tpudist {

// "title: text", or the text alone where there is one variant only, which has no title.
std::string about(const ReportedVariant& variant, std::string_view text);

// The variants of one collection that are shown in charts, which share them: one scale, and the colour
// of each variant in all of them.
struct VariantGroup {
  std::string collection;
  std::string file_end;  // tells files of this collection from those of others: "" or "-2"
  std::vector<const ReportedVariant*> variants;
  bool several_collections = false;

  bool several() const { return variants.size() > 1; }
  const std::string& metric() const { return variants.front()->metric; }
  // "Heading", with the collection where there are several.
  std::string heading(const std::string& text) const;
  // A legend entry of each variant, in the shape of `mark`: "s" (line) or "f" (dot); none of a single one.
  std::vector<LegendEntry> colours(const std::string& mark) const;
};

// Fills a section with the figures of each collection.
ReportSection group_section(
    const ReportInput& input, ReportSection section,
    const std::function<void(const VariantGroup& group, ReportSection& section)>& add);

// Adds a figure unless its table has no rows.
void add_figure(ReportSection& section, ReportFigure figure);

// Says once what all of these variants lack, with their names unless all of the group do.
void add_missing(ReportSection& section, const VariantGroup& group,
                 const std::vector<const ReportedVariant*>& lacking, const std::string& text);

}  // namespace tpudist
