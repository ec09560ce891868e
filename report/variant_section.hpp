#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "report/report_input.hpp"
#include "report/report_section.hpp"

namespace tpudist {

// "title: text", or the text alone where there is one variant only, which has no title.
std::string about(const ReportedVariant& variant, std::string_view text);

// Fills a section with the figures of each variant that is shown in charts of its own. Where `add` adds
// no figure for a variant, `missing` says what would give one.
ReportSection variant_section(
    const ReportInput& input, ReportSection section, std::string_view missing,
    const std::function<void(const ReportedVariant& variant, ReportSection& section)>& add);

// Adds a figure unless its table has no rows.
void add_figure(ReportSection& section, ReportFigure figure);

}  // namespace tpudist
