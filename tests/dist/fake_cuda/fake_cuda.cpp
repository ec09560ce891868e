#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>

#include "core/error.hpp"
#include "tests/dist/fake_cuda/fake_device.hpp"

namespace tpudist::fake {

Job* job = nullptr;
thread_local Rank* rank = nullptr;
thread_local int current_device = 0;

namespace {

constexpr std::uint32_t kSignallingNan = 0x7fa00000;

void fill_with_nan(std::byte* data, std::size_t bytes) {
  for (std::size_t i = 0; i + sizeof kSignallingNan <= bytes; i += sizeof kSignallingNan)
    std::memcpy(data + i, &kSignallingNan, sizeof kSignallingNan);
}

}  // namespace

void Job::mistake(const std::string& text) {
  const std::string who = rank ? "rank " + std::to_string(rank->number) + ": " : "";
  result.mistakes.push_back(who + text);
  if (options.processes) std::fprintf(stderr, "mistake: %s%s\n", who.c_str(), text.c_str());
}

void Job::protect(int device, bool usable) {
  for (const Allocation& part : memory) {
    if (!part.live || part.device < 0 || (device >= 0 && part.device != device)) continue;
    ::mprotect(part.data, part.mapped, usable ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
}

bool Job::holds(const void* data, std::size_t bytes, int device, const std::string& what) {
  const auto* at = static_cast<const std::byte*>(data);
  for (const Allocation& part : memory) {
    if (at < part.data || at >= part.data + std::max<std::size_t>(part.mapped, 1)) continue;
    if (!part.live) {
      mistake(what + " touches freed memory");
    } else if (at + bytes > part.data + part.bytes) {
      mistake(what + " goes beyond its memory");
    } else if (part.device >= 0 && part.device != device) {
      mistake(what + " touches another rank's device");
    } else {
      return true;
    }
    return false;
  }
  mistake(what + " touches memory that is neither a device's nor page-locked");
  return false;
}

void Job::queue(CUstream_st& stream, Operation operation) {
  stream.operations.push_back(std::move(operation));
}

// advance() of a stream whose head is a call of NCCL is in fake_nccl.cpp.
bool advance_call(Job& job, CUstream_st& stream);

bool Job::advance(CUstream_st& stream) {
  if (stream.visited || stream.operations.empty()) return false;
  if (ranks[stream.device].stuck) return false;
  stream.visited = true;
  bool ran = true;
  Operation& head = stream.operations.front();
  if (head.call) {
    ran = advance_call(*this, stream);
  } else if (head.awaited && head.awaited->done < head.record) {
    ran = head.awaited->stream && advance(*head.awaited->stream);
  } else {
    if (head.run) {
      protect(stream.device, true);
      head.run();
      protect(stream.device, false);
    }
    stream.operations.pop_front();
  }
  stream.visited = false;
  return ran;
}

void Job::work_in_background() {
  if (options.schedule == Schedule::late) return;
  std::uint64_t left = options.schedule == Schedule::early ? ~0ull : rng.below(4);
  for (bool ran = true; ran && left > 0;) {
    ran = false;
    const std::size_t first = rng.below(streams.size());
    for (std::size_t i = 0; i < streams.size() && left > 0; ++i) {
      if (!advance(*streams[(first + i) % streams.size()])) continue;
      ran = true;
      --left;
    }
  }
}

Entry::Entry(const char* name, Kind kind) : kind_(kind) {
  if (!job || !rank) {
    std::fprintf(stderr, "fake CUDA: %s in a thread that is no rank\n", name);
    std::abort();
  }
  lock_ = std::unique_lock(job->mutex);
  const bool unwinding = std::uncaught_exceptions() > 0;
  if (job->ended && kind_ != quiet && !unwinding) throw Killed{};
  if (!rank->failed.empty() && !job->ended) {
    job->mistake(std::string(name) + " after " + rank->failed + " has failed");
    failed_ = true;
    return;
  }
  if (kind_ == poll) {
    if (!rank->polled.insert(name).second) return;
  } else {
    rank->polled.clear();
  }
  const Fault& fault = job->options.fault;
  ++rank->calls;
  const bool met = fault.function.empty()
                       ? rank->calls == fault.call
                       : fault.function == name && ++rank->calls_of_function == fault.call;
  if (met && rank->number == fault.rank) {
    job->result.faulted = name;
    switch (fault.kind) {
      case Fault::Kind::none:
        break;
      case Fault::Kind::error:
        rank->failed = name;
        failed_ = true;
        return;
      case Fault::Kind::lost:
        if (job->options.processes) ::raise(SIGKILL);
        if (kind_ != quiet && !unwinding) throw Killed{};
        rank->stuck = true;  // a destructor: as good as lost
        break;
      case Fault::Kind::async_error:
        rank->async_error = rank->stuck = true;
        break;
      case Fault::Kind::stuck:
        rank->stuck = true;
        break;
    }
  }
  job->work_in_background();
}

void Entry::wait() {
  lock_.unlock();
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  lock_.lock();
  if (job->ended && kind_ != quiet && std::uncaught_exceptions() == 0) throw Killed{};
}

cudaStream_t resolve(cudaStream_t stream) {
  if (stream != nullptr && stream != cudaStreamLegacy) {
    if (stream->device != current_device) job->mistake("a stream of another device");
    return stream;
  }
  if (current_device != rank->number) job->mistake("work on another rank's device");
  return job->ranks[current_device].default_stream;
}

void queue_kernel(cudaStream_t stream, std::function<void()> run) {
  const Entry entry("kernel");
  if (entry.failed()) {
    emulation::last_error = cudaErrorLaunchFailure;
    return;
  }
  job->queue(*resolve(stream), {.name = "kernel", .run = std::move(run)});
}

}  // namespace tpudist::fake

namespace fake = tpudist::fake;
using tpudist::fake::Allocation;
using tpudist::fake::current_device;
using tpudist::fake::Entry;
using tpudist::fake::job;
using tpudist::fake::resolve;

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    default:
      return "an error";
  }
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  const Entry entry("cudaGetDeviceCount");
  *count = entry.failed() ? 0 : job->options.ranks;
  return entry.failed() ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const Entry entry("cudaGetDeviceProperties");
  if (entry.failed()) return cudaErrorLaunchFailure;
  *properties = {};
  const bool one = job->options.card == fake::JobOptions::Card::one;
  properties->uuid.bytes[0] = static_cast<char>(one ? 1 : device + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* bus, int bytes, int device) {
  const Entry entry("cudaDeviceGetPCIBusId");
  if (entry.failed()) return cudaErrorLaunchFailure;
  const bool apart = job->options.card == fake::JobOptions::Card::none;
  std::snprintf(bus, static_cast<std::size_t>(bytes), "0000:%02x:00.0", apart ? device : 27);
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const Entry entry("cudaSetDevice");
  if (entry.failed()) return cudaErrorLaunchFailure;
  if (device < 0 || device >= job->options.ranks) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}

namespace {

cudaError_t allocate(const char* name, void** data, std::size_t bytes, int device) {
  const Entry entry(name);
  if (entry.failed()) return cudaErrorMemoryAllocation;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  Allocation part{.bytes = bytes, .mapped = (bytes / page + 1) * page, .device = device};
  part.data = static_cast<std::byte*>(
      ::mmap(nullptr, part.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  tpudist::fake::fill_with_nan(part.data, part.mapped);
  if (device >= 0) ::mprotect(part.data, part.mapped, PROT_NONE);
  job->memory.push_back(part);
  *data = part.data;
  return cudaSuccess;
}

// Nobody gets the addresses again before the job ends.
cudaError_t release(const char* name, void* data, bool on_device) {
  const Entry entry(name, Entry::quiet);
  if (entry.failed()) return cudaErrorLaunchFailure;
  for (Allocation& part : job->memory) {
    if (part.data != data || !part.live || (part.device >= 0) != on_device) continue;
    part.live = false;
    ::mprotect(part.data, part.mapped, PROT_NONE);
    ::madvise(part.data, part.mapped, MADV_DONTNEED);
    return cudaSuccess;
  }
  job->mistake(std::string(name) + " of memory that is not there");
  return cudaErrorInvalidValue;
}

// Bytes between two pieces of memory on a stream; `rows` of `width` bytes.
cudaError_t copy_on(cudaStream_t stream, const char* name, void* to, std::size_t to_pitch,
                    const void* from, std::size_t from_pitch, std::size_t width, std::size_t rows) {
  if (width == 0 || rows == 0) return cudaSuccess;
  const std::size_t to_bytes = to_pitch * (rows - 1) + width,
                    from_bytes = from_pitch * (rows - 1) + width;
  const int device = stream->device;
  if (!job->holds(to, to_bytes, device, name) || !job->holds(from, from_bytes, device, name))
    return cudaErrorInvalidValue;
  job->queue(*stream, {.name = name, .run = [=] {
                         if (!job->holds(to, to_bytes, device, name) ||
                             !job->holds(from, from_bytes, device, name))
                           return;
                         for (std::size_t row = 0; row < rows; ++row) {
                           std::memmove(static_cast<std::byte*>(to) + row * to_pitch,
                                        static_cast<const std::byte*>(from) + row * from_pitch,
                                        width);
                         }
                       }});
  return cudaSuccess;
}

void finish(Entry& entry, CUstream_st& stream) {
  while (!stream.operations.empty()) {
    if (!job->advance(stream)) entry.wait();
  }
}

}  // namespace

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  return allocate("cudaMalloc", data, bytes, current_device);
}
cudaError_t cudaMallocHost(void** data, std::size_t bytes) {
  return allocate("cudaMallocHost", data, bytes, -1);
}
cudaError_t cudaFree(void* data) {
  return release("cudaFree", data, true);
}
cudaError_t cudaFreeHost(void* data) {
  return release("cudaFreeHost", data, false);
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  Entry entry("cudaMemcpy");
  if (entry.failed()) return cudaErrorLaunchFailure;
  CUstream_st& stream = *resolve(nullptr);
  job->queue(stream, {.name = "cudaMemcpy", .run = [=] { std::memmove(to, from, bytes); }});
  finish(entry, stream);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  const Entry entry("cudaMemcpyAsync");
  if (entry.failed()) return cudaErrorLaunchFailure;
  return copy_on(resolve(stream), "cudaMemcpyAsync", to, bytes, from, bytes, bytes, 1);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind, cudaStream_t stream) {
  const Entry entry("cudaMemcpy2DAsync");
  if (entry.failed()) return cudaErrorLaunchFailure;
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidValue;
  return copy_on(resolve(stream), "cudaMemcpy2DAsync", to, to_pitch, from, from_pitch, width,
                 height);
}

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream) {
  const Entry entry("cudaMemsetAsync");
  if (entry.failed()) return cudaErrorLaunchFailure;
  CUstream_st& on = *resolve(stream);
  if (!job->holds(data, bytes, on.device, "cudaMemsetAsync")) return cudaErrorInvalidValue;
  job->queue(on, {.name = "cudaMemsetAsync", .run = [=] { std::memset(data, value, bytes); }});
  return cudaSuccess;
}

// Streams and events live as long as the job.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const Entry entry("cudaStreamCreateWithFlags");
  if (entry.failed()) return cudaErrorLaunchFailure;
  job->streams.push_back(std::make_unique<CUstream_st>(CUstream_st{.device = current_device}));
  *stream = job->streams.back().get();
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t) {
  const Entry entry("cudaStreamDestroy", Entry::quiet);
  return entry.failed() ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Entry entry("cudaStreamWaitEvent");
  if (entry.failed()) return cudaErrorLaunchFailure;
  job->queue(*resolve(stream),
             {.name = "wait", .run = {}, .awaited = event, .record = event->recorded});
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Entry entry("cudaStreamSynchronize");
  if (entry.failed()) return cudaErrorLaunchFailure;
  finish(entry, *resolve(stream));
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  const Entry entry("cudaEventCreateWithFlags");
  if (entry.failed()) return cudaErrorLaunchFailure;
  job->events.push_back(std::make_unique<CUevent_st>(CUevent_st{.device = current_device}));
  *event = job->events.back().get();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t) {
  const Entry entry("cudaEventDestroy", Entry::quiet);
  return entry.failed() ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Entry entry("cudaEventRecord");
  if (entry.failed()) return cudaErrorLaunchFailure;
  CUstream_st& on = *resolve(stream);
  if (event->device != on.device) job->mistake("an event of another device");
  event->stream = &on;
  const std::uint64_t record = ++event->recorded;
  job->queue(on, {.name = "record", .run = [=] { event->done = record; }});
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Entry entry("cudaEventQuery", Entry::poll);
  if (entry.failed()) return cudaErrorLaunchFailure;
  if (event->device != current_device) job->mistake("an event of another device");
  if (event->done == event->recorded) return cudaSuccess;
  if (job->rng.below(3) > 0) {
    while (event->done < event->recorded && job->advance(*event->stream)) continue;
  }
  return event->done == event->recorded ? cudaSuccess : cudaErrorNotReady;
}
