#include "dist/collectives/gradient_reducer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/error.hpp"
#include "core/mutex.hpp"
#include "dist/collectives/leaf_ledger.hpp"
#include "dist/collectives/row_math.hpp"

namespace tpudist {
namespace {

// See make_all_reduce_reducer.
class AllReduceReducer final : public GradientReducer {
 public:
  AllReduceReducer(Communicator& communicator, std::int64_t length, ThreadPool& pool)
      : communicator_(communicator),
        length_(length),
        pool_(pool),
        ledger_(communicator.rank(), communicator.size(), length),
        rows_(length) {
    if (communicator.memory() != MemoryKind::host) {
      throw DistError(fmt::format("sums on the host need a communicator over its memory, not '{}'",
                                  communicator.name()));
    }
  }

  void begin(const LeafOwners& owners) override {
    ledger_.begin(owners);
    sums_.assign(owners.members, {});
    for (int member = 0; member < owners.members; ++member) {
      for (int leaf = 0; leaf < owners.leaves; ++leaf) {
        if (owners.of(member, leaf) == communicator_.rank()) sums_[member].order.push_back(leaf);
      }
    }
    rows_.take_all_back();
    grow(result_, result_length() + 1);
    for (int member = 0; member < owners.members; ++member) {
      if (sums_[member].order.empty()) std::fill_n(result_row(member), length_, 0.0f);
    }
  }

  // A row waits in a copy until its turn. The thread that brings the next row adds it, and then the
  // rows that waited for it.
  void add(int member, int leaf, std::span<const float> row) override {
    ledger_.claim(member, leaf, row.size());
    Sum& sum = sums_[member];
    if (!take_turn(sum, leaf)) {
      float* copy = rows_.take();
      copy_row(pool_, copy, row.data(), length_);
      const MutexLock lock(mutex_);
      sum.waiting[leaf] = copy;
      if (sum.busy || sum.order[sum.next] != leaf) return;
      sum.busy = true;  // its turn has come: the loop below adds the waiting rows
    } else {
      accumulate(member, row.data(), leaf == sum.order.front());
      const MutexLock lock(mutex_);
      ++sum.next;
    }
    while (float* waiting = next_waiting(sum)) {
      accumulate(member, waiting, false);  // the first leaf never waits
      rows_.give_back(waiting);
      const MutexLock lock(mutex_);
      ++sum.next;
    }
  }

  // One more element counts the ranks that miss a leaf, so that all ranks throw.
  std::span<const float> finalize() override {
    ledger_.end();
    const std::string missing = ledger_.missing();
    const std::int64_t length = result_length();
    result_[length] = missing.empty() ? 0.0f : 1.0f;
    all_reduce({result_.data(), static_cast<std::size_t>(length + 1)});
    if (!missing.empty()) throw DistError(missing);
    if (result_[length] != 0) throw DistError("reduction: another rank misses a leaf");
    return {result_.data(), static_cast<std::size_t>(length)};
  }

  std::int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  // The sum of one member over this rank's leaves.
  struct Sum {
    std::vector<int> order;  // this rank's leaves; does not change in a step
    std::size_t next TPUDIST_GUARDED_BY(&AllReduceReducer::mutex_) = 0;  // index into it
    bool busy TPUDIST_GUARDED_BY(&AllReduceReducer::mutex_) = false;     // a thread is adding
    std::map<int, float*> waiting TPUDIST_GUARDED_BY(&AllReduceReducer::mutex_);  // by leaf
  };

  bool take_turn(Sum& sum, int leaf) {
    const MutexLock lock(mutex_);
    if (sum.busy || sum.order[sum.next] != leaf) return false;
    return sum.busy = true;
  }

  // The waiting row that is next. If there is none, the caller stops being the adding thread.
  float* next_waiting(Sum& sum) {
    const MutexLock lock(mutex_);
    if (sum.next < sum.order.size()) {
      if (auto found = sum.waiting.find(sum.order[sum.next]); found != sum.waiting.end()) {
        return found->second;
      }
    }
    sum.busy = false;
    return nullptr;
  }

  void accumulate(int member, const float* row, bool is_first) {
    float* out = result_row(member);
    if (is_first) {
      copy_row(pool_, out, row, length_);
    } else {
      add_rows(pool_, out, out, row, length_);
    }
  }

  void all_reduce(std::span<float> data) {
    const int ranks = communicator_.size();
    // A ring sends every element except the rank's own slice, twice.
    bytes_sent_ += static_cast<std::int64_t>(data.size_bytes()) * 2 / ranks * (ranks - 1);
    communicator_.all_reduce(data, ReduceOp::sum);
  }

  std::int64_t result_length() const { return ledger_.owners().members * length_; }
  float* result_row(int member) { return result_.data() + member * length_; }

  Communicator& communicator_;
  const std::int64_t length_;
  ThreadPool& pool_;
  LeafLedger ledger_;
  Mutex mutex_;
  std::vector<Sum> sums_;
  RowStore rows_;
  AlignedFloats result_;  // [members, length], and one more
  std::int64_t bytes_sent_ = 0;
};

}  // namespace

std::unique_ptr<GradientReducer> make_all_reduce_reducer(Communicator& communicator,
                                                         std::int64_t length, ThreadPool& pool) {
  return std::make_unique<AllReduceReducer>(communicator, length, pool);
}

}  // namespace tpudist
