#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "results/inspect/suspect_graphs.hpp"

namespace tpudist {

// A page (results/report/page.hpp) on the measurements of layout collections and on the rows that
// the entropy filter would remove with the checked threshold: the spread of run times, run times in
// the order of measurement with filtered rows marked, and violation ratios (output_violations.hpp)
// against run times. The tables have all graphs with run times. Pictures show 20 graphs of each
// collection: suspects first, then those with the most filtered rows. A picture has at most 5,000
// filtered and 2,000 other rows, evenly drawn, and says how many. Throws DataError or IoError.
std::string run_times_html(const std::filesystem::path& shards,
                           std::span<const CheckedCollection> collections);

}  // namespace tpudist
