#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/hlo/hlo_features.hpp"
#include "data/hlo/layout_space.hpp"
#include "data/hlo/tuning_file.hpp"

namespace tpudist {

// One sentence on opcodes and one on element types that the features do not know, if there are any.
std::vector<std::string> unknown_parts(const HloGraph& graph);

// Writes the configuration of a run: [nodes, 18] for LayoutConfig, [24] for TileSizeConfig. Throws
// DataError, beginning with `where`, for other nodes or more than three tensors.
void write_layout_config(std::span<const char> config, std::span<float> to, std::string_view where);
void write_tile_config(std::span<const char> config, std::span<float> to, std::string_view where);

// Writes a tuned module, whose file must still be open, as an NPZ of the data set. Warns of opcodes
// and element types unknown to the features. Throws DataError, beginning with `where`, and IoError.
void write_tuned_npz(const TunedModule& tuned, const std::string& where,
                     const std::filesystem::path& npz);

// The layout space of a module, in groups of operations that change together. Default states come
// from `assigned`, the same program after layout assignment (may be empty), else from the module's
// default run; else they descend. Appends guesses to `warnings`. Throws DataError, beginning with
// `where` or the other file, and IoError.
LayoutSpace known_space(const TunedModule& tuned, const std::filesystem::path& assigned,
                        const std::string& where, std::vector<std::string>& warnings);

// Writes a graph with configurations of its space, without run times. Throws IoError.
void write_configured_npz(const HloGraph& graph, const LayoutSpace& space,
                          const std::vector<LayoutConfig>& configs,
                          const std::filesystem::path& npz);

}  // namespace tpudist
