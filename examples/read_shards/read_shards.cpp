// Prints, for each graph of a split, its size and how much its slowest configuration lies above the fastest.
//
//   read_shards SHARDS COLLECTION [SPLIT]        read_shards tpudist-data layout:nlp:random valid
#include <algorithm>
#include <cstdio>
#include <exception>
#include <limits>

#include "core/error.hpp"
#include "data/schema/collection.hpp"
#include "data/shards/shard_reader.hpp"

namespace {

void print_graph(const tpudist::GraphEntry& entry) {
  const tpudist::GraphReader reader(entry);
  const tpudist::Graph graph = reader.read_graph();
  const tpudist::RunTimes times = reader.read_run_times();  // [c]
  double fastest = std::numeric_limits<double>::infinity(), slowest = 0;
  for (std::int64_t config = 0; config < times.configs(); ++config) {
    fastest = std::min(fastest, times.target(config));
    slowest = std::max(slowest, times.target(config));
  }
  std::printf("%s: %lld nodes, %lld edges, %lld configurations", graph.name.c_str(),
              static_cast<long long>(graph.nodes), static_cast<long long>(graph.edges),
              static_cast<long long>(times.configs()));
  if (fastest > 0) std::printf(", slowest / fastest %.2f", slowest / fastest);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: read_shards SHARDS COLLECTION [SPLIT]\n");
    return 2;
  }
  try {
    const auto collection = tpudist::Collection::parse(argv[2]);
    for (const tpudist::GraphEntry& entry :
         tpudist::list_graphs(argv[1], collection, argc > 3 ? argv[3] : "train"))
      print_graph(entry);
  } catch (const tpudist::Error& error) {
    std::fprintf(stderr, "read_shards: error: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "read_shards: error: %s\n", error.what());
    return 1;
  }
}
