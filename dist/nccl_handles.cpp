#ifndef TPUDIST_NO_CUDA

#include "dist/nccl_handles.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>

#include "core/error.hpp"
#include "dist/cuda_check.hpp"

namespace tpudist {

void check_nccl(ncclResult_t code, std::string_view call, ncclComm_t comm,
                std::source_location place) {
  if (code == ncclSuccess) return;
  throw DistError(fmt::format("{} failed: {}; {} ({}:{}); NCCL_DEBUG=WARN tells more", call,
                              ncclGetErrorString(code), ncclGetLastError(comm),
                              std::filesystem::path(place.file_name()).filename().string(),
                              place.line()));
}

void StreamDeleter::operator()(cudaStream_t stream) const {
  if (cudaStreamDestroy(stream) != cudaSuccess) spdlog::warn("cudaStreamDestroy failed");
}

void EventDeleter::operator()(cudaEvent_t event) const {
  if (cudaEventDestroy(event) != cudaSuccess) spdlog::warn("cudaEventDestroy failed");
}

void NcclDeleter::operator()(ncclComm_t comm) const {
  if (ncclCommDestroy(comm) != ncclSuccess) spdlog::warn("ncclCommDestroy failed");
}

Stream make_stream() {
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
             "cudaStreamCreateWithFlags");
  return Stream(stream);
}

Event make_event() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return Event(event);
}

}  // namespace tpudist

#endif
