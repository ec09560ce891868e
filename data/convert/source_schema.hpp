#pragma once

#include <filesystem>
#include <string_view>

#include "data/schema/collection.hpp"

namespace tpudist {

// A file beside the splits of an own collection, for what the arrays do not say.
inline constexpr std::string_view kSchemaName = "schema.yaml";

// The collection with the schema of its sources below `npz_root`. TpuGraphs' five always have the
// schema of the data set. For own data, the first file whose arrays have widths gives the widths.
// Graphs with TpuGraphs' widths have its columns with a meaning. The number of opcodes is
// TpuGraphs', or 0 without node_opcode. A file schema.yaml overrides all this. Throws ConfigError
// with that file's mistakes, and for a schema.yaml beside TpuGraphs' own graphs.
Collection with_source_schema(const std::filesystem::path& npz_root, Collection collection);

}  // namespace tpudist
