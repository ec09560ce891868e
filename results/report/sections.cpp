#include "results/report/sections.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "core/text.hpp"

namespace tpudist {

std::string about(const ReportedVariant& variant, std::string_view text) {
  return (variant.title.empty() ? "" : variant.title + ": ") + std::string(text);
}

ReportFigure VariantGroup::figure(const std::string& heading, const std::string& table,
                                  std::vector<TableColumn> columns) const {
  if (several()) columns.emplace(columns.begin(), "variant");
  ReportFigure figure;
  figure.heading = heading;
  if (several_collections)
    figure.heading = heading.empty() ? collection : heading + " on " + collection;
  figure.table = {std::move(columns), {}, table + file_end};
  return figure;
}

void VariantGroup::add_row(ReportFigure& figure, const ReportedVariant& variant,
                           TextTable::Row row) const {
  if (several()) row.emplace(row.begin(), variant.runs.front().variant);
  figure.table.rows.push_back(std::move(row));
}

std::vector<ReportFigure::LegendEntry> VariantGroup::colours(const std::string& mark) const {
  std::vector<ReportFigure::LegendEntry> entries;
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
                 const std::function<bool(const ReportedVariant&)>& has, const std::string& text) {
  std::vector<std::string> names;
  for (const ReportedVariant* variant : group.variants)
    if (!has(*variant)) names.push_back(variant->name());
  if (names.empty()) return;
  const std::string who = names.size() < group.variants.size() ? join(names, ", ")
                          : group.several_collections          ? group.collection
                                                               : "";
  section.missing.push_back(who.empty() ? text : who + ": " + text);
}

}  // namespace tpudist
