#include "train/loop/segment_scores.hpp"

namespace tpudist {

SegmentTable::SegmentTable(int members,
                           const std::vector<std::pair<std::int64_t, std::int64_t>>& graphs) {
  for (const auto& [rows, segments] : graphs) {
    segments_.push_back(segments);
    begin_.push_back(begin_.back() + rows * segments);
  }
  values_.assign(members * begin_.back(), 0.0f);
}

bool SegmentTable::restore(const std::vector<float>& values) {
  if (values.size() != values_.size()) return false;
  values_ = values;
  return true;
}

std::size_t SegmentTable::place(int member, int graph, std::int64_t row, int segment) const {
  const auto g = static_cast<std::size_t>(graph);
  return static_cast<std::size_t>(member * begin_.back() + begin_[g] + row * segments_[g] +
                                  segment);
}

std::span<double> SegmentScores::record(std::size_t slate, std::size_t member) {
  return std::span(records_).subspan((slate * members_ + member) * length(), length());
}

void SegmentScores::begin(std::size_t slates, const SegmentTable& table) {
  table_ = &table;
  if (cut()) records_.assign(slates * members_ * length(), 0.0);
}

void SegmentScores::mix(const Unit& unit, std::size_t own, std::size_t slate, int member,
                        std::span<double> scores) {
  const SegmentDraw& drawn = unit.segments[own];
  const SlateRows& rows = unit.rows[own];
  const std::span<double> kept = record(slate, static_cast<std::size_t>(member));
  kept[0] = drawn.own;
  kept[1] = static_cast<double>(scores.size());
  for (std::size_t k = 0; k < scores.size(); ++k) {
    kept[2 + k] = static_cast<double>(rows.rows[k]);
    kept[2 + configs_ + k] = scores[k];
    scores[k] *= drawn.scale;
    for (std::size_t segment = 0; segment < drawn.taken.size(); ++segment) {
      if (drawn.taken[segment])
        scores[k] += table_->score(member, rows.graph, rows.rows[k], static_cast<int>(segment));
    }
  }
}

void SegmentScores::update(const BatchPlan& batch, const std::vector<bool>& stepped,
                           Communicator& world, SegmentTable& table) {
  if (!cut()) return;
  world.all_reduce(std::span(records_), ReduceOp::sum);  // one rank has each record
  for (std::size_t slate = 0; slate < batch.slates.size(); ++slate) {
    for (std::size_t m = 0; m < members_; ++m) {
      if (!stepped[m] || batch.weights[m][slate] == 0) continue;
      const std::span<const double> kept = record(slate, m);
      const auto count = static_cast<std::size_t>(kept[1]);
      for (std::size_t k = 0; k < count; ++k)
        table.score(static_cast<int>(m), batch.slates[slate].graph,
                    static_cast<std::int64_t>(kept[2 + k]), static_cast<int>(kept[0])) =
            static_cast<float>(kept[2 + configs_ + k]);
    }
  }
}

}  // namespace tpudist
