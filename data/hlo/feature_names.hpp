#pragma once

#include <string>
#include <vector>

namespace tpudist {

// The names of the columns of node_feat, as in the data set's extractor; [140].
std::vector<std::string> node_feature_names();

}  // namespace tpudist
