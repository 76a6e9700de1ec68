// The part of the binary interface of NVIDIA's CUDA driver (libcuda) that Ferry uses, declared here
// since CUDA's headers are not available where Ferry is built. Names and numbers follow cuda.h of
// CUDA 11.7 to 13.0, which agree on all of this; tests/gpu_backends/cuda_abi_test.cc compares them
// where a toolkit is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry::gpu {

using CudaError = int;  // CUresult
inline constexpr CudaError kCudaSuccess = 0;
inline constexpr CudaError kCudaErrorInvalidValue = 1;
inline constexpr CudaError kCudaErrorOutOfMemory = 2;
inline constexpr CudaError kCudaErrorNotInitialized = 3;
inline constexpr CudaError kCudaErrorStubLibrary = 34;
inline constexpr CudaError kCudaErrorNoDevice = 100;
inline constexpr CudaError kCudaErrorInvalidDevice = 101;
inline constexpr CudaError kCudaErrorInvalidImage = 200;
inline constexpr CudaError kCudaErrorInvalidContext = 201;
inline constexpr CudaError kCudaErrorAlreadyMapped = 208;
inline constexpr CudaError kCudaErrorNoBinaryForGpu = 209;
inline constexpr CudaError kCudaErrorInvalidPtx = 218;
inline constexpr CudaError kCudaErrorInvalidHandle = 400;
inline constexpr CudaError kCudaErrorNotFound = 500;
inline constexpr CudaError kCudaErrorNotReady = 600;
inline constexpr CudaError kCudaErrorIllegalAddress = 700;
inline constexpr CudaError kCudaErrorPeerAccessAlreadyEnabled = 704;
inline constexpr CudaError kCudaErrorContextIsDestroyed = 709;
inline constexpr CudaError kCudaErrorHostMemoryAlreadyRegistered = 712;
inline constexpr CudaError kCudaErrorHostMemoryNotRegistered = 713;
inline constexpr CudaError kCudaErrorLaunchFailed = 719;
inline constexpr CudaError kCudaErrorNotPermitted = 800;
inline constexpr CudaError kCudaErrorNotSupported = 801;
inline constexpr CudaError kCudaErrorSystemDriverMismatch = 803;
inline constexpr CudaError kCudaErrorCompatNotSupportedOnDevice = 804;
inline constexpr CudaError kCudaErrorUnknown = 999;

// The number that cuDriverGetVersion returns: major * 1000 + minor * 10.
inline constexpr int kCudaVersionMajor = 1000;
inline constexpr int kCudaVersionMinor = 10;

// CUdevice_attribute
inline constexpr int kCudaAttributeManagedMemory = 83;
inline constexpr int kCudaAttributeHostNativeAtomics = 86;
inline constexpr int kCudaAttributeHostPointerForRegistered = 91;
inline constexpr int kCudaAttributeStreamMemOps64 = 122;
inline constexpr int kCudaAttributeDmabufSupported = 124;

// CUpointer_attribute
inline constexpr int kCudaPointerMemoryType = 2;
inline constexpr int kCudaPointerDevicePointer = 3;
inline constexpr int kCudaPointerBufferId = 7;
inline constexpr int kCudaPointerIsManaged = 8;
inline constexpr int kCudaPointerDeviceOrdinal = 9;
inline constexpr int kCudaPointerRangeStart = 11;
inline constexpr int kCudaPointerRangeSize = 12;
inline constexpr int kCudaPointerMappingSize = 18;
inline constexpr int kCudaPointerMappingBase = 19;

// CUmemorytype
inline constexpr unsigned kCudaMemoryHost = 1;
inline constexpr unsigned kCudaMemoryDevice = 2;

struct CudaIpcMemHandle {  // CUipcMemHandle
  char reserved[64];
};

inline constexpr unsigned kCudaIpcLazyPeerAccess = 1;  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
inline constexpr unsigned kCudaMemAttachGlobal = 1;    // CU_MEM_ATTACH_GLOBAL
inline constexpr unsigned kCudaHostAllocPortable = 1;  // CU_MEMHOSTALLOC_...
inline constexpr unsigned kCudaHostAllocDeviceMap = 2;
inline constexpr unsigned kCudaHostRegisterPortable = 1;  // CU_MEMHOSTREGISTER_...
inline constexpr unsigned kCudaHostRegisterDeviceMap = 2;
inline constexpr unsigned kCudaHostRegisterIoMemory = 4;
inline constexpr unsigned kCudaStreamNonBlocking = 1;   // CU_STREAM_NON_BLOCKING
inline constexpr uintptr_t kCudaStreamPerThread = 2;    // CU_STREAM_PER_THREAD, as an address
inline constexpr unsigned kCudaEventDisableTiming = 2;  // CU_EVENT_DISABLE_TIMING
inline constexpr unsigned kCudaWaitValueGeq = 0;        // CU_STREAM_WAIT_VALUE_...
inline constexpr unsigned kCudaWaitValueEq = 1;
inline constexpr unsigned kCudaWriteValueDefault = 0;        // CU_STREAM_WRITE_VALUE_DEFAULT
inline constexpr int kCudaMemRangeHandleTypeDmabuf = 1;      // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
inline constexpr uint64_t kCudaProcAddressLegacyStream = 1;  // CU_GET_PROC_ADDRESS_LEGACY_STREAM

inline constexpr int kCudaJitErrorLogBuffer = 5;  // CUjit_option
inline constexpr int kCudaJitErrorLogBufferBytes = 6;

using CudaDevice = int;                    // CUdevice
using CudaContext = void*;                 // CUcontext
using CudaStream = void*;                  // CUstream
using CudaEvent = void*;                   // CUevent
using CudaDevicePtr = unsigned long long;  // CUdeviceptr of 64-bit systems
using CudaModule = void*;                  // CUmodule
using CudaFunction = void*;                // CUfunction
using CudaHostFunction = void (*)(void* user_data);

}  // namespace ferry::gpu
