// Compares gpu_backends/hip/hip_abi.h and the functions in hip_api.h with AMD's headers, where they
// are installed.
#include "gpu_backends/hip/hip_abi.h"

#include <gtest/gtest.h>

#include "gpu_backends/hip/hip_api.h"
#include "tests/fixtures/hip/hip_stand_in.h"
#include "tests/gpu_backends/abi_shape.h"

#if __has_include(<hip/hip_runtime_api.h>)
#define __HIP_PLATFORM_AMD__ 1  // NOLINT(bugprone-reserved-identifier): AMD's
#include <hip/hip_runtime_api.h>
#include <hip/hip_version.h>
#if __has_include(<hsa/hsa_ext_amd.h>)
#include <hsa/hsa_ext_amd.h>
#endif

#include <cstddef>

namespace ferry::gpu {
namespace {

#define FERRY_SAME_NUMBER(ours, theirs) \
  EXPECT_EQ(static_cast<long long>(ours), static_cast<long long>(theirs)) << #theirs

TEST(HipAbiTest, ErrorsAreAmds) {
  FERRY_SAME_NUMBER(kHipSuccess, hipSuccess);
  FERRY_SAME_NUMBER(kHipErrorInvalidValue, hipErrorInvalidValue);
  FERRY_SAME_NUMBER(kHipErrorOutOfMemory, hipErrorOutOfMemory);
  FERRY_SAME_NUMBER(kHipErrorNotInitialized, hipErrorNotInitialized);
  FERRY_SAME_NUMBER(kHipErrorInvalidDevicePointer, hipErrorInvalidDevicePointer);
  FERRY_SAME_NUMBER(kHipErrorInsufficientDriver, hipErrorInsufficientDriver);
  FERRY_SAME_NUMBER(kHipErrorNoDevice, hipErrorNoDevice);
  FERRY_SAME_NUMBER(kHipErrorInvalidDevice, hipErrorInvalidDevice);
  FERRY_SAME_NUMBER(kHipErrorInvalidImage, hipErrorInvalidImage);
  FERRY_SAME_NUMBER(kHipErrorNoBinaryForGpu, hipErrorNoBinaryForGpu);
  FERRY_SAME_NUMBER(kHipErrorInvalidContext, hipErrorInvalidContext);
  FERRY_SAME_NUMBER(kHipErrorAlreadyMapped, hipErrorAlreadyMapped);
  FERRY_SAME_NUMBER(kHipErrorInvalidHandle, hipErrorInvalidHandle);
  FERRY_SAME_NUMBER(kHipErrorNotFound, hipErrorNotFound);
  FERRY_SAME_NUMBER(kHipErrorNotReady, hipErrorNotReady);
  FERRY_SAME_NUMBER(kHipErrorPeerAccessAlreadyEnabled, hipErrorPeerAccessAlreadyEnabled);
  FERRY_SAME_NUMBER(kHipErrorContextIsDestroyed, hipErrorContextIsDestroyed);
  FERRY_SAME_NUMBER(kHipErrorHostMemoryAlreadyRegistered, hipErrorHostMemoryAlreadyRegistered);
  FERRY_SAME_NUMBER(kHipErrorHostMemoryNotRegistered, hipErrorHostMemoryNotRegistered);
  FERRY_SAME_NUMBER(kHipErrorLaunchFailure, hipErrorLaunchFailure);
  FERRY_SAME_NUMBER(kHipErrorNotSupported, hipErrorNotSupported);
  FERRY_SAME_NUMBER(kHipErrorUnknown, hipErrorUnknown);
}

TEST(HipAbiTest, AttributesAreAmds) {
  FERRY_SAME_NUMBER(kHipAttributeHostNativeAtomics, hipDeviceAttributeHostNativeAtomicSupported);
  FERRY_SAME_NUMBER(kHipAttributeManagedMemory, hipDeviceAttributeManagedMemory);
  FERRY_SAME_NUMBER(kHipAttributeCanUseStreamWaitValue, hipDeviceAttributeCanUseStreamWaitValue);
  FERRY_SAME_NUMBER(kHipPointerAttributeBufferId, HIP_POINTER_ATTRIBUTE_BUFFER_ID);
#if HIP_VERSION_MAJOR == 5
  FERRY_SAME_NUMBER(kHip5MemoryHost, hipMemoryTypeHost);
  FERRY_SAME_NUMBER(kHip5MemoryDevice, hipMemoryTypeDevice);
#if HIP_VERSION_MINOR >= 3
  FERRY_SAME_NUMBER(kHip5MemoryManaged, hipMemoryTypeManaged);
#endif
#else
  FERRY_SAME_NUMBER(kHip6MemoryUnregistered, hipMemoryTypeUnregistered);
  FERRY_SAME_NUMBER(kHip6MemoryHost, hipMemoryTypeHost);
  FERRY_SAME_NUMBER(kHip6MemoryDevice, hipMemoryTypeDevice);
  FERRY_SAME_NUMBER(kHip6MemoryManaged, hipMemoryTypeManaged);
#endif
  EXPECT_EQ(HIP_VERSION / kHipVersionMajor, HIP_VERSION_MAJOR);
  EXPECT_EQ(HIP_VERSION % kHipVersionMajor / kHipVersionMinor, HIP_VERSION_MINOR);
}

TEST(HipAbiTest, FlagsAreAmds) {
  EXPECT_TRUE(hipIpcMemLazyEnablePeerAccess == kHip5IpcLazyPeerAccess ||
              hipIpcMemLazyEnablePeerAccess == kHip6IpcLazyPeerAccess);
  FERRY_SAME_NUMBER(kHipMemcpyDefault, hipMemcpyDefault);
  FERRY_SAME_NUMBER(kHipHostMallocPortable, hipHostMallocPortable);
  FERRY_SAME_NUMBER(kHipHostMallocMapped, hipHostMallocMapped);
  FERRY_SAME_NUMBER(kHipHostMallocCoherent, hipHostMallocCoherent);
  FERRY_SAME_NUMBER(kHipHostRegisterPortable, hipHostRegisterPortable);
  FERRY_SAME_NUMBER(kHipHostRegisterMapped, hipHostRegisterMapped);
  FERRY_SAME_NUMBER(kHipMemAttachGlobal, hipMemAttachGlobal);
  FERRY_SAME_NUMBER(kHipStreamNonBlocking, hipStreamNonBlocking);
  FERRY_SAME_NUMBER(kHipEventDisableTiming, hipEventDisableTiming);
  FERRY_SAME_NUMBER(kHipStreamWaitValueGte, hipStreamWaitValueGte);
  FERRY_SAME_NUMBER(kHipStreamWaitValueEq, hipStreamWaitValueEq);
  FERRY_SAME_NUMBER(kHipStreamPerThread, reinterpret_cast<uintptr_t>(hipStreamPerThread));
}

TEST(HipAbiTest, TypesAreAmds) {
  EXPECT_EQ(AbiTypeOf<HipError>(), AbiTypeOf<hipError_t>());
  EXPECT_EQ(AbiTypeOf<HipStream>(), AbiTypeOf<hipStream_t>());
  EXPECT_EQ(AbiTypeOf<HipEvent>(), AbiTypeOf<hipEvent_t>());
  EXPECT_EQ(AbiTypeOf<HipModule>(), AbiTypeOf<hipModule_t>());
  EXPECT_EQ(AbiTypeOf<HipFunction>(), AbiTypeOf<hipFunction_t>());
  EXPECT_EQ(AbiTypeOf<HipIpcMemHandle>(), AbiTypeOf<hipIpcMemHandle_t>());
  EXPECT_EQ(AbiShape(HipStreamCallback{}), AbiShape(hipStreamCallback_t{}));
  EXPECT_EQ(AbiShape(HipHostFunction{}), AbiShape(hipHostFn_t{}));
  EXPECT_EQ(sizeof(HipPointerAttributes), sizeof(hipPointerAttribute_t));
  EXPECT_EQ(offsetof(HipPointerAttributes, device), offsetof(hipPointerAttribute_t, device));
  EXPECT_EQ(offsetof(HipPointerAttributes, device_pointer),
            offsetof(hipPointerAttribute_t, devicePointer));
  EXPECT_EQ(offsetof(HipPointerAttributes, host_pointer),
            offsetof(hipPointerAttribute_t, hostPointer));
  EXPECT_EQ(offsetof(HipPointerAttributes, is_managed), offsetof(hipPointerAttribute_t, isManaged));
  EXPECT_EQ(offsetof(HipPointerAttributes, allocation_flags),
            offsetof(hipPointerAttribute_t, allocationFlags));
}

#if HIP_VERSION_MAJOR >= 6
TEST(HipAbiTest, VirtualMemoryIsAmds) {
  FERRY_SAME_NUMBER(kHipMemLocationDevice, hipMemLocationTypeDevice);
  FERRY_SAME_NUMBER(fixtures::kHipMemPinnedType, hipMemAllocationTypePinned);
  FERRY_SAME_NUMBER(fixtures::kHipMemReadWrite, hipMemAccessFlagsProtReadWrite);
  EXPECT_EQ(sizeof(HipMemLocation), sizeof(hipMemLocation));
  EXPECT_EQ(offsetof(HipMemLocation, id), offsetof(hipMemLocation, id));
  using Properties = fixtures::HipMemProperties;
  EXPECT_EQ(sizeof(Properties), sizeof(hipMemAllocationProp));
  EXPECT_EQ(offsetof(Properties, location), offsetof(hipMemAllocationProp, location));
  EXPECT_EQ(offsetof(Properties, compression), offsetof(hipMemAllocationProp, allocFlags));
  EXPECT_EQ(sizeof(fixtures::HipMemAccess), sizeof(hipMemAccessDesc));
  EXPECT_EQ(offsetof(fixtures::HipMemAccess, flags), offsetof(hipMemAccessDesc, flags));
}
#endif

TEST(HipAbiTest, FunctionsAreAmds) {
  const HipApi ours{};
#define FERRY_SAME_SHAPE(member, function) \
  EXPECT_EQ(AbiShape(ours.member), AbiShape(decltype(&function){})) << #function
// For a function that the headers overload with a template.
#define FERRY_SAME_SHAPE_OF(member, function, ...)                                            \
  EXPECT_EQ(AbiShape(ours.member), AbiShape(decltype(static_cast<__VA_ARGS__>(&function)){})) \
      << #function
  FERRY_SAME_SHAPE(runtime_get_version, hipRuntimeGetVersion);
  FERRY_SAME_SHAPE(get_device_count, hipGetDeviceCount);
  FERRY_SAME_SHAPE(get_device, hipGetDevice);
  FERRY_SAME_SHAPE(set_device, hipSetDevice);
  FERRY_SAME_SHAPE(device_get_name, hipDeviceGetName);
  FERRY_SAME_SHAPE(device_total_mem, hipDeviceTotalMem);
  FERRY_SAME_SHAPE(device_get_pci_bus_id, hipDeviceGetPCIBusId);
  FERRY_SAME_SHAPE(device_get_attribute, hipDeviceGetAttribute);
  FERRY_SAME_SHAPE(mem_get_info, hipMemGetInfo);
  FERRY_SAME_SHAPE(device_can_access_peer, hipDeviceCanAccessPeer);
  FERRY_SAME_SHAPE(device_enable_peer_access, hipDeviceEnablePeerAccess);
  FERRY_SAME_SHAPE(get_error_name, hipGetErrorName);
  FERRY_SAME_SHAPE(get_last_error, hipGetLastError);
  FERRY_SAME_SHAPE(peek_at_last_error, hipPeekAtLastError);
  FERRY_SAME_SHAPE_OF(malloc, hipMalloc, hipError_t(*)(void**, size_t));
  FERRY_SAME_SHAPE(free, hipFree);
  FERRY_SAME_SHAPE_OF(host_malloc, hipHostMalloc, hipError_t(*)(void**, size_t, unsigned));
  FERRY_SAME_SHAPE(host_free, hipHostFree);
  FERRY_SAME_SHAPE_OF(malloc_managed, hipMallocManaged, hipError_t(*)(void**, size_t, unsigned));
  FERRY_SAME_SHAPE(pointer_get_attributes, hipPointerGetAttributes);
  FERRY_SAME_SHAPE(pointer_get_attribute, hipPointerGetAttribute);
  FERRY_SAME_SHAPE(mem_get_address_range, hipMemGetAddressRange);
  FERRY_SAME_SHAPE(ipc_get_mem_handle, hipIpcGetMemHandle);
  FERRY_SAME_SHAPE(ipc_open_mem_handle, hipIpcOpenMemHandle);
  FERRY_SAME_SHAPE(ipc_close_mem_handle, hipIpcCloseMemHandle);
  FERRY_SAME_SHAPE(host_register, hipHostRegister);
  FERRY_SAME_SHAPE(host_unregister, hipHostUnregister);
  FERRY_SAME_SHAPE(host_get_device_pointer, hipHostGetDevicePointer);
  FERRY_SAME_SHAPE(stream_create_with_flags, hipStreamCreateWithFlags);
  FERRY_SAME_SHAPE(stream_destroy, hipStreamDestroy);
  FERRY_SAME_SHAPE(stream_query, hipStreamQuery);
  FERRY_SAME_SHAPE(stream_get_flags, hipStreamGetFlags);
  FERRY_SAME_SHAPE(memcpy_async, hipMemcpyAsync);
  FERRY_SAME_SHAPE(event_create_with_flags, hipEventCreateWithFlags);
  FERRY_SAME_SHAPE(event_destroy, hipEventDestroy);
  FERRY_SAME_SHAPE(event_record, hipEventRecord);
  FERRY_SAME_SHAPE(event_query, hipEventQuery);
  FERRY_SAME_SHAPE(stream_wait_event, hipStreamWaitEvent);
  FERRY_SAME_SHAPE(stream_add_callback, hipStreamAddCallback);
  FERRY_SAME_SHAPE(stream_write_value64, hipStreamWriteValue64);
  FERRY_SAME_SHAPE(stream_wait_value64, hipStreamWaitValue64);
  FERRY_SAME_SHAPE(launch_host_func, hipLaunchHostFunc);
  FERRY_SAME_SHAPE(module_load_data, hipModuleLoadData);
  FERRY_SAME_SHAPE(module_unload, hipModuleUnload);
  FERRY_SAME_SHAPE(module_get_function, hipModuleGetFunction);
  FERRY_SAME_SHAPE(module_launch_kernel, hipModuleLaunchKernel);
#if HIP_VERSION_MAJOR >= 6
  FERRY_SAME_SHAPE(stream_get_device, hipStreamGetDevice);
  FERRY_SAME_SHAPE(mem_get_access, hipMemGetAccess);
#endif
#if HIP_VERSION_MAJOR >= 7
  FERRY_SAME_SHAPE(mem_get_handle_for_address_range, hipMemGetHandleForAddressRange);
  FERRY_SAME_NUMBER(kHipMemRangeHandleTypeDmabuf, hipMemRangeHandleTypeDmaBufFd);
#endif
#if HSA_AMD_INTERFACE_VERSION_MINOR >= 1
  const decltype(&hsa_amd_portable_export_dmabuf) export_dmabuf = nullptr;
  EXPECT_EQ(AbiShape(ours.hsa_export_dmabuf), AbiShape(export_dmabuf));
#endif
}

}  // namespace
}  // namespace ferry::gpu

#else

TEST(HipAbiTest, IsAmds) { GTEST_SKIP() << "AMD's HIP headers are not installed"; }

#endif
