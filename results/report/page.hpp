#pragma once

#include <span>
#include <string>
#include <string_view>

#include "results/report/report_section.hpp"

namespace tpudist {

// The style sheet of a page, without characters that XML would need to escape.
std::string_view page_style();

// The script that sorts the rows of a table by the clicked column; a second click reverses the
// order. The text has no '<' and no '&', so that the page stays XML.
std::string_view page_script();
// SHA-256 of the script in base64: the page's security policy allows only this script.
std::string_view page_script_hash();

// A table as an HTML element; columns of numbers are right-aligned.
std::string table_html(const TextTable& table);

// A standalone page: one HTML file that is also well-formed XML, loads nothing, and follows the
// reader's light or dark scheme. The only script, page_script(), sorts tables; the page is complete
// without scripts. Charts are drawn twice, for wide and for narrow screens. The same arguments give
// the same bytes. `command`: the command that wrote the page.
std::string page_html(const std::string& title, const std::string& subtitle,
                      std::span<const ReportFact> facts, std::span<const ReportSection> sections,
                      std::string_view command = "report");

}  // namespace tpudist
