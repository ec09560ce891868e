#include "train/units/prepared_records.hpp"

#include <cstring>
#include <vector>

#include "core/error.hpp"

namespace tpudist {
namespace {

constexpr std::uint64_t kAlignment = 64;  // of arrays, as required by cache files

std::size_t places_of(const PreparedArrays& graph) {
  std::size_t places = 0;
  PreparedArrays::for_each(graph, [&](const auto&) { ++places; });
  return places;
}

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The arrays of a graph on the boundaries that they have in the file.
std::vector<std::byte> packed(const PreparedArrays& graph, std::span<StoredArray> places) {
  std::vector<std::byte> bytes;
  std::size_t at = 0;
  PreparedArrays::for_each(graph, [&](const auto& values) {
    places[at++] = {bytes.size(), values.size()};
    const auto part = std::as_bytes(std::span(values));
    bytes.insert(bytes.end(), part.begin(), part.end());
    bytes.resize(aligned(bytes.size()));
  });
  return bytes;
}

}  // namespace

std::uint64_t prepared_bytes(std::span<const PreparedArrays> graphs) {
  std::uint64_t bytes = 1 << 12;
  for (const PreparedArrays& graph : graphs)
    bytes += graph.bytes() + places_of(graph) * (sizeof(StoredArray) + kAlignment);
  return bytes;
}

void write_prepared(std::span<const PreparedArrays> graphs, CacheFileWriter& writer,
                    std::uint64_t key, ThreadPool& pool) {
  const std::size_t width = graphs.empty() ? 0 : places_of(graphs.front());
  std::vector<StoredArray> directory(graphs.size() * width);
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const auto places = std::span(directory).subspan(g * width, width);
    const std::vector<std::byte> bytes = packed(graphs[g], places);
    const std::uint64_t begin = writer.reserve(bytes.size());
    for (StoredArray& place : places) place.offset += begin;
    writer.write(begin, bytes);
  }
  writer.finish(key, std::as_bytes(std::span(directory)), pool);
}

PreparedArrays read_prepared(const CacheFile& file, std::size_t graph, std::size_t count,
                             const PlanShape* refined) {
  PreparedArrays arrays;
  if (refined) arrays.refined = RefinedArrays::empty(*refined);
  const std::size_t width = places_of(arrays);
  const std::span<const std::byte> directory = file.directory();
  if (directory.size() != count * width * sizeof(StoredArray))
    throw DataError("the directory of a cache file is of other graphs");
  const std::byte* at = directory.data() + graph * width * sizeof(StoredArray);
  PreparedArrays::for_each(arrays, [&]<typename T>(Array<T>& values) {
    StoredArray place;
    std::memcpy(&place, at, sizeof place);
    at += sizeof place;
    values = file.array<T>(place);
  });
  return arrays;
}

}  // namespace tpudist
