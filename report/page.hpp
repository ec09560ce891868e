#pragma once

#include <span>
#include <string>

#include "report/report_section.hpp"

namespace tpudist {

// A standalone page: one HTML file that is also well-formed XML, loads nothing, and follows the
// reader's light or dark scheme. Its only script, page_script(), sorts tables; without it nothing
// is missing. Charts are drawn twice, for wide and for narrow screens. The same arguments give the
// same bytes.
std::string page_html(const std::string& title, const std::string& subtitle,
                      std::span<const ReportFact> facts, std::span<const ReportSection> sections);

}  // namespace tpudist
