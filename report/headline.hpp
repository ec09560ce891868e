#pragma once

#include <string>
#include <vector>

#include "report/report_input.hpp"
#include "report/variant_pairs.hpp"

namespace tpudist {

// The answer of a report in a few sentences with numbers: which variant of a collection won, by how much
// and how sure that is, or that none did; of a single variant what it reached. The first sentence stands
// by itself. Empty where there are no scores.
std::vector<std::string> headline(const ReportInput& input, const VariantComparison& found);

}  // namespace tpudist
