#pragma once

#include <functional>
#include <span>
#include <vector>

namespace tpudist {

// The minimum of a function of a few variables by the Nelder-Mead simplex search (The Computer
// Journal 1965), without derivatives. The search starts at `start` [n] with first steps `step` [n]
// > 0. It ends when the simplex spans less than 1e-10 of the steps, or after 400 n evaluations. A
// pure function of its arguments; may find a local minimum.
// Returns the place of the minimum, [n].
std::vector<double> simplex_search(const std::function<double(std::span<const double>)>& function,
                                   std::vector<double> start, std::span<const double> step);

}  // namespace tpudist
