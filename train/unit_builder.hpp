#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "data/dataset.hpp"
#include "models/network.hpp"

namespace tpudist {

// Rows of one graph that are to form a slate.
struct SlateRows {
  int graph = 0;
  std::vector<std::int64_t> rows;
};

// A unit ready to run, with the slates it was made from.
struct Unit {
  std::vector<Slate> slates;
  UnitInput input;
};

// Joins data and models: reads slates, builds their plan, and keeps the network's form of each
// graph from its first use on. Thread-safe.
class UnitBuilder {
 public:
  // Both are borrowed and outlive the builder.
  UnitBuilder(const Dataset& dataset, const Network& network);

  Unit build(std::span<const SlateRows> slates) const;

 private:
  std::shared_ptr<const GraphInput> graph_input(int graph) const;

  struct Cached {
    std::once_flag once;
    std::shared_ptr<const GraphInput> input;
  };
  const Dataset& dataset_;
  const Network& network_;
  PlanShape shape_;
  std::unique_ptr<Cached[]> graphs_;  // [dataset.size()]
};

}  // namespace tpudist
