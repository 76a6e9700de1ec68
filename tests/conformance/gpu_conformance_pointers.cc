// Conformance: devices, allocation, identification, registration.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "tests/conformance/gpu_backend_conformance.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kSize = 10'000;  // no multiple of a page

// `info` is the allocation at `memory` of `size_bytes`.
void ExpectAllocation(const PointerInfo& info, PointerKind kind, const void* memory,
                      uint64_t size_bytes) {
  EXPECT_EQ(info.kind, kind);
  EXPECT_EQ(info.base, memory);
  EXPECT_EQ(info.size_bytes, size_bytes);
  EXPECT_NE(info.allocation_id, 0u);
}

TEST_P(GpuBackendConformance, HasANameAndDescribesEachDevice) {
  EXPECT_FALSE(backend().name().empty());
  ASSERT_GE(backend().device_count(), 1);
  for (int device = 0; device < backend().device_count(); ++device) {
    StatusOr<DeviceInfo> info = backend().GetDeviceInfo(device);
    ASSERT_TRUE(info.ok()) << info.status().ToString();
    EXPECT_FALSE(info->name.empty());
    EXPECT_GT(info->total_bytes, 0u);
    EXPECT_GE(info->numa_node, -1);
    EXPECT_LE(info->free_bytes, info->total_bytes);
  }
  EXPECT_FALSE(backend().version().empty());
}

TEST_P(GpuBackendConformance, RejectsADeviceThatDoesNotExist) {
  for (const int device : {-1, backend().device_count()}) {
    FERRY_EXPECT_CODE(kInvalidArgument, backend().GetDeviceInfo(device).status());
    FERRY_EXPECT_CODE(kInvalidArgument, backend().AllocateDevice(device, kSize).status());
    FERRY_EXPECT_CODE(kInvalidArgument, backend().AllocateManaged(device, kSize).status());
    FERRY_EXPECT_CODE(kInvalidArgument, backend().CreateStream(device).status());
    FERRY_EXPECT_CODE(kInvalidArgument, backend().CreateEvent(device).status());
  }
}

// It depends on the machine if devices reach each other; the answer stays.
TEST_P(GpuBackendConformance, KernelsReachTheMemoryOfTheirDeviceAndOfOthers) {
  for (int owner = 0; owner < backend().device_count(); ++owner) {
    StatusOr<void*> data = backend().AllocateDevice(owner, kSize);
    ASSERT_TRUE(data.ok()) << data.status().ToString();
    const Memory memory(&backend(), *data);
    FERRY_EXPECT_OK(backend().LetKernelsReach(owner, memory.bytes() + kSize / 2));
    for (const int device : {-1, backend().device_count()}) {
      FERRY_EXPECT_CODE(kInvalidArgument, backend().LetKernelsReach(device, memory.data()));
    }
    for (int device = 0; device < backend().device_count(); ++device) {
      const Status opened = backend().LetKernelsReach(device, memory.data());
      EXPECT_TRUE(opened.ok() || opened.code() == ErrorCode::kUnsupported) << opened.ToString();
      EXPECT_EQ(backend().LetKernelsReach(device, memory.data()).code(), opened.code());
    }
  }
}

TEST_P(GpuBackendConformance, IdentifiesDeviceMemoryFromFirstToLastByte) {
  for (int device = 0; device < backend().device_count(); ++device) {
    StatusOr<void*> data = backend().AllocateDevice(device, kSize);
    ASSERT_TRUE(data.ok()) << data.status().ToString();
    const Memory memory(&backend(), *data);
    for (const uint64_t offset : {uint64_t{0}, kSize / 2, kSize - 1}) {
      const PointerInfo info = backend().Identify(memory.bytes() + offset);
      ExpectAllocation(info, PointerKind::kDevice, memory.data(), kSize);
      EXPECT_EQ(info.device, device);
    }
  }
}

