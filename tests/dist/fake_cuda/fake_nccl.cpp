#include <algorithm>
#include <cstring>
#include <exception>

#include "tests/dist/fake_cuda/fake_device.hpp"

namespace tpudist::fake {

// One transfer between two ranks.
struct Part {
  bool sends = false;
  int peer = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::size_t number = 0;  // among those that go this way between the two
};

// One call, or all of a group: a collective or transfers.
struct NcclCall {
  ncclComm* comm = nullptr;
  CUstream_st* stream = nullptr;
  std::vector<Part> parts;
  std::string collective;  // "" for transfers; else equal on all ranks
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  std::size_t send_bytes = 0, recv_bytes = 0, number = 0;
  std::function<void(const std::vector<NcclCall*>& by_rank)> run;
};

}  // namespace tpudist::fake

using tpudist::fake::Entry;
using tpudist::fake::job;
using tpudist::fake::Job;
using tpudist::fake::NcclCall;
using tpudist::fake::Part;

struct ncclComm {
  std::string id;
  int rank = 0, ranks = 1;
  bool finalizing = false, destroyed = false;
  int in_progress = 0;  // so many polls until a call of this communicator is done
  std::vector<std::shared_ptr<NcclCall>> collectives;
  // By peer; what has been sent to it and received from it.
  std::map<int, std::vector<std::pair<std::shared_ptr<NcclCall>, std::size_t>>> sent, received;
  std::vector<std::shared_ptr<NcclCall>> waiting;  // not yet on their stream
};

