#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "models/executors/aten_call.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// Work that can be run again. It reads what its tensors hold at the time of each run.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void run() = 0;
};

// Records work on one device. On CUDA, where this project's kernels were built, as a CUDA graph,
// which starts all of the work's kernels at once; elsewhere it keeps the closure. Thread-safe.
class Recorder {
 public:
  explicit Recorder(at::Device device) : device_(device) {}

  // Records `work`, which may read and write only tensors that stay where they are, and no number
  // on the host. It is run once before it is recorded, since libraries set themselves up in a first
  // run. Tensors that it makes while it is recorded are kept and filled again in every run. What it
  // refers to must outlive the recording.
  std::unique_ptr<Recording> record(std::function<void()> work);

 private:
  const at::Device device_;
  std::mutex recording_;               // one graph at a time
  std::optional<c10::Stream> stream_;  // for all: each has a workspace of the BLAS
};

// Two calls with equal signatures launch the same work, apart from what their buffers hold. A
// signature lists the number of members, the kind of call, the sizes of all arrays, how many rows
// are needed, and the graphs.
using CallSignature = std::vector<std::int64_t>;
CallSignature call_signature(const UnitInput& input, const StagedUnit& staged, int members,
                             bool backward);

// Calls that are kept to be run again, by signature; the least recently used is dropped. A call is
// kept when its signature comes again soon. Thread-safe; each call is lent once at a time.
class CallCache {
  struct Slot {
    std::atomic_flag busy;  // no mutex: a loss may wait for tasks and run another call meanwhile
    std::unique_ptr<AtenCall> call;
  };
  struct Free {
    void operator()(std::atomic_flag* busy) const { busy->clear(std::memory_order_release); }
  };

 public:
  // Lends a call for as long as it lives.
  class Lease {
   public:
    AtenCall* operator->() const { return slot_->call.get(); }
    bool is_kept() const { return held_ != nullptr; }

   private:
    friend class CallCache;
    std::shared_ptr<Slot> slot_;
    std::unique_ptr<std::atomic_flag, Free> held_;  // given back before the slot
  };

  // Keeps `limit` calls at most; 0: none, every call is new.
  CallCache(at::Device device, std::size_t limit) : recorder_(device), limit_(limit) {}

  // Returns the kept call of this signature. Where the signature has not come lately, or the kept
  // call is lent, it returns a new one, which is dropped afterwards.
  Lease take(const AtenPass& pass, const UnitInput& input, const StagedUnit& staged, int members,
             bool backward);

 private:
  struct Kept {
    CallSignature signature;
    std::shared_ptr<Slot> slot;
  };
  std::shared_ptr<Slot> find(CallSignature signature);

  Recorder recorder_;
  const std::size_t limit_;
  std::mutex mutex_;
  std::list<Kept> kept_;              // latest use first
  std::deque<CallSignature> lately_;  // that came once, latest first
};

}  // namespace tpudist
