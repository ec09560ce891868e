#include "report/sections.hpp"

namespace tpudist {

ReportSection variance_section(const ReportInput& input) {
  ReportSection section{.id = "variance", .title = "Where scores differ"};
  static_cast<void>(input);
  return section;
}

}  // namespace tpudist
