#include "statistics/intervals/simplex_search.hpp"

#include <algorithm>
#include <cmath>

namespace tpudist {
namespace {

constexpr double kSmallest = 1e-10;  // of the steps
constexpr int kEvaluations = 400;    // for each variable

using Values = std::vector<double>;

struct Corner {
  Values at;
  double value = 0;
};

class Simplex {
 public:
  Simplex(const std::function<double(std::span<const double>)>& function, Values start,
          std::span<const double> step)
      : function_(function), step_(step.begin(), step.end()) {
    corners_.push_back(corner(start));
    for (std::size_t i = 0; i < start.size(); ++i) {
      Values moved = start;
      moved[i] += step[i];
      corners_.push_back(corner(std::move(moved)));
    }
    sort();
  }

  Values run() {
    while (evaluations_ < kEvaluations * static_cast<int>(step_.size()) && !is_small()) advance();
    return corners_.front().at;
  }

 private:
  Corner corner(Values at) {
    ++evaluations_;
    const double value = function_(at);
    return {std::move(at), value};
  }

  void sort() { std::ranges::stable_sort(corners_, {}, &Corner::value); }

  bool is_small() const {
    for (const Corner& other : corners_) {
      for (std::size_t i = 0; i < step_.size(); ++i) {
        if (std::abs(other.at[i] - corners_.front().at[i]) > kSmallest * step_[i]) return false;
      }
    }
    return true;
  }

  // The worst corner, moved along the line through the centre of the others; factor 1 mirrors it.
  Corner moved(double factor) {
    Values at(step_.size(), 0.0);
    for (std::size_t i = 0; i < at.size(); ++i) {
      for (std::size_t c = 0; c + 1 < corners_.size(); ++c)
        at[i] += corners_[c].at[i] / static_cast<double>(step_.size());
      at[i] += factor * (at[i] - corners_.back().at[i]);
    }
    return corner(std::move(at));
  }

  void advance() {
    const double second = corners_[corners_.size() - 2].value, worst = corners_.back().value;
    Corner next = moved(1);
    if (next.value < corners_.front().value) {
      Corner further = moved(2);
      if (further.value < next.value) next = std::move(further);
    } else if (next.value >= second) {
      const bool outside = next.value < worst;
      const double bound = outside ? next.value : worst;
      Corner nearer = moved(outside ? 0.5 : -0.5);
      if (nearer.value >= bound) return shrink();
      next = std::move(nearer);
    }
    corners_.back() = std::move(next);
    sort();
  }

  void shrink() {
    for (std::size_t c = 1; c < corners_.size(); ++c) {
      Values at = corners_[c].at;
      for (std::size_t i = 0; i < at.size(); ++i) at[i] = (at[i] + corners_.front().at[i]) / 2;
      corners_[c] = corner(std::move(at));
    }
    sort();
  }

  const std::function<double(std::span<const double>)>& function_;
  Values step_;
  std::vector<Corner> corners_;  // by rising value
  int evaluations_ = 0;
};

}  // namespace

std::vector<double> simplex_search(const std::function<double(std::span<const double>)>& function,
                                   std::vector<double> start, std::span<const double> step) {
  return Simplex(function, std::move(start), step).run();
}

}  // namespace tpudist
