#pragma once

#include <string>
#include <vector>

namespace tpudist {

// The names of the columns of node_feat as the data set's extractor calls what they hold; [140].
std::vector<std::string> node_feature_names();

}  // namespace tpudist
