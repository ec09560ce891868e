#include "models/executors/aten_replay.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "models/inputs/graph_input.hpp"
#ifdef TPUDIST_WITH_CUDA_KERNELS
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace tpudist {
namespace {

// Misses remembered per cache slot. A call that comes again later than that would be dropped again
// before its third time.
constexpr std::size_t kRemembered = 2;

class Closure : public Recording {
 public:
  explicit Closure(std::function<void()> work) : work_(std::move(work)) {}
  void run() override { work_(); }

 private:
  const std::function<void()> work_;
};

#ifdef TPUDIST_WITH_CUDA_KERNELS
class CudaGraphRecording : public Recording {
 public:
  // Other threads may go on using the device meanwhile: only this thread's calls are refused what a
  // recording cannot hold.
  CudaGraphRecording(const std::function<void()>& work, c10::cuda::CUDAStream stream) {
    const c10::cuda::CUDAStreamGuard guard(stream);
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      try {
        graph_.capture_end();
      } catch (const c10::Error&) {  // says only that the capture was cut short
      }
      throw;
    }
    graph_.capture_end();
  }
  void run() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};
#endif

void add_graphs(CallSignature& signature, const UnitInput& input) {
  for (const auto& graph : input.graphs)
    signature.push_back(reinterpret_cast<std::intptr_t>(graph.get()));
}

void add_layers(CallSignature& signature, const Plan& plan) {
  std::map<const PlanLayer*, std::int64_t> known;  // equal layers are views of the same arrays
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    const PlanLayer& plan_layer = *plan.layers[i];
    const NeededCounts& part = plan.needed_counts[i];
    const auto place = known.emplace(&plan_layer, static_cast<std::int64_t>(i)).first->second;
    signature.insert(signature.end(), {place, plan_layer.rows_in, plan_layer.rows_out, part.rows});
    for (const EdgeSet& edges : plan_layer.edges) signature.push_back(edges.aggregate.replicas);
    signature.insert(signature.end(), part.neighbourhoods.begin(), part.neighbourhoods.end());
  }
}

}  // namespace

std::unique_ptr<Recording> Recorder::record(std::function<void()> work) {
#ifdef TPUDIST_WITH_CUDA_KERNELS
  if (device_.is_cuda()) {
    const std::lock_guard lock(recording_);
    work();
    if (!stream_) stream_ = c10::cuda::getStreamFromPool(false, device_.index()).unwrap();
    return std::make_unique<CudaGraphRecording>(work, c10::cuda::CUDAStream(*stream_));
  }
#endif
  work();
  return std::make_unique<Closure>(std::move(work));
}

CallSignature call_signature(const UnitInput& input, const StagedUnit& staged, int members,
                             bool backward) {
  CallSignature signature{members, backward, input.plan->needed_first_rows,
                          static_cast<std::int64_t>(input.graphs.size())};
  add_graphs(signature, input);
  add_layers(signature, *input.plan);
  for (const UnitArray& place : staged.arrays) {
    signature.push_back(static_cast<std::int64_t>(place.type));
    signature.push_back(place.count);
  }
  return signature;
}

CallCache::Lease CallCache::take(const AtenPass& pass, const UnitInput& input,
                                 const StagedUnit& staged, int members, bool backward) {
  const auto make = [&](Recorder* recorder) {
    return std::make_unique<AtenCall>(pass, input, staged, members, backward, recorder);
  };
  Lease lease;
  if (limit_ > 0) lease.slot_ = find(call_signature(input, staged, members, backward));
  if (lease.slot_ && !lease.slot_->busy.test_and_set(std::memory_order_acquire)) {
    lease.held_.reset(&lease.slot_->busy);
    if (!lease.slot_->call) lease.slot_->call = make(&recorder_);
    return lease;
  }
  lease.slot_ = std::make_shared<Slot>();
  lease.slot_->call = make(nullptr);
  return lease;
}

// The slot of a signature that is kept, or is from now on; null where it comes for the first time.
std::shared_ptr<CallCache::Slot> CallCache::find(CallSignature signature) {
  std::list<Kept> dropped;  // outlives the lock: to destroy a recording takes time
  const std::lock_guard lock(mutex_);
  const auto kept = std::ranges::find(kept_, signature, &Kept::signature);
  if (kept != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, kept);
    return kept_.front().slot;
  }
  const auto before = std::ranges::find(lately_, signature);
  if (before == lately_.end()) {
    lately_.push_front(std::move(signature));
    if (lately_.size() > kRemembered * limit_) lately_.pop_back();
    return nullptr;
  }
  lately_.erase(before);
  kept_.push_front({std::move(signature), std::make_shared<Slot>()});
  if (kept_.size() > limit_) dropped.splice(dropped.begin(), kept_, std::prev(kept_.end()));
  return kept_.front().slot;
}

}  // namespace tpudist
