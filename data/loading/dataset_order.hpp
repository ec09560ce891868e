#pragma once

#include "data/loading/dataset.hpp"
#include "data/loading/slate_order.hpp"

namespace tpudist {

// The order of training on this data set: SlateOrder of its rows and selection, with the rows by
// run time if the mix needs them.
SlateOrder order_of(const OrderOptions& options, const Dataset& data);

}  // namespace tpudist
