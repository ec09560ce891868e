#pragma once

#include <cstdint>
#include <vector>

#include "core/means.hpp"

namespace tpudist {

// A member's training loss at its beginning and its end. NaN if too little is known.
struct InitialAndFinalLoss {
  double first = kNone;
  double last = kNone;
  // A rise below this is noise of the slates: Student's t at 1 % times the standard error of the
  // difference, from the first part's variance alone, because a diverging loss varies more.
  double margin = kNone;
};

// The fewest steps to judge a member by its losses: the loss of a single step depends more on its
// slates than on the member.
inline constexpr int kLeastLosses = 20;

// The losses of all steps of a training in ten equal parts, as checkpoints keep them: count, mean,
// and sum of squares around the mean, [M, kLossParts, 3]. Each epoch shuffles the slates, so that
// all parts have slates of one kind.
inline constexpr std::size_t kLossParts = 10;
std::vector<double> no_losses(int members);
// Adds the loss of one step to `parts`. `step`: from 0 to `steps` - 1.
void add_loss(std::vector<double>& parts, std::size_t member, std::int64_t step, std::int64_t steps,
              double loss);

// [M] Means of the first part and of the last part that has at least two losses.
std::vector<InitialAndFinalLoss> loss_ends(const std::vector<double>& parts);

}  // namespace tpudist
