#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <source_location>
#include <string_view>

namespace tpudist {

// Throws DistError with CUDA's own text, the name of the call and its place in the source, unless
// it succeeded.
void check_cuda(cudaError_t code, std::string_view call,
                std::source_location place = std::source_location::current());

// Whether destructors must leave what they own to the end of the process: an exception passes them,
// or a call of CUDA or NCCL has failed in this thread. Freeing memory waits for the device, and ending
// a communicator for other ranks, which may wait for this one.
bool device_is_left();
// From now on it is, in this thread, and no thread waits for the device (device_has_failed). The
// checks of this header do that by themselves.
void leave_device();

// Calls `done` until it returns true. It sleeps in between, from 20 us to 1 ms, so that the thread
// keeps no core busy. Throws DistError with the name of `call` when that takes longer than
// `timeout` (dist.timeout, in seconds; 0: no limit) and a little, in which the watchdog comes first.
void poll(std::string_view call, double timeout, const std::function<bool()>& done);

// Polls an event until the current device's default stream has done all that is queued there now.
// `healthy` is called before each look at the event and may throw.
void finish_default_stream(std::string_view call, double timeout,
                           const std::function<void()>& healthy = {});

}  // namespace tpudist
