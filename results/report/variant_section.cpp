#include "results/report/variant_section.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "core/text.hpp"

namespace tpudist {

std::string about(const ReportedVariant& variant, std::string_view text) {
  return (variant.title.empty() ? "" : variant.title + ": ") + std::string(text);
}

std::string VariantGroup::heading(const std::string& text) const {
  return several_collections ? (text.empty() ? collection : text + " on " + collection) : text;
}

std::vector<LegendEntry> VariantGroup::colours(const std::string& mark) const {
  std::vector<LegendEntry> entries;
  if (!several()) return entries;
  for (const ReportedVariant* variant : variants) {
    const std::string style = fmt::format("{}{}", mark, variant->colour);
    entries.push_back({mark == "s" ? style + " strong" : style, variant->runs.front().variant});
  }
  return entries;
}

ReportSection group_section(
    const ReportInput& input, ReportSection section,
    const std::function<void(const VariantGroup& group, ReportSection& section)>& add) {
  for (std::size_t c = 0; c < input.collections.size(); ++c) {
    const bool several = input.collections.size() > 1;
    VariantGroup group{.collection = input.collections[c],
                       .file_end = several ? fmt::format("-{}", c + 1) : "",
                       .variants = {},
                       .several_collections = several};
    for (std::size_t v = 0; v < input.shown(); ++v) {
      if (input.variants[v].collection == group.collection)
        group.variants.push_back(&input.variants[v]);
    }
    if (!group.variants.empty()) add(group, section);
  }
  return section;
}

void add_figure(ReportSection& section, ReportFigure figure) {
  if (!figure.table.rows.empty()) section.figures.push_back(std::move(figure));
}

void add_missing(ReportSection& section, const VariantGroup& group,
                 const std::vector<const ReportedVariant*>& lacking, const std::string& text) {
  if (lacking.empty()) return;
  std::vector<std::string> names;
  for (const ReportedVariant* variant : lacking) names.push_back(variant->name());
  const std::string who = lacking.size() < group.variants.size() ? join(names, ", ")
                          : group.several_collections            ? group.collection
                                                                 : "";
  section.missing.push_back(who.empty() ? text : who + ": " + text);
}

}  // namespace tpudist
