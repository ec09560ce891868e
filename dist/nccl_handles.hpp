#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <memory>
#include <source_location>
#include <string_view>

namespace tpudist {

// Throws DistError with NCCL's own text and its last warning, the name of the call and its place in
// the source, unless it succeeded. `comm` may be null.
void check_nccl(ncclResult_t code, std::string_view call, ncclComm_t comm,
                std::source_location place = std::source_location::current());

// Owners of CUDA and NCCL objects of the current device. Destructors log failures.
struct StreamDeleter {
  void operator()(cudaStream_t stream) const;
};
struct EventDeleter {
  void operator()(cudaEvent_t event) const;
};
struct NcclDeleter {
  void operator()(ncclComm_t comm) const;
};
using Stream = std::unique_ptr<CUstream_st, StreamDeleter>;
using Event = std::unique_ptr<CUevent_st, EventDeleter>;
using NcclHandle = std::unique_ptr<ncclComm, NcclDeleter>;

Stream make_stream();  // non-blocking: the default stream does not wait for it
Event make_event();

}  // namespace tpudist
