#pragma once

#include <span>
#include <string>
#include <vector>

namespace tpudist {

// The clusters that an interval for other families takes as independent. BERTs (of several depths,
// ALBERT, ELECTRA, with talking heads) are one architecture and score alike. As independent
// families they make the interval too narrow (bench/kin_table), so they are one cluster. If all
// families are BERTs, each is a cluster, and the interval is about other BERTs.
struct FamilyClusters {
  std::vector<std::string> of;  // [G] the cluster of each graph
  std::string note;             // what was done, one line; empty if no two families are kin
};
FamilyClusters family_clusters(std::span<const std::string> families);  // [G] of model_family

}  // namespace tpudist
