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

// A sentence each on opcodes and on element types that the features do not know; none without such.
std::vector<std::string> unknown_parts(const HloGraph& graph);

// Writes the configuration of a run: [nodes, 18] for LayoutConfig, [24] for TileSizeConfig. Throws
// DataError, beginning with `where`, where it has other nodes or more than three tensors.
void write_layout_config(std::span<const char> config, std::span<float> to, std::string_view where);
void write_tile_config(std::span<const char> config, std::span<float> to, std::string_view where);

// Writes a tuned module as the data set's NPZ of it; its file must still be open. Warns of opcodes and
// element types that the features do not know. Throws DataError, beginning with `where`, and IoError.
void write_tuned_npz(const TunedModule& tuned, const std::string& where,
                     const std::filesystem::path& npz);

// The space of a module whose layouts are configured, in groups of operations that change together.
// Default states come from `assigned`, the same program after layout assignment (may be empty), else
// from the default run of the module; else they descend. Appends to `warnings` what is guessed.
// Throws DataError, beginning with `where` or the other file, and IoError.
LayoutSpace known_space(const TunedModule& tuned, const std::filesystem::path& assigned,
                        const std::string& where, std::vector<std::string>& warnings);

// Writes a graph with configurations of its space, without run times. Throws IoError.
void write_configured_npz(const HloGraph& graph, const LayoutSpace& space,
                          const std::vector<LayoutConfig>& configs,
                          const std::filesystem::path& npz);

}  // namespace tpudist
