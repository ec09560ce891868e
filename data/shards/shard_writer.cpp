#include "data/shards/shard_writer.hpp"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "core/hash.hpp"
#include "core/version.hpp"

namespace tpudist {
namespace {

// Bytes that a thread deflates between two synchronisations.
constexpr std::size_t kBytesPerThread = 256 << 10;

}  // namespace

ShardWriter::ShardWriter(const std::filesystem::path& path, const Collection& collection,
                         std::string_view split, ThreadPool& pool)
    : where_(path.string()), pool_(pool), schema_(collection.schema), file_(create_hdf5(path)) {
  write_attribute(file_, "format", kShardFormat);
  write_attribute(file_, "version", kShardVersion);
  write_attribute(file_, "collection", collection.name);
  write_attribute(file_, "split", split);
  write_attribute(file_, "created_by", "tpudist " + std::string(version()));
  if (collection.schema != Collection{collection.name}.schema) {
    schema_fields(schema_, [&]<typename T>(const char* name, const T& value) {
      if constexpr (std::is_same_v<T, ColumnRange>)
        write_attribute(file_, name, to_text(value));
      else
        write_attribute(file_, name, std::int64_t{value});
    });
  }
  create_group(file_, "/graphs", where_);
}

void ShardWriter::begin(const Graph& graph, std::int64_t configs, const SourceFile& source) {
  group_ = create_group(file_, group_name(), where_);
  write_attribute(group_, "name", graph.name);
  write_attribute(group_, "source", source.path);
  write_attribute(group_, "source_size", static_cast<std::int64_t>(source.bytes));
  write_attribute(group_, "source_xxh3", to_hex(source.hash));
  write_attribute(group_, "nodes", graph.nodes);
  write_attribute(group_, "edges", graph.edges);
  write_attribute(group_, "configs", configs);
  const auto config_nodes = static_cast<std::int64_t>(graph.config_nodes.size());
  write_attribute(group_, "config_nodes", config_nodes);

  write<float>("node_feat", {graph.nodes, schema_.node_features}, graph.node_features);
  if (schema_.opcodes > 0) write<std::uint8_t>("node_opcode", {graph.nodes}, graph.opcodes);
  write<std::int32_t>("edge_index", {graph.edges, 2}, graph.edge_index);
  if (config_nodes > 0) write<std::int32_t>("config_nodes", {config_nodes}, graph.config_nodes);
  if (!graph.node_splits.empty()) {
    const auto splits = static_cast<std::int64_t>(graph.node_splits.size());
    write<std::int64_t>("node_splits", {1, splits}, graph.node_splits);
  }
}

Hdf5Dataset ShardWriter::create(const std::string& name, ElementType type,
                                std::vector<std::int64_t> shape, std::size_t chunk_bytes) {
  remove(name);
  return Hdf5Dataset::create(group_, name, type, std::move(shape), where_ + ":" + group_name(),
                             chunk_bytes);
}

void ShardWriter::write(const RunTimes& times) {
  const std::int64_t c = times.configs();
  write<std::int64_t>("runtime", {c}, times.runtime);
  if (!times.normalizer.empty()) {
    write<std::int64_t>("runtime_normalizer", {c}, times.normalizer);
  }
  write<std::int32_t>("config_group", {c}, times.group);
}

void ShardWriter::remove(const std::string& name) {
  if (has_link(group_, name)) remove_link(group_, name, where_);
}

void ShardWriter::end() {
  group_.close();
  ++graphs_;
}

void ShardWriter::drop() {
  if (group_.get() < 0) return;
  group_.close();
  remove_link(file_, group_name(), where_);
}

void ShardWriter::close() {
  write_attribute(file_, "complete", std::int64_t{1});
  const Hdf5Lock lock;  // no other call may overwrite the reason
  check_hdf5(file_.close() ? 0 : -1, "close", where_);
}

ChunkAppender::ChunkAppender(Hdf5Dataset& dataset, ThreadPool& pool)
    : dataset_(dataset), pool_(pool) {
  const std::size_t bytes = static_cast<std::size_t>(dataset.chunk_rows()) * dataset.row_bytes();
  const std::size_t chunks =
      std::max<std::size_t>(kBytesPerThread / std::max<std::size_t>(bytes, 1), 1);
  chunks_.resize(chunks * static_cast<std::size_t>(pool.threads()));
}

std::span<std::byte> ChunkAppender::room(std::int64_t most) {
  if (most < 1) throw std::out_of_range("ChunkAppender::room");
  const std::int64_t chunk = first_chunk_ + static_cast<std::int64_t>(used_chunks_);
  const std::int64_t free = dataset_.rows_of_chunk(chunk) - rows_in_chunk_;
  if (chunk >= dataset_.chunks() || free < 1) throw std::out_of_range("ChunkAppender::room");
  const std::size_t bytes = dataset_.row_bytes();
  auto& data = chunks_[used_chunks_];
  data.resize(static_cast<std::size_t>(dataset_.rows_of_chunk(chunk)) * bytes);
  return std::span(data).subspan(static_cast<std::size_t>(rows_in_chunk_) * bytes,
                                 static_cast<std::size_t>(std::min(most, free)) * bytes);
}

void ChunkAppender::advance(std::int64_t rows) {
  rows_in_chunk_ += rows;
  const std::int64_t chunk = first_chunk_ + static_cast<std::int64_t>(used_chunks_);
  if (rows_in_chunk_ < dataset_.rows_of_chunk(chunk)) return;
  rows_in_chunk_ = 0;
  if (++used_chunks_ == chunks_.size()) flush();
}

void ChunkAppender::flush() {
  const std::vector<std::span<const std::byte>> chunks(
      chunks_.begin(), chunks_.begin() + static_cast<std::ptrdiff_t>(used_chunks_));
  dataset_.write_chunks(first_chunk_, chunks, pool_, /*prove=*/true);
  first_chunk_ += static_cast<std::int64_t>(used_chunks_);
  used_chunks_ = 0;
}

void ChunkAppender::finish() {
  flush();
  if (first_chunk_ != dataset_.chunks() || rows_in_chunk_ != 0) {
    throw std::logic_error(dataset_.where() + ": rows are missing");
  }
}

}  // namespace tpudist
