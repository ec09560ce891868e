// The fake of NCCL in a job whose ranks are processes: device memory of each is a fake of its own, and
// what ranks exchange goes over MPI. A call that has reached the head of its stream is posted, and
// leaves the stream when MPI is done with it.

#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <exception>

#include "tests/dist/fake_cuda/fake_device.hpp"

namespace tpudist::fake {

using Post = std::function<void(const void* send, void* recv, MPI_Request* request)>;

struct Transfer {
  const void* from = nullptr;
  std::size_t sent = 0;  // bytes
  void* to = nullptr;
  std::size_t taken = 0;
  Post post;
  std::vector<std::byte> send = {}, recv = {};
};

// One call, or all of a group.
struct NcclCall {
  std::vector<Transfer> transfers;
  std::vector<MPI_Request> requests;  // empty: not posted yet
};

bool advance_call(Job& all, CUstream_st& stream) {
  NcclCall& call = *stream.operations.front().call;
  const int device = stream.device;
  if (call.requests.empty()) {
    call.requests.assign(call.transfers.size(), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < call.transfers.size(); ++i) {
      Transfer& part = call.transfers[i];
      part.send.resize(part.sent);
      part.recv.resize(part.taken);
      all.protect(device, true);
      if (part.sent) std::memcpy(part.send.data(), part.from, part.sent);
      all.protect(device, false);
      part.post(part.send.data(), part.recv.data(), &call.requests[i]);
    }
  }
  int done = 0;
  MPI_Testall(static_cast<int>(call.requests.size()), call.requests.data(), &done,
              MPI_STATUSES_IGNORE);
  if (!done) return false;
  all.protect(device, true);
  for (const Transfer& part : call.transfers) {
    if (part.taken) std::memcpy(part.to, part.recv.data(), part.taken);
  }
  all.protect(device, false);
  stream.operations.pop_front();
  return true;
}

}  // namespace tpudist::fake

using tpudist::fake::Entry;
using tpudist::fake::job;
using tpudist::fake::NcclCall;
using tpudist::fake::Transfer;
namespace fake = tpudist::fake;

struct ncclComm {
  MPI_Comm ranks = MPI_COMM_NULL;
  MPI_Request pending = MPI_REQUEST_NULL;  // until all ranks have set it up, or finalized it
  bool ready = false;
  std::shared_ptr<NcclCall> group;
};

namespace {

int group_depth = 0;
ncclComm only;  // a process has one communicator

MPI_Datatype mpi_type(ncclDataType_t type) {
  return type == ncclUint8     ? MPI_BYTE
         : type == ncclInt64   ? MPI_INT64_T
         : type == ncclFloat32 ? MPI_FLOAT
                               : MPI_DOUBLE;
}
int bytes_of(ncclDataType_t type, std::size_t count) {
  int size = 0;
  MPI_Type_size(mpi_type(type), &size);
  return size * static_cast<int>(count);
}

ncclResult_t submit(cudaStream_t stream, std::shared_ptr<NcclCall> call) {
  job->queue(*fake::resolve(stream), {.name = "NCCL", .run = {}, .call = std::move(call)});
  job->work_in_background();
  return ncclSuccess;
}

// Counts the call, and queues it or adds it to the group.
ncclResult_t add(const char* name, cudaStream_t stream, Transfer part) {
  const Entry entry(name);
  if (entry.failed()) return ncclSystemError;
  if (!only.ready) job->mistake(std::string(name) + " before the communicator is there");
  // As with NCCL_CHECK_POINTERS=1.
  const int device = fake::current_device;
  if ((part.sent && !job->holds(part.from, part.sent, device, name)) ||
      (part.taken && !job->holds(part.to, part.taken, device, name)))
    return ncclInvalidArgument;
  if (group_depth > 0) {
    if (!only.group) only.group = std::make_shared<NcclCall>();
    only.group->transfers.push_back(std::move(part));
    return ncclSuccess;
  }
  auto call = std::make_shared<NcclCall>();
  call->transfers.push_back(std::move(part));
  return submit(stream, std::move(call));
}

}  // namespace

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclInvalidArgument ? "invalid argument"
         : result == ncclInvalidUsage  ? "invalid usage"
                                       : "unhandled system error";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}
ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId*) {
  const Entry entry("ncclGetUniqueId");
  return entry.failed() ? ncclSystemError : ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId, int, ncclConfig_t*) {
  const Entry entry("ncclCommInitRankConfig");
  if (entry.failed()) return ncclSystemError;
  if (ranks > 1 && job->options.card == fake::JobOptions::Card::one && !std::getenv("NCCL_HOSTID"))
    return ncclInvalidUsage;
  MPI_Comm_idup(MPI_COMM_WORLD, &only.ranks, &only.pending);
  *comm = &only;
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
  const Entry entry("ncclCommGetAsyncError", Entry::poll);
  if (entry.failed()) return ncclSystemError;
  int done = 0;
  if (!fake::rank->stuck) MPI_Test(&only.pending, &done, MPI_STATUS_IGNORE);
  only.ready = only.ready || done;
  *state = fake::rank->async_error            ? ncclSystemError
           : only.pending != MPI_REQUEST_NULL ? ncclInProgress
                                              : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) {
  const Entry entry("ncclCommFinalize", Entry::quiet);
  if (entry.failed()) return ncclSystemError;
  if (std::uncaught_exceptions() > 0) job->mistake("ncclCommFinalize in unwinding");
  MPI_Ibarrier(only.ranks, &only.pending);
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t) {
  const Entry entry("ncclCommDestroy", Entry::quiet);
  if (entry.failed()) return ncclSystemError;
  if (std::uncaught_exceptions() > 0) job->mistake("ncclCommDestroy in unwinding");
  MPI_Comm_free(&only.ranks);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  const Entry entry("ncclGroupStart");
  if (entry.failed()) return ncclSystemError;
  ++group_depth;
  return ncclSuccess;
}
// All work is on the default stream.
ncclResult_t ncclGroupEnd() {
  const Entry entry("ncclGroupEnd");
  if (entry.failed()) return ncclSystemError;
  if (--group_depth > 0 || !only.group) return ncclSuccess;
  return submit(nullptr, std::move(only.group));
}