TEST_P(GpuBackendConformance, MemoryIsInReachOfWhomItsDeviceSays) {
  for (int device = 0; device < backend().device_count(); ++device) {
    StatusOr<void*> data = backend().AllocateDevice(device, kSize);
    ASSERT_TRUE(data.ok()) << data.status().ToString();
    const Memory memory(&backend(), *data);
    const DirectAccess access = backend().GetDeviceInfo(device)->direct;
    EXPECT_EQ(backend().Identify(memory.data()).direct, access);
    if (access.cpu) {
      FERRY_EXPECT_OK(Upload(backend(), memory.data(), Pattern(kSize, 9)));
      EXPECT_EQ(Bytes(memory.bytes(), memory.bytes() + kSize), Pattern(kSize, 9));
    }
  }
  const Memory pinned = Pinned(kSize);
  EXPECT_EQ(backend().Identify(pinned.data()).direct, (DirectAccess{true, true}));
}

TEST_P(GpuBackendConformance, OnePastTheEndIsNotTheAllocation) {
  const Memory memory = Device(kSize);
  const uint64_t id = backend().Identify(memory.data()).allocation_id;
  EXPECT_NE(backend().Identify(memory.bytes() + kSize).allocation_id, id);
  EXPECT_NE(backend().Identify(memory.bytes() - 1).allocation_id, id);
}

TEST_P(GpuBackendConformance, IdentifiesPinnedMemory) {
  const Memory memory = Pinned(kSize);
  ExpectAllocation(backend().Identify(memory.bytes() + kSize - 1), PointerKind::kPinned,
                   memory.data(), kSize);
}

TEST_P(GpuBackendConformance, ManagedMemoryIsInReachOfCpusAndStreams) {
  StatusOr<void*> made = backend().AllocateManaged(0, kSize);
  if (!backend().GetDeviceInfo(0)->managed) {
    FERRY_EXPECT_CODE(kUnsupported, made.status());
    return;
  }
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  const Memory managed(&backend(), *made);
  ExpectAllocation(backend().Identify(managed.bytes() + 5), PointerKind::kManaged, managed.data(),
                   kSize);
  EXPECT_TRUE(backend().Identify(managed.data()).direct.cpu);
  const Bytes sent = Pattern(kSize, 3);
  std::copy(sent.begin(), sent.end(), managed.bytes());
  const Memory device = Device(kSize);
  FERRY_EXPECT_OK(stream().CopyAsync(device.data(), managed.data(), kSize));
  FERRY_EXPECT_OK(stream().Synchronize());
  std::fill(managed.bytes(), managed.bytes() + kSize, uint8_t{0});
  FERRY_EXPECT_OK(stream().CopyAsync(managed.data(), device.data(), kSize));
  FERRY_EXPECT_OK(stream().Synchronize());
  EXPECT_EQ(Bytes(managed.bytes(), managed.bytes() + kSize), sent);
}

TEST_P(GpuBackendConformance, DmabufIsOfDeviceMemoryOnly) {
  const Memory memory = Device(kSize);
  const Memory pinned = Pinned(kSize);
  const StatusOr<Dmabuf> dmabuf = backend().ExportDmabuf(memory.bytes() + 100);
  if (!dmabuf.ok()) {
    FERRY_EXPECT_CODE(kUnsupported, dmabuf.status());
    EXPECT_FALSE(dmabuf.status().message().empty());
  } else {
    EXPECT_TRUE(dmabuf->fd.valid());
    EXPECT_GE(dmabuf->offset_bytes, 100u);
  }
  EXPECT_FALSE(backend().ExportDmabuf(pinned.data()).ok());
}

TEST_P(GpuBackendConformance, AdoptsNoStreamThatIsNone) {
  const Status status = backend().AdoptStream(0, nullptr).status();
  EXPECT_TRUE(status.code() == ErrorCode::kInvalidArgument ||
              status.code() == ErrorCode::kUnsupported)
      << status.ToString();
  FERRY_EXPECT_CODE(kInvalidArgument, backend().AdoptStream(-1, nullptr).status());
}

