#pragma once

#include <string>
#include <vector>

#include "results/report/report_input.hpp"
#include "results/report/variant_pairs.hpp"

namespace tpudist {

// The answer of a report in a few sentences with numbers: which variant of a collection scores
// higher, by how much and how certain, or that no variant is shown to be better. For a single
// variant, its score. The first sentence is complete by itself. Empty without scores.
std::vector<std::string> headline(const ReportInput& input, const VariantComparison& found);

}  // namespace tpudist
