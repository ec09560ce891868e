#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <source_location>
#include <string_view>

namespace tpudist {

// Throws DistError unless the call succeeded, with CUDA's own text, the name of the call and its
// place in the source.
void check_cuda(cudaError_t code, std::string_view call,
                std::source_location place = std::source_location::current());

// Whether destructors must leave their resources to the end of the process: an exception is
// passing, or a call of CUDA or NCCL has failed in this thread. Freeing memory would wait for the
// device; ending a communicator, for other ranks, which may wait for this one.
bool device_is_left();
// Makes device_is_left() true in this thread, and no thread waits for the device any more
// (device_has_failed). The checks of this header call it themselves.
void leave_device();

// Calls `done` until it returns true. Between the calls the thread sleeps up to 1 ms (pause_after).
// Throws DistError with the name of `call` if this takes longer than `timeout` (dist.timeout, in
// seconds; 0: no limit) and up to 3 s more, so that the watchdog acts first.
void poll(std::string_view call, double timeout, const std::function<bool()>& done);

// Waits until the current device's default stream has done all that is queued now, by polling an
// event. Calls `healthy`, which may throw, before each look at the event.
void finish_default_stream(std::string_view call, double timeout,
                           const std::function<void()>& healthy = {});

}  // namespace tpudist