namespace tpudist::fake {
namespace {

thread_local int group_depth = 0;
thread_local std::shared_ptr<NcclCall> group;

std::size_t size_of(ncclDataType_t type) {
  return type == ncclUint8 ? 1 : type == ncclFloat32 ? 4 : 8;
}

ncclComm* peer_of(const ncclComm& comm, int number) {
  for (ncclComm* other : job->cliques[comm.id]) {
    if (other->rank == number) return other;
  }
  return nullptr;
}

// Those that must be at the head of their streams when this one runs; null for one that is missing.
std::vector<NcclCall*> partners(const NcclCall& call) {
  std::vector<NcclCall*> all;
  if (!call.collective.empty()) {
    for (int number = 0; number < call.comm->ranks; ++number) {
      const ncclComm* peer = peer_of(*call.comm, number);
      all.push_back(peer && call.number < peer->collectives.size()
                        ? peer->collectives[call.number].get()
                        : nullptr);
    }
  }
  for (const Part& part : call.parts) {
    ncclComm* peer = peer_of(*call.comm, part.peer);
    const auto& theirs = part.sends ? peer->received : peer->sent;
    const auto found = theirs.find(call.comm->rank);
    all.push_back(found != theirs.end() && part.number < found->second.size()
                      ? found->second[part.number].first.get()
                      : nullptr);
  }
  return all;
}

void transfer(const NcclCall& call) {
  for (const Part& part : call.parts) {
    if (!part.sends) continue;
    ncclComm* peer = peer_of(*call.comm, part.peer);
    const auto& [other, index] = peer->received[call.comm->rank][part.number];
    const Part& there = other->parts[index];
    if (there.bytes != part.bytes) {
      job->mistake("ncclSend and ncclRecv of different sizes");
    } else if (job->holds(part.data, part.bytes, call.stream->device, "ncclSend") &&
               job->holds(there.data, there.bytes, other->stream->device, "ncclRecv")) {
      std::memmove(there.data, part.data, part.bytes);
    }
  }
}

void reduce(const std::vector<NcclCall*>& calls) {
  for (const NcclCall* call : calls) {
    if (call->collective != calls[0]->collective) {
      job->mistake("ranks call different collectives: " + call->collective + ", " +
                   calls[0]->collective);
      return;
    }
    const std::string name = call->collective.substr(0, call->collective.find(' '));
    const int device = call->stream->device;
    if ((call->send_bytes && !job->holds(call->send, call->send_bytes, device, name)) ||
        (call->recv_bytes && !job->holds(call->recv, call->recv_bytes, device, name)))
      return;
  }
  calls[0]->run(calls);
}

}  // namespace

bool advance_call(Job& all, CUstream_st& stream) {
  std::vector<NcclCall*> together{stream.operations.front().call.get()};
  for (std::size_t i = 0; i < together.size(); ++i) {
    for (NcclCall* partner : partners(*together[i])) {
      if (!partner) return false;
      if (std::ranges::find(together, partner) == together.end()) together.push_back(partner);
    }
  }
  for (const NcclCall* call : together) {
    std::deque<Operation>& operations = call->stream->operations;
    if (all.ranks[call->stream->device].stuck) return false;
    if (operations.empty()) return false;  // has not reached its stream
    if (operations.front().call.get() != call) return all.advance(*call->stream);
  }
  all.protect(-1, true);
  if (together[0]->collective.empty()) {
    for (const NcclCall* call : together) transfer(*call);
  } else {
    std::ranges::sort(together, {}, [](const NcclCall* call) { return call->comm->rank; });
    reduce(together);
  }
  all.protect(-1, false);
  for (const NcclCall* call : together) call->stream->operations.pop_front();
  return true;
}

namespace {

void reach_stream(ncclComm& comm) {
  for (const auto& call : comm.waiting)
    job->queue(*call->stream, {.name = "NCCL", .run = {}, .call = call});
  comm.waiting.clear();
}

// Ends a call that is not in a group, or a group.
ncclResult_t submit(ncclComm& comm, const std::shared_ptr<NcclCall>& call) {
  if (comm.in_progress > 0) job->mistake("a call of NCCL while another one is in progress");
  if (!call->collective.empty()) {
    call->number = comm.collectives.size();
    comm.collectives.push_back(call);
  }
  for (std::size_t i = 0; i < call->parts.size(); ++i) {
    Part& part = call->parts[i];
    auto& list = (part.sends ? comm.sent : comm.received)[part.peer];
    part.number = list.size();
    list.emplace_back(call, i);
  }
  comm.waiting.push_back(call);
  const bool slow = job->options.schedule == Schedule::late ||
                    (job->options.schedule == Schedule::random && job->rng.below(2) == 0);
  if (slow || rank->stuck) {
    comm.in_progress = 2;
    return ncclInProgress;
  }
  reach_stream(comm);
  job->work_in_background();
  return ncclSuccess;
}

std::shared_ptr<NcclCall> make_call(ncclComm_t comm, cudaStream_t stream) {
  if (group_depth > 0 && group) return group;
  auto call = std::make_shared<NcclCall>();
  call->comm = comm;
  call->stream = resolve(stream);
  if (group_depth > 0) group = call;
  return call;
}

ncclResult_t end_call(ncclComm_t comm, const std::shared_ptr<NcclCall>& call) {
  return group_depth > 0 ? ncclSuccess : submit(*comm, call);
}

ncclResult_t collective(const char* name, const void* send, std::size_t send_bytes, void* recv,
                        std::size_t recv_bytes, const std::string& detail, ncclComm_t comm,
                        cudaStream_t stream,
                        std::function<void(const std::vector<NcclCall*>&)> run) {
  // As with NCCL_CHECK_POINTERS=1, where there are no bytes either.
  if (!send || !recv) job->mistake(std::string(name) + " of a null pointer");
  const auto call = make_call(comm, stream);
  call->collective = std::string(name) + " " + detail;
  call->send = static_cast<const std::byte*>(send);
  call->recv = static_cast<std::byte*>(recv);
  call->send_bytes = send_bytes;
  call->recv_bytes = recv_bytes;
  call->run = std::move(run);
  return end_call(comm, call);
}

// [rank 0 (+) rank 1 (+) ...] for each element.
template <typename T>
void combine(const std::vector<NcclCall*>& calls, std::size_t count, ncclRedOp_t op) {
  std::vector<T> sums(count);
  for (std::size_t i = 0; i < count; ++i) {
    T sum = reinterpret_cast<const T*>(calls[0]->send)[i];
    for (std::size_t r = 1; r < calls.size(); ++r) {
      const T value = reinterpret_cast<const T*>(calls[r]->send)[i];
      sum = op == ncclSum   ? sum + value
            : op == ncclMin ? std::min(sum, value)
                            : std::max(sum, value);
    }
    sums[i] = sum;
  }
  for (NcclCall* call : calls) std::memcpy(call->recv, sums.data(), count * sizeof(T));
}

ncclResult_t part(const char* name, bool sends, const void* data, std::size_t bytes, int peer,
                  ncclComm_t comm, cudaStream_t stream) {
  const Entry entry(name);
  if (entry.failed()) return ncclSystemError;
  const auto call = make_call(comm, stream);
  call->parts.push_back({.sends = sends,
                         .peer = peer,
                         .data = static_cast<std::byte*>(const_cast<void*>(data)),
                         .bytes = bytes});
  return end_call(comm, call);
}

}  // namespace
}  // namespace tpudist::fake

