#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "results/inspect/suspect_graphs.hpp"

namespace tpudist {

// A page (results/report/page.hpp) on the measurements of layout collections and what the entropy filter
// would remove of them, with the threshold that was checked: the spread of run times, run times in
// the order of measurement with the filtered rows marked, and violation ratios against run times
// (results/report/output_violations.hpp). All graphs with run times are in its tables; pictures are of 20 a
// collection, suspects first, then those of which most is filtered. A picture has at most 5,000
// filtered rows and 2,000 others, evenly drawn, and says how many. Throws DataError or IoError.
std::string run_times_html(const std::filesystem::path& shards,
                           std::span<const CheckedCollection> collections);

}  // namespace tpudist
