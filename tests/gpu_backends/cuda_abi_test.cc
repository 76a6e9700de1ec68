// Compares gpu_backends/cuda/cuda_abi.h and the functions in cuda_api.h with the toolkit's headers,
// where there is one.
#include "gpu_backends/cuda/cuda_abi.h"

#include <gtest/gtest.h>

#include "gpu_backends/cuda/cuda_api.h"
#include "tests/gpu_backends/abi_shape.h"

#if __has_include(<cudaTypedefs.h>)
#include <cuda.h>
#include <cudaTypedefs.h>

namespace ferry::gpu {
namespace {

#define FERRY_SAME_NUMBER(ours, theirs) \
  EXPECT_EQ(static_cast<long long>(ours), static_cast<long long>(theirs)) << #theirs

TEST(CudaAbiTest, ErrorsAreTheToolkits) {
  FERRY_SAME_NUMBER(kCudaSuccess, CUDA_SUCCESS);
  FERRY_SAME_NUMBER(kCudaErrorInvalidValue, CUDA_ERROR_INVALID_VALUE);
  FERRY_SAME_NUMBER(kCudaErrorOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  FERRY_SAME_NUMBER(kCudaErrorNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
  FERRY_SAME_NUMBER(kCudaErrorStubLibrary, CUDA_ERROR_STUB_LIBRARY);
  FERRY_SAME_NUMBER(kCudaErrorNoDevice, CUDA_ERROR_NO_DEVICE);
  FERRY_SAME_NUMBER(kCudaErrorInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
  FERRY_SAME_NUMBER(kCudaErrorInvalidImage, CUDA_ERROR_INVALID_IMAGE);
  FERRY_SAME_NUMBER(kCudaErrorNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
  FERRY_SAME_NUMBER(kCudaErrorInvalidPtx, CUDA_ERROR_INVALID_PTX);
  FERRY_SAME_NUMBER(kCudaErrorInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
  FERRY_SAME_NUMBER(kCudaErrorAlreadyMapped, CUDA_ERROR_ALREADY_MAPPED);
  FERRY_SAME_NUMBER(kCudaErrorInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
  FERRY_SAME_NUMBER(kCudaErrorNotFound, CUDA_ERROR_NOT_FOUND);
  FERRY_SAME_NUMBER(kCudaErrorNotReady, CUDA_ERROR_NOT_READY);
  FERRY_SAME_NUMBER(kCudaErrorIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
  FERRY_SAME_NUMBER(kCudaErrorPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  FERRY_SAME_NUMBER(kCudaErrorContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  FERRY_SAME_NUMBER(kCudaErrorHostMemoryAlreadyRegistered,
                    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  FERRY_SAME_NUMBER(kCudaErrorHostMemoryNotRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  FERRY_SAME_NUMBER(kCudaErrorLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
  FERRY_SAME_NUMBER(kCudaErrorNotPermitted, CUDA_ERROR_NOT_PERMITTED);
  FERRY_SAME_NUMBER(kCudaErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED);
  FERRY_SAME_NUMBER(kCudaErrorSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  FERRY_SAME_NUMBER(kCudaErrorCompatNotSupportedOnDevice,
                    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
  FERRY_SAME_NUMBER(kCudaErrorUnknown, CUDA_ERROR_UNKNOWN);
}

TEST(CudaAbiTest, AttributesAreTheToolkits) {
  FERRY_SAME_NUMBER(kCudaAttributeManagedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  FERRY_SAME_NUMBER(kCudaAttributeHostNativeAtomics,
                    CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED);
  FERRY_SAME_NUMBER(kCudaAttributeHostPointerForRegistered,
                    CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
#if CUDA_VERSION < 12000  // where the short name is that of the first variants
  FERRY_SAME_NUMBER(kCudaAttributeStreamMemOps64,
                    CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V2);
#else
  FERRY_SAME_NUMBER(kCudaAttributeStreamMemOps64,
                    CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
#endif
  FERRY_SAME_NUMBER(kCudaAttributeDmabufSupported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
  FERRY_SAME_NUMBER(kCudaPointerMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
  FERRY_SAME_NUMBER(kCudaPointerDevicePointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
  FERRY_SAME_NUMBER(kCudaPointerBufferId, CU_POINTER_ATTRIBUTE_BUFFER_ID);
  FERRY_SAME_NUMBER(kCudaPointerIsManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED);
  FERRY_SAME_NUMBER(kCudaPointerDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
  FERRY_SAME_NUMBER(kCudaPointerRangeStart, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
  FERRY_SAME_NUMBER(kCudaPointerRangeSize, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
  FERRY_SAME_NUMBER(kCudaPointerMappingSize, CU_POINTER_ATTRIBUTE_MAPPING_SIZE);
  FERRY_SAME_NUMBER(kCudaPointerMappingBase, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR);
  FERRY_SAME_NUMBER(kCudaMemoryHost, CU_MEMORYTYPE_HOST);
  FERRY_SAME_NUMBER(kCudaMemoryDevice, CU_MEMORYTYPE_DEVICE);
}

TEST(CudaAbiTest, FlagsAreTheToolkits) {
  FERRY_SAME_NUMBER(kCudaJitErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER);
  FERRY_SAME_NUMBER(kCudaJitErrorLogBufferBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  FERRY_SAME_NUMBER(kCudaIpcLazyPeerAccess, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  FERRY_SAME_NUMBER(kCudaMemAttachGlobal, CU_MEM_ATTACH_GLOBAL);
  FERRY_SAME_NUMBER(kCudaHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
  FERRY_SAME_NUMBER(kCudaHostAllocDeviceMap, CU_MEMHOSTALLOC_DEVICEMAP);
  FERRY_SAME_NUMBER(kCudaHostRegisterPortable, CU_MEMHOSTREGISTER_PORTABLE);
  FERRY_SAME_NUMBER(kCudaHostRegisterDeviceMap, CU_MEMHOSTREGISTER_DEVICEMAP);
  FERRY_SAME_NUMBER(kCudaHostRegisterIoMemory, CU_MEMHOSTREGISTER_IOMEMORY);
  FERRY_SAME_NUMBER(kCudaStreamNonBlocking, CU_STREAM_NON_BLOCKING);
  FERRY_SAME_NUMBER(kCudaStreamPerThread, reinterpret_cast<uintptr_t>(CU_STREAM_PER_THREAD));
  FERRY_SAME_NUMBER(kCudaEventDisableTiming, CU_EVENT_DISABLE_TIMING);
  FERRY_SAME_NUMBER(kCudaWaitValueGeq, CU_STREAM_WAIT_VALUE_GEQ);
  FERRY_SAME_NUMBER(kCudaWaitValueEq, CU_STREAM_WAIT_VALUE_EQ);
  FERRY_SAME_NUMBER(kCudaWriteValueDefault, CU_STREAM_WRITE_VALUE_DEFAULT);
  FERRY_SAME_NUMBER(kCudaMemRangeHandleTypeDmabuf, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
  FERRY_SAME_NUMBER(kCudaProcAddressLegacyStream, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
  FERRY_SAME_NUMBER(CUDA_VERSION / kCudaVersionMajor * kCudaVersionMajor +
                        CUDA_VERSION % kCudaVersionMajor / kCudaVersionMinor * kCudaVersionMinor,
                    CUDA_VERSION);
}

TEST(CudaAbiTest, TypesAreTheToolkits) {
  EXPECT_EQ(AbiTypeOf<CudaError>(), AbiTypeOf<CUresult>());
  EXPECT_EQ(AbiTypeOf<CudaDevice>(), AbiTypeOf<CUdevice>());
  EXPECT_EQ(AbiTypeOf<CudaContext>(), AbiTypeOf<CUcontext>());
  EXPECT_EQ(AbiTypeOf<CudaStream>(), AbiTypeOf<CUstream>());
  EXPECT_EQ(AbiTypeOf<CudaEvent>(), AbiTypeOf<CUevent>());
  EXPECT_EQ(AbiTypeOf<CudaModule>(), AbiTypeOf<CUmodule>());
  EXPECT_EQ(AbiTypeOf<CudaFunction>(), AbiTypeOf<CUfunction>());
  EXPECT_EQ(AbiTypeOf<CudaDevicePtr>(), AbiTypeOf<CUdeviceptr>());
  EXPECT_EQ(AbiTypeOf<CudaIpcMemHandle>(), AbiTypeOf<CUipcMemHandle>());
  EXPECT_EQ(AbiShape(CudaHostFunction{}), AbiShape(CUhostFn{}));
}

// The versions are those that cuda_api.cc asks for.
TEST(CudaAbiTest, FunctionsAreTheToolkits) {
  const CudaApi ours{};
#define FERRY_SAME_SHAPE(member, function, version) \
  EXPECT_EQ(AbiShape(ours.member), AbiShape(PFN_##function##_v##version{})) << #function
  FERRY_SAME_SHAPE(init, cuInit, 2000);
  FERRY_SAME_SHAPE(driver_get_version, cuDriverGetVersion, 2020);
  FERRY_SAME_SHAPE(get_error_name, cuGetErrorName, 6000);
  FERRY_SAME_SHAPE(device_get_count, cuDeviceGetCount, 2000);
  FERRY_SAME_SHAPE(device_get, cuDeviceGet, 2000);
  FERRY_SAME_SHAPE(device_get_name, cuDeviceGetName, 2000);
  FERRY_SAME_SHAPE(device_total_mem, cuDeviceTotalMem, 3020);
  FERRY_SAME_SHAPE(device_get_attribute, cuDeviceGetAttribute, 2000);
  FERRY_SAME_SHAPE(device_get_pci_bus_id, cuDeviceGetPCIBusId, 4010);
  FERRY_SAME_SHAPE(primary_ctx_retain, cuDevicePrimaryCtxRetain, 7000);
  FERRY_SAME_SHAPE(primary_ctx_release, cuDevicePrimaryCtxRelease, 11000);
  FERRY_SAME_SHAPE(primary_ctx_get_state, cuDevicePrimaryCtxGetState, 7000);
  FERRY_SAME_SHAPE(ctx_push_current, cuCtxPushCurrent, 4000);
  FERRY_SAME_SHAPE(ctx_pop_current, cuCtxPopCurrent, 4000);
  FERRY_SAME_SHAPE(mem_get_info, cuMemGetInfo, 3020);
  FERRY_SAME_SHAPE(device_can_access_peer, cuDeviceCanAccessPeer, 4000);
  FERRY_SAME_SHAPE(ctx_enable_peer_access, cuCtxEnablePeerAccess, 4000);
  FERRY_SAME_SHAPE(mem_alloc, cuMemAlloc, 3020);
  FERRY_SAME_SHAPE(mem_free, cuMemFree, 3020);
  FERRY_SAME_SHAPE(mem_host_alloc, cuMemHostAlloc, 2020);
  FERRY_SAME_SHAPE(mem_free_host, cuMemFreeHost, 2000);
  FERRY_SAME_SHAPE(mem_alloc_managed, cuMemAllocManaged, 6000);
  FERRY_SAME_SHAPE(pointer_get_attributes, cuPointerGetAttributes, 7000);
  FERRY_SAME_SHAPE(ipc_get_mem_handle, cuIpcGetMemHandle, 4010);
  FERRY_SAME_SHAPE(ipc_open_mem_handle, cuIpcOpenMemHandle, 11000);
  FERRY_SAME_SHAPE(ipc_close_mem_handle, cuIpcCloseMemHandle, 4010);
  FERRY_SAME_SHAPE(mem_host_register, cuMemHostRegister, 6050);
  FERRY_SAME_SHAPE(mem_host_unregister, cuMemHostUnregister, 4000);
  FERRY_SAME_SHAPE(mem_get_handle_for_address_range, cuMemGetHandleForAddressRange, 11070);
  FERRY_SAME_SHAPE(stream_create, cuStreamCreate, 2000);
  FERRY_SAME_SHAPE(stream_destroy, cuStreamDestroy, 4000);
  FERRY_SAME_SHAPE(stream_query, cuStreamQuery, 2000);
  FERRY_SAME_SHAPE(stream_get_ctx, cuStreamGetCtx, 9020);
  FERRY_SAME_SHAPE(memcpy_async, cuMemcpyAsync, 4000);
  FERRY_SAME_SHAPE(event_create, cuEventCreate, 2000);
  FERRY_SAME_SHAPE(event_destroy, cuEventDestroy, 4000);
  FERRY_SAME_SHAPE(event_record, cuEventRecord, 2000);
  FERRY_SAME_SHAPE(event_query, cuEventQuery, 2000);
  FERRY_SAME_SHAPE(stream_wait_event, cuStreamWaitEvent, 3020);
  FERRY_SAME_SHAPE(launch_host_func, cuLaunchHostFunc, 10000);
  FERRY_SAME_SHAPE(stream_write_value64, cuStreamWriteValue64, 11070);
  FERRY_SAME_SHAPE(stream_wait_value64, cuStreamWaitValue64, 11070);
  FERRY_SAME_SHAPE(module_load_data_ex, cuModuleLoadDataEx, 2010);
  FERRY_SAME_SHAPE(module_unload, cuModuleUnload, 2000);
  FERRY_SAME_SHAPE(module_get_function, cuModuleGetFunction, 2000);
  FERRY_SAME_SHAPE(launch_kernel, cuLaunchKernel, 4000);
#undef FERRY_SAME_SHAPE
}

}  // namespace
}  // namespace ferry::gpu

#else

TEST(CudaAbiTest, IsTheToolkits) { GTEST_SKIP() << "no CUDA toolkit is installed"; }

#endif