ncclResult_t ncclAllReduce(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t, cudaStream_t stream) {
  const auto bytes = static_cast<std::size_t>(bytes_of(type, count));
  const MPI_Op mpi = op == ncclSum ? MPI_SUM : op == ncclMin ? MPI_MIN : MPI_MAX;
  return add("ncclAllReduce", stream,
             {send, bytes, recv, bytes, [=](const void* from, void* to, MPI_Request* request) {
                MPI_Iallreduce(from, to, static_cast<int>(count), mpi_type(type), mpi, only.ranks,
                               request);
              }});
}

ncclResult_t ncclBroadcast(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t, cudaStream_t stream) {
  const int bytes = bytes_of(type, count);
  int own = 0;
  MPI_Comm_rank(only.ranks, &own);
  const auto sent = static_cast<std::size_t>(own == root ? bytes : 0);
  return add("ncclBroadcast", stream,
             {send, sent, recv, static_cast<std::size_t>(bytes),
              [=](const void* from, void* to, MPI_Request* request) {
                if (sent) std::memcpy(to, from, sent);
                MPI_Ibcast(to, bytes, MPI_BYTE, root, only.ranks, request);
              }});
}

ncclResult_t ncclAllGather(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                           ncclComm_t, cudaStream_t stream) {
  const int bytes = bytes_of(type, count);
  int ranks = 1;
  MPI_Comm_size(only.ranks, &ranks);
  return add("ncclAllGather", stream,
             {send, static_cast<std::size_t>(bytes), recv, static_cast<std::size_t>(bytes * ranks),
              [=](const void* from, void* to, MPI_Request* request) {
                MPI_Iallgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, only.ranks, request);
              }});
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t, cudaStream_t stream) {
  const int bytes = bytes_of(type, count);
  return add("ncclSend", stream,
             {data, static_cast<std::size_t>(bytes), nullptr, 0,
              [=](const void* from, void*, MPI_Request* request) {
                MPI_Isend(from, bytes, MPI_BYTE, peer, 0, only.ranks, request);
              }});
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t,
                      cudaStream_t stream) {
  const int bytes = bytes_of(type, count);
  return add("ncclRecv", stream,
             {nullptr, 0, data, static_cast<std::size_t>(bytes),
              [=](const void*, void* to, MPI_Request* request) {
                MPI_Irecv(to, bytes, MPI_BYTE, peer, 0, only.ranks, request);
              }});
}
