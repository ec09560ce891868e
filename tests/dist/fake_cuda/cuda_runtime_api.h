#pragma once

// The part of the CUDA runtime that dist/ uses, as a fake on the CPU; see fake_job.hpp. Kernels run by
// the emulation, whose types these are.

#define cudaGetErrorString emulated_error_string
#include "tests/cuda_emulation/cuda_runtime.h"
#undef cudaGetErrorString

using cudaStream_t = CUstream_st*;
struct CUevent_st;
using cudaEvent_t = CUevent_st*;

constexpr cudaError_t cudaErrorMemoryAllocation = 2, cudaErrorNoDevice = 100,
                      cudaErrorInvalidDevice = 101, cudaErrorInvalidValue = 1,
                      cudaErrorNotReady = 600, cudaErrorLaunchFailure = 719;
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;
#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(1))

enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};

struct cudaDeviceProp {
  char name[256] = "fake";
  struct {
    char bytes[16] = {};
  } uuid;
  int major = 9, minor = 0;
  std::size_t totalGlobalMem = std::size_t{1} << 30;
};

const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetPCIBusId(char* bus, int bytes, int device);

cudaError_t cudaMalloc(void** data, std::size_t bytes);
cudaError_t cudaFree(void* data);
cudaError_t cudaMallocHost(void** data, std::size_t bytes);
cudaError_t cudaFreeHost(void* data);
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
