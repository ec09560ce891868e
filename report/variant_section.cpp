#include "report/variant_section.hpp"

#include <cstddef>
#include <utility>

namespace tpudist {

std::string about(const ReportedVariant& variant, std::string_view text) {
  return (variant.title.empty() ? "" : variant.title + ": ") + std::string(text);
}

ReportSection variant_section(
    const ReportInput& input, ReportSection section, std::string_view missing,
    const std::function<void(const ReportedVariant& variant, ReportSection& section)>& add) {
  for (std::size_t v = 0; v < input.shown(); ++v) {
    const ReportedVariant& variant = input.variants[v];
    const std::size_t before = section.figures.size();
    add(variant, section);
    if (section.figures.size() == before) section.missing.push_back(about(variant, missing));
  }
  return section;
}

void add_figure(ReportSection& section, ReportFigure figure) {
  if (!figure.table.rows.empty()) section.figures.push_back(std::move(figure));
}

}  // namespace tpudist
