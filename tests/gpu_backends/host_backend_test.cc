// Behaviour of the host backend beyond the conformance suite.
#include "gpu_backends/host/host_backend.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "tests/gpu_backends/status_checks.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kMemoryBytes = 1 << 20;

std::unique_ptr<GpuBackend> Create(int device_count = 1) {
  HostBackendOptions options;
  options.device_count = device_count;
  options.device_memory_bytes = kMemoryBytes;
  return Must(CreateHostBackend(options));
}

ErrorCode ImportCode(GpuBackend& backend, UniqueFd fd, uint64_t size_bytes) {
  IpcHandle handle;
  handle.fd = std::move(fd);
  handle.size_bytes = size_bytes;
  return backend.ImportIpc(handle).status().code();
}

TEST(HostBackendTest, RejectsOptionsOutOfRange) {
  for (const int count : {-1, 0, 65}) {
    HostBackendOptions options;
    options.device_count = count;
    ExpectFails(CreateHostBackend(options).status(), ErrorCode::kInvalidArgument,
                "not " + std::to_string(count));
  }
  HostBackendOptions no_memory;
  no_memory.device_memory_bytes = 0;
  EXPECT_EQ(CreateHostBackend(no_memory).status().code(), ErrorCode::kInvalidArgument);
}

TEST(HostBackendTest, RejectsALinkThatCannotBe) {
  HostBackendOptions one_way;
  one_way.link.h2d_mb_per_s = 1234;
  Status status = CreateHostBackend(one_way).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("has 1234 MB/s to the device and 0"), std::string::npos);
  for (const uint64_t engines : {0, 3}) {
    HostBackendOptions options;
    options.link = PaperLink(engines);
    ExpectFails(CreateHostBackend(options).status(), ErrorCode::kInvalidArgument,
                "not " + std::to_string(engines));
  }
}

TEST(HostBackendTest, OnlyALinkPutsDeviceMemoryOutOfReach) {
  HostBackendOptions options;
  for (const bool linked : {false, true}) {
    options.link = linked ? PaperLink(1) : HostLinkOptions{};
    std::unique_ptr<GpuBackend> backend = Must(CreateHostBackend(options));
    const DirectAccess access = backend->GetDeviceInfo(0)->direct;
    EXPECT_EQ(access.cpu, !linked);
    EXPECT_EQ(access.network, !linked);
  }
}

TEST(HostBackendTest, DescribesItsEmulatedDevices) {
  const std::unique_ptr<GpuBackend> backend = Create(2);
  EXPECT_EQ(backend->name(), "host");
  EXPECT_EQ(backend->device_count(), 2);
  DeviceInfo info = Must(backend->GetDeviceInfo(1));
  EXPECT_EQ(info.total_bytes, kMemoryBytes);
  EXPECT_EQ(info.pci_address, "");
  EXPECT_EQ(info.numa_node, -1);
}

TEST(HostBackendTest, EachDeviceHasItsOwnMemoryAndGetsItBack) {
  const std::unique_ptr<GpuBackend> backend = Create(2);
  void* most = Must(backend->AllocateDevice(0, kMemoryBytes - 100));
  const Status full = backend->AllocateDevice(0, 101).status();
  EXPECT_EQ(full.code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(full.message().find("cannot allocate 101 bytes"), std::string::npos);
  EXPECT_NE(full.message().find(std::to_string(kMemoryBytes - 100) + " of its"), std::string::npos);
  EXPECT_TRUE(backend->AllocateDevice(0, 100).ok());
  EXPECT_TRUE(backend->AllocateDevice(1, kMemoryBytes).ok());
  ASSERT_TRUE(backend->Free(most).ok());
  EXPECT_TRUE(backend->AllocateDevice(0, kMemoryBytes - 100).ok());
}

TEST(HostBackendTest, MemoryTheKernelCannotGiveIsNotCounted) {
  HostBackendOptions options;
  options.device_memory_bytes = ~uint64_t{0};
  std::unique_ptr<GpuBackend> backend = Must(CreateHostBackend(options));
  for (int i = 0; i < 2; ++i) {  // were the first counted, the second would say "in use"
    const Status status = backend->AllocateDevice(0, uint64_t{1} << 63).status();
    EXPECT_EQ(status.code(), ErrorCode::kOutOfMemory);
    EXPECT_EQ(status.message().find("in use"), std::string::npos) << status.message();
  }
}

TEST(HostBackendTest, DeviceMemoryIsPageAlignedAndZeroedForTheCpu) {
  const std::unique_ptr<GpuBackend> backend = Create();
  void* data = Must(backend->AllocateDevice(0, 5000));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % sysconf(_SC_PAGESIZE), 0u);
  EXPECT_EQ(std::string(static_cast<char*>(data), 5000), std::string(5000, '\0'));
}