namespace fake = tpudist::fake;

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSystemError   ? "unhandled system error"
         : result == ncclRemoteError ? "remote process exited or there was a network error"
                                     : "an error of NCCL";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}
ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Entry entry("ncclGetUniqueId");
  if (entry.failed()) return ncclSystemError;
  std::memset(id->internal, 0, sizeof id->internal);
  const std::string text = "clique " + std::to_string(job->ids++);
  std::memcpy(id->internal, text.data(), text.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int number,
                                    ncclConfig_t* config) {
  const Entry entry("ncclCommInitRankConfig");
  if (entry.failed()) return ncclSystemError;
  if (!config || config->blocking != 0) job->mistake("a communicator whose calls block");
  fake::resolve(nullptr);  // the device of the rank must be the current one
  job->comms.push_back(std::make_shared<ncclComm>());
  *comm = job->comms.back().get();
  (*comm)->id = id.internal;
  (*comm)->rank = number;
  (*comm)->ranks = ranks;
  (*comm)->in_progress = 2;
  job->cliques[id.internal].push_back(*comm);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const Entry entry("ncclCommGetAsyncError", Entry::poll);
  if (entry.failed()) return ncclSystemError;
  *state = ncclSuccess;
  if (fake::rank->async_error) {
    *state = ncclSystemError;
    return ncclSuccess;
  }
  const auto here = [](const std::vector<ncclComm*>& clique, bool finalizing) {
    return std::ranges::count_if(
        clique, [&](const ncclComm* other) { return !finalizing || other->finalizing; });
  };
  const bool waits = here(job->cliques[comm->id], comm->finalizing) < comm->ranks;
  if (comm->in_progress > 0 && !waits && !fake::rank->stuck && --comm->in_progress == 0)
    fake::reach_stream(*comm);
  if (comm->in_progress > 0) *state = ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Entry entry("ncclCommFinalize", Entry::quiet);
  if (entry.failed()) return ncclSystemError;
  if (std::uncaught_exceptions() > 0) job->mistake("ncclCommFinalize in unwinding");
  comm->finalizing = true;
  comm->in_progress = 2;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Entry entry("ncclCommDestroy", Entry::quiet);
  if (entry.failed()) return ncclSystemError;
  if (std::uncaught_exceptions() > 0) job->mistake("ncclCommDestroy in unwinding");
  if (!comm->finalizing || comm->in_progress > 0 || comm->destroyed)
    job->mistake("ncclCommDestroy of a communicator that is not finalized");
  comm->destroyed = true;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  const Entry entry("ncclGroupStart");
  if (entry.failed()) return ncclSystemError;
  if (fake::group_depth++ == 0) fake::group = nullptr;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  const Entry entry("ncclGroupEnd");
  if (entry.failed()) return ncclSystemError;
  if (--fake::group_depth > 0 || !fake::group) return ncclSuccess;
  const std::shared_ptr<NcclCall> call = std::move(fake::group);
  return fake::submit(*call->comm, call);
}

ncclResult_t ncclAllReduce(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  const Entry entry("ncclAllReduce");
  if (entry.failed()) return ncclSystemError;
  const std::size_t bytes = count * fake::size_of(type);
  return fake::collective("ncclAllReduce", send, bytes, recv, bytes,
                          std::to_string(count) + " " + std::to_string(type) + std::to_string(op),
                          comm, stream, [=](const std::vector<NcclCall*>& calls) {
                            if (type == ncclFloat32) fake::combine<float>(calls, count, op);
                            if (type == ncclFloat64) fake::combine<double>(calls, count, op);
                            if (type == ncclInt64) fake::combine<std::int64_t>(calls, count, op);
                          });
}

ncclResult_t ncclBroadcast(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  const Entry entry("ncclBroadcast");
  if (entry.failed()) return ncclSystemError;
  const std::size_t bytes = count * fake::size_of(type);
  return fake::collective("ncclBroadcast", send, bytes, recv, bytes,
                          std::to_string(bytes) + " from " + std::to_string(root), comm, stream,
                          [=](const std::vector<NcclCall*>& calls) {
                            for (NcclCall* call : calls)
                              std::memmove(call->recv, calls[root]->send, bytes);
                          });
}

ncclResult_t ncclAllGather(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  const Entry entry("ncclAllGather");
  if (entry.failed()) return ncclSystemError;
  const std::size_t bytes = count * fake::size_of(type);
  return fake::collective("ncclAllGather", send, bytes, recv,
                          bytes * static_cast<std::size_t>(comm->ranks), std::to_string(bytes),
                          comm, stream, [=](const std::vector<NcclCall*>& calls) {
                            for (NcclCall* call : calls) {
                              for (std::size_t r = 0; r < calls.size(); ++r)
                                std::memmove(call->recv + r * bytes, calls[r]->send, bytes);
                            }
                          });
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return fake::part("ncclSend", true, data, count * fake::size_of(type), peer, comm, stream);
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return fake::part("ncclRecv", false, data, count * fake::size_of(type), peer, comm, stream);
}
