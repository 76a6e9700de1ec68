// The part of the binary interface of AMD's HIP run time (libamdhip64) that Ferry uses, declared
// here since its headers are not available where Ferry is built. Names and numbers follow
// hip_runtime_api.h of ROCm 5.2 and 6.0; tests/gpu_backends/hip_abi_test.cc compares them where
// that is installed.
//
// Only what stayed the same in both is used, except for the memory types and a flag, which come in
// two forms. hipDeviceProp_t is not used: it changes with nearly every release.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry::gpu {

using HipError = int;  // hipError_t
inline constexpr HipError kHipSuccess = 0;
inline constexpr HipError kHipErrorInvalidValue = 1;
inline constexpr HipError kHipErrorOutOfMemory = 2;
inline constexpr HipError kHipErrorNotInitialized = 3;
inline constexpr HipError kHipErrorInvalidDevicePointer = 17;
inline constexpr HipError kHipErrorInsufficientDriver = 35;
inline constexpr HipError kHipErrorNoDevice = 100;
inline constexpr HipError kHipErrorInvalidDevice = 101;
inline constexpr HipError kHipErrorInvalidImage = 200;
inline constexpr HipError kHipErrorInvalidContext = 201;
inline constexpr HipError kHipErrorAlreadyMapped = 208;
inline constexpr HipError kHipErrorNoBinaryForGpu = 209;
inline constexpr HipError kHipErrorInvalidHandle = 400;
inline constexpr HipError kHipErrorNotFound = 500;
inline constexpr HipError kHipErrorNotReady = 600;
inline constexpr HipError kHipErrorPeerAccessAlreadyEnabled = 704;
inline constexpr HipError kHipErrorContextIsDestroyed = 709;  // also: no stream
inline constexpr HipError kHipErrorHostMemoryAlreadyRegistered = 712;
inline constexpr HipError kHipErrorHostMemoryNotRegistered = 713;
inline constexpr HipError kHipErrorLaunchFailure = 719;
inline constexpr HipError kHipErrorNotSupported = 801;
inline constexpr HipError kHipErrorUnknown = 999;

// hipRuntimeGetVersion's: major * 10^7 + minor * 10^5 + patch.
inline constexpr int kHipVersionMajor = 10'000'000;
inline constexpr int kHipVersionMinor = 100'000;

// hipDeviceAttribute_t
inline constexpr int kHipAttributeHostNativeAtomics = 15;
inline constexpr int kHipAttributeManagedMemory = 24;
inline constexpr int kHipAttributeCanUseStreamWaitValue = 10013;

// hipMemoryType of ROCm 5 and of ROCm 6 and later
inline constexpr int kHip5MemoryHost = 0;
inline constexpr int kHip5MemoryDevice = 1;
inline constexpr int kHip5MemoryManaged = 4;  // since 5.3
inline constexpr int kHip6MemoryUnregistered = 0;
inline constexpr int kHip6MemoryHost = 1;
inline constexpr int kHip6MemoryDevice = 2;
inline constexpr int kHip6MemoryManaged = 3;

struct HipPointerAttributes {  // hipPointerAttribute_t
  int memory_type;
  int device;
  void* device_pointer;
  void* host_pointer;
  int is_managed;
  unsigned allocation_flags;
};

struct HipMemLocation {  // hipMemLocation
  int type;
  int id;
};
inline constexpr int kHipMemLocationDevice = 1;  // hipMemLocationTypeDevice

struct HipIpcMemHandle {  // hipIpcMemHandle_t
  char reserved[64];
};
// hipIpcMemLazyEnablePeerAccess: each release takes its own value only.
inline constexpr unsigned kHip5IpcLazyPeerAccess = 0;
inline constexpr unsigned kHip6IpcLazyPeerAccess = 1;

inline constexpr int kHipMemcpyDefault = 4;             // hipMemcpyKind
inline constexpr int kHipPointerAttributeBufferId = 7;  // hipPointer_attribute
inline constexpr int kHipMemRangeHandleTypeDmabuf = 1;  // hipMemRangeHandleType
inline constexpr unsigned kHipHostMallocPortable = 1;
inline constexpr unsigned kHipHostMallocMapped = 2;
inline constexpr unsigned kHipHostMallocCoherent = 0x40000000;
inline constexpr unsigned kHipHostRegisterPortable = 1;
inline constexpr unsigned kHipHostRegisterMapped = 2;
inline constexpr unsigned kHipMemAttachGlobal = 1;
inline constexpr unsigned kHipStreamNonBlocking = 1;
inline constexpr unsigned kHipEventDisableTiming = 2;
inline constexpr unsigned kHipStreamWaitValueGte = 0;
inline constexpr unsigned kHipStreamWaitValueEq = 1;
inline constexpr uintptr_t kHipStreamPerThread = 2;  // hipStreamPerThread, as an address

using HipStream = void*;    // hipStream_t
using HipEvent = void*;     // hipEvent_t
using HipModule = void*;    // hipModule_t
using HipFunction = void*;  // hipFunction_t
using HipHostFunction = void (*)(void* user_data);
using HipStreamCallback = void (*)(HipStream stream, HipError status, void* user_data);

}  // namespace ferry::gpu