TEST(HostBackendTest, DeviceMemoryCannotChangeItsSize) {
  const std::unique_ptr<GpuBackend> backend = Create();
  void* data = Must(backend->AllocateDevice(0, 5000));
  IpcHandle handle = Must(backend->ExportIpc(data));
  EXPECT_EQ(fcntl(handle.fd.get(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_NE(fcntl(handle.fd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(HostBackendTest, PinnedMemoryDoesNotCountAgainstADevice) {
  const std::unique_ptr<GpuBackend> backend = Create();
  EXPECT_TRUE(backend->AllocatePinned(2 * kMemoryBytes).ok());
  EXPECT_TRUE(backend->AllocateDevice(0, kMemoryBytes).ok());
}

TEST(HostBackendTest, ImportOutlivesItsExporter) {
  std::unique_ptr<GpuBackend> exporter = Create();
  const std::unique_ptr<GpuBackend> importer = Create();
  void* data = Must(exporter->AllocateDevice(0, 4096));
  std::strcpy(static_cast<char*>(data), "still here");
  IpcHandle handle = Must(exporter->ExportIpc(data));
  exporter.reset();
  void* import = Must(importer->ImportIpc(handle));
  EXPECT_STREQ(static_cast<char*>(import), "still here");
}

TEST(HostBackendTest, OneHandleImportedTwiceIsClosedTwice) {
  const std::unique_ptr<GpuBackend> backend = Create();
  void* data = Must(backend->AllocateDevice(0, 4096));
  IpcHandle handle = Must(backend->ExportIpc(static_cast<char*>(data) + 8));
  StatusOr<void*> first = backend->ImportIpc(handle);
  StatusOr<void*> second = backend->ImportIpc(handle);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(backend->CloseIpc(*first).ok());
  *static_cast<int*>(*second) = 5;
  EXPECT_EQ(static_cast<int*>(data)[2], 5);
  EXPECT_TRUE(backend->CloseIpc(*second).ok());
}

TEST(HostBackendTest, ImportRejectsMemoryThatCouldShrink) {
  const std::unique_ptr<GpuBackend> backend = Create();
  UniqueFd unsealed(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 4096), 0);
  EXPECT_EQ(ImportCode(*backend, std::move(unsealed), 4096), ErrorCode::kCorrupt);
  UniqueFd no_memory(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(ImportCode(*backend, std::move(no_memory), 4096), ErrorCode::kCorrupt);
}

TEST(HostBackendTest, ImportRejectsAHandleLargerThanItsMemory) {
  const std::unique_ptr<GpuBackend> backend = Create();
  void* data = Must(backend->AllocateDevice(0, 4096));
  IpcHandle handle = Must(backend->ExportIpc(data));
  handle.size_bytes = 8192;
  ExpectFails(backend->ImportIpc(handle).status(), ErrorCode::kCorrupt, "8192");
}

TEST(HostBackendTest, MisuseSaysWhatToCallInstead) {
  const std::unique_ptr<GpuBackend> backend = Create();
  char buffer[64];
  ASSERT_TRUE(backend->RegisterHostMemory(buffer, sizeof(buffer)).ok());
  EXPECT_NE(backend->Free(buffer).message().find("UnregisterHostMemory"), std::string::npos);
  void* data = Must(backend->AllocatePinned(64));
  EXPECT_NE(backend->CloseIpc(data).message().find("Free"), std::string::npos);
}

}  // namespace
}  // namespace ferry::gpu