TEST_P(GpuBackendConformance, KnowsNothingOfOtherPointers) {
  int on_stack = 0;
  const auto on_heap = std::make_unique<int>();
  const std::vector<const void*> pointers = {nullptr, &on_stack, on_heap.get(),
                                             reinterpret_cast<const void*>(uintptr_t{8}),
                                             reinterpret_cast<const void*>(~uintptr_t{0})};
  for (const void* pointer : pointers) {
    EXPECT_EQ(backend().Identify(pointer).kind, PointerKind::kUnknown) << pointer;
  }
}

TEST_P(GpuBackendConformance, ForgetsFreedMemoryAndNeverReusesItsId) {
  std::set<uint64_t> ids;
  for (int i = 0; i < 20; ++i) {
    Memory memory = Device(kSize);
    EXPECT_TRUE(ids.insert(backend().Identify(memory.data()).allocation_id).second);
    void* data = memory.Release();
    FERRY_EXPECT_OK(backend().Free(data));
    EXPECT_EQ(backend().Identify(data).kind, PointerKind::kUnknown);
  }
}

TEST_P(GpuBackendConformance, IdentifiesWhileOtherThreadsAllocateAndFree) {
  const Memory memory = Device(kSize);
  std::atomic<bool> stop{false};
  std::thread churn([&] {
    while (!stop.load()) {
      Device(kSize);
      Pinned(kSize);
    }
  });
  for (int i = 0; i < 2000; ++i) {
    EXPECT_EQ(backend().Identify(memory.bytes() + i).base, memory.data());
  }
  stop.store(true);
  churn.join();
}

TEST_P(GpuBackendConformance, RejectsAnAllocationOfNothing) {
  FERRY_EXPECT_CODE(kInvalidArgument, backend().AllocateDevice(0, 0).status());
  FERRY_EXPECT_CODE(kInvalidArgument, backend().AllocatePinned(0).status());
}

TEST_P(GpuBackendConformance, OutOfMemoryNamesTheSizes) {
  StatusOr<DeviceInfo> info = backend().GetDeviceInfo(0);
  ASSERT_TRUE(info.ok());
  const uint64_t too_much = info->total_bytes + 1;
  const Status status = backend().AllocateDevice(0, too_much).status();
  FERRY_EXPECT_CODE(kOutOfMemory, status);
  EXPECT_NE(status.message().find(std::to_string(too_much)), std::string::npos);
  EXPECT_NE(status.message().find(std::to_string(info->total_bytes)), std::string::npos);
}

TEST_P(GpuBackendConformance, FreeRejectsWhatItDidNotAllocate) {
  Memory memory = Device(kSize);
  int ordinary = 0;
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().Free(nullptr));
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().Free(&ordinary));
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().Free(memory.bytes() + 64));
  void* data = memory.Release();
  FERRY_EXPECT_OK(backend().Free(data));
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().Free(data));
}

TEST_P(GpuBackendConformance, RegisteredMemoryIsPinnedUntilUnregistered) {
  std::vector<uint8_t> buffer(kSize);
  FERRY_EXPECT_OK(backend().RegisterHostMemory(buffer.data(), kSize));
  ExpectAllocation(backend().Identify(buffer.data() + 17), PointerKind::kPinned, buffer.data(),
                   kSize);
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().Free(buffer.data()));
  FERRY_EXPECT_OK(backend().UnregisterHostMemory(buffer.data()));
  EXPECT_EQ(backend().Identify(buffer.data()).kind, PointerKind::kUnknown);
}

