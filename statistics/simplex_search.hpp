#pragma once

#include <functional>
#include <span>
#include <vector>

namespace tpudist {

// Where a function of few variables is least, by the simplex search of Nelder and Mead (The
// Computer Journal 1965) without derivatives. `start` [n] and the first steps `step` [n] > 0 say
// where it looks; it ends when the simplex spans less than 1e-10 of the steps, or after 400 n
// evaluations. A pure function of its arguments; finds one of several minima.
struct Minimum {
  std::vector<double> at;  // [n]
  double value = 0;
};
Minimum simplex_search(const std::function<double(std::span<const double>)>& function,
                       std::vector<double> start, std::span<const double> step);

}  // namespace tpudist
