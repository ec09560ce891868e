#pragma once

#include <filesystem>
#include <string_view>

#include "data/schema/collection.hpp"

namespace tpudist {

// Beside the splits of an own collection: what its arrays do not say.
inline constexpr std::string_view kSchemaName = "schema.yaml";

// The collection with the schema of its sources below `npz_root`. TpuGraphs' five have always that
// of the data set. For own data the widths are those of the first file whose arrays have any, and
// without node_opcode there are no opcodes; graphs of TpuGraphs' widths have its columns and number
// of opcodes. What a file schema.yaml says comes first. Throws ConfigError with the mistakes of that
// file, and where one lies beside TpuGraphs' own graphs.
Collection with_source_schema(const std::filesystem::path& npz_root, Collection collection);

}  // namespace tpudist
