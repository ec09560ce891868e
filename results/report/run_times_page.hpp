#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/shards/shard_reader.hpp"
#include "results/inspect/suspect_graphs.hpp"

namespace tpudist {

// A page (results/report/page.hpp) on the measurements of layout collections and on the rows that
// the entropy filter would remove with the checked threshold: the spread of run times, run times in
// the order of measurement with filtered rows marked, and violation ratios (output_violations)
// against run times. The tables have all graphs with run times. Pictures show 20 graphs of each
// collection: suspects first, then those with the most filtered rows. A picture has at most 5,000
// filtered and 2,000 other rows, evenly drawn, and says how many. Throws DataError or IoError.
std::string run_times_html(const std::filesystem::path& shards,
                           std::span<const CheckedCollection> collections);

// The violation ratio of each configuration of a layout graph, as
// `model.readout.violation_ratio: output` defines the ratio (docs/configuration.md). A configurable
// node violates if the dimension of its output along the lanes of the TPU, the first of
// minor-to-major, is not the largest. The ratio is the share of such nodes, 0 for a configuration
// in which no node counts. Empty if no node counts in any configuration, and if the schema does not
// say that configurations are orders of dimensions. Throws DataError or IoError.
std::vector<double> output_violations(const GraphEntry& entry);

}  // namespace tpudist
