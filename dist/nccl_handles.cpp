#include "dist/communicators.hpp"

#ifndef TPUDIST_NO_CUDA
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>

#include "core/error.hpp"
#include "dist/cuda_check.hpp"
#include "dist/nccl_handles.hpp"
#endif

namespace tpudist {

#ifdef TPUDIST_NO_CUDA

std::string nccl_version_report() {
  return "NCCL: not part of this build";
}

#else

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

namespace {
std::string version_text(int code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}
}  // namespace

std::string nccl_version_report() {
  int library = 0;
  const ncclResult_t code = ncclGetVersion(&library);
  if (code != ncclSuccess) return fmt::format("NCCL: {}", ncclGetErrorString(code));
  return fmt::format("NCCL: header {}, library {}, {}", version_text(NCCL_VERSION_CODE),
                     version_text(library),
                     library == NCCL_VERSION_CODE
                         ? "equal"
                         : "NOT EQUAL: build again where include and library folders belong "
                           "together");
}

#endif

}  // namespace tpudist
