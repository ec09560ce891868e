#pragma once

#include <span>
#include <string>
#include <vector>

#include "statistics/intervals/interval.hpp"

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

// One value for each graph of a collection.
struct GraphValues {
  std::vector<std::string> families;  // [G]
  std::vector<double> values;         // [G]
};

// The estimate is the mean over collections, with equal weights, of each collection's mean over
// graphs. Returns the variance of the estimate over draws of families: CR2 clustered by family,
// across collections, in a regression on one indicator per collection (Bell and McCaffrey, "Bias
// reduction in standard errors for linear regression with multi-stage samples", Survey Methodology
// 2002), with their degrees of freedom for independent residuals of equal variance. With
// w = 1 / (C n_c), n_fc graphs of family f in collection c and residuals e:
//     V = sum_f (sum_c w / sqrt(1 - n_fc / n_c) sum_{f,c} e)^2,
//     degrees = (sum l)^2 / sum l^2, l the eigenvalues of V as a quadratic form.
// Needs two families in every collection; otherwise throws Error with the collection's number.
VarianceEstimate family_variance(std::span<const GraphValues> collections);

}  // namespace tpudist