TEST_P(GpuBackendConformance, RegistrationRejectsOverlap) {
  std::vector<uint8_t> buffer(kSize);
  uint8_t* middle = buffer.data() + 4000;
  FERRY_EXPECT_OK(backend().RegisterHostMemory(middle, 1000));
  FERRY_EXPECT_CODE(kAlreadyExists, backend().RegisterHostMemory(middle, 1000));
  FERRY_EXPECT_CODE(kAlreadyExists, backend().RegisterHostMemory(middle + 999, 10));
  FERRY_EXPECT_CODE(kAlreadyExists, backend().RegisterHostMemory(middle - 10, 11));
  FERRY_EXPECT_CODE(kAlreadyExists, backend().RegisterHostMemory(buffer.data(), kSize));
  FERRY_EXPECT_OK(backend().UnregisterHostMemory(middle));
}

TEST_P(GpuBackendConformance, RegistrationRejectsWhatIsNoRange) {
  std::vector<uint8_t> buffer(kSize);
  FERRY_EXPECT_CODE(kInvalidArgument, backend().RegisterHostMemory(nullptr, kSize));
  FERRY_EXPECT_CODE(kInvalidArgument, backend().RegisterHostMemory(buffer.data(), 0));
  FERRY_EXPECT_CODE(kInvalidArgument, backend().RegisterHostMemory(buffer.data(), ~uint64_t{0}));
}

TEST_P(GpuBackendConformance, UnregisterRejectsWhatIsNotRegistered) {
  std::vector<uint8_t> buffer(kSize);
  const Memory pinned = Pinned(kSize);
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().UnregisterHostMemory(buffer.data()));
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().UnregisterHostMemory(pinned.data()));
  FERRY_EXPECT_OK(backend().RegisterHostMemory(buffer.data(), kSize));
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().UnregisterHostMemory(buffer.data() + 8));
  FERRY_EXPECT_OK(backend().UnregisterHostMemory(buffer.data()));
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().UnregisterHostMemory(buffer.data()));
}

// Checks in a forked child; returns the number of the first check that failed, or 0.
int CheckInForkedChild(GpuBackend& backend, Stream& stream, Event& event, void* memory) {
  const auto forked = [](const Status& status) { return status.code() == ErrorCode::kForked; };
  const bool checks[] = {
      backend.Identify(memory).kind == PointerKind::kUnknown,
      forked(backend.AllocateDevice(0, kSize).status()),
      forked(backend.AllocatePinned(kSize).status()),
      forked(backend.Free(memory)),
      forked(backend.ExportIpc(memory).status()),
      forked(backend.RegisterHostMemory(memory, kSize)),
      forked(backend.CreateStream(0).status()),
      forked(stream.CopyAsync(memory, memory, 0)),
      forked(stream.RecordEvent(&event)),
      forked(stream.Synchronize()),
      forked(event.Synchronize()),
  };
  int number = 0;
  for (const bool passed : checks) {
    ++number;
    if (!passed) {
      return number;
    }
  }
  return 0;
}

TEST_P(GpuBackendConformance, RefusesAForkedChildWithoutHanging) {
  const Memory memory = Device(kSize);
  const Memory word = Pinned(8);
  std::unique_ptr<Event> event = NewEvent();
  std::unique_ptr<Stream> stream = NewStream();
  // The stream is busy, so that its thread, if it has one, is missing in the child.
  FERRY_EXPECT_OK(stream->WaitValue64(word.words(), 1, WaitCondition::kEqual));
  FERRY_EXPECT_OK(stream->RecordEvent(event.get()));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int failed = CheckInForkedChild(backend(), *stream, *event, memory.data());
    stream.reset();
    event.reset();
    _exit(failed);
  }
  int exit_status = 0;
  ASSERT_EQ(waitpid(child, &exit_status, 0), child);
  EXPECT_TRUE(WIFEXITED(exit_status));
  EXPECT_EQ(WEXITSTATUS(exit_status), 0) << "the number of the check that failed in the child";
  StoreFromCpu(word.words(), 1);
  FERRY_EXPECT_OK(stream->Synchronize());
}

}  // namespace
}  // namespace ferry::gpu
