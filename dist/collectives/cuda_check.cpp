#ifndef TPUDIST_NO_CUDA

#include "dist/collectives/cuda_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <thread>

#include "core/error.hpp"
#include "core/failed_device.hpp"
#include "core/numbers.hpp"
#include "core/pauses.hpp"

namespace tpudist {
namespace {

constexpr double kAfterWatchdog = 3;  // seconds, or the timeout
// The most seconds counted between two looks: this process may have been stopped in between.
constexpr double kMostBetweenPolls = 0.1;

// Of this thread, which owns the handles of CUDA and NCCL.
thread_local bool left = false;

}  // namespace

bool device_is_left() {
  return left || std::uncaught_exceptions() > 0;
}

void leave_device() {
  left = true;
  device_has_failed = true;
}

void check_cuda(cudaError_t code, std::string_view call, std::source_location place) {
  if (code == cudaSuccess) return;
  leave_device();
  cudaGetLastError();  // forget it, so that it is not reported by the next call again
  throw DistError(fmt::format("{} failed: {} ({}:{})", call, cudaGetErrorString(code),
                              std::filesystem::path(place.file_name()).filename().string(),
                              place.line()));
}

void poll(std::string_view call, double timeout, const std::function<bool()>& done) {
  const double limit = timeout + std::min(timeout, kAfterWatchdog);
  double waited = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (auto last = begin; !done();) {
    const auto now = std::chrono::steady_clock::now();
    waited += std::min(seconds_between(last, now), kMostBetweenPolls);
    last = now;
    if (timeout > 0 && waited > limit) {
      leave_device();
      throw DistError(fmt::format("{} has not finished within {} (dist.timeout)", call,
                                  format_duration(timeout)));
    }
    std::this_thread::sleep_for(pause_after(now - begin, std::chrono::milliseconds(1)));
  }
}

// After an error the event is leaked: destroying the event would be one more call.
void finish_default_stream(std::string_view call, double timeout,
                           const std::function<void()>& healthy) {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  check_cuda(cudaEventRecord(event, cudaStreamLegacy), "cudaEventRecord");
  poll(call, timeout, [&] {
    if (healthy) healthy();
    const cudaError_t code = cudaEventQuery(event);
    if (code == cudaErrorNotReady) {
      cudaGetLastError();  // forget it: it is no error
      return false;
    }
    check_cuda(code, call);
    return true;
  });
  check_cuda(cudaEventDestroy(event), "cudaEventDestroy");
}

}  // namespace tpudist

#endif
