// Conformance: sharing allocations with another process.
#include <vector>

#include "tests/conformance/gpu_backend_conformance.h"
#include "tests/conformance/gpu_conformance_child.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kSize = 100'000;  // no multiple of a page

// Exports `pointer` to a child that plays `role`, and expects it to be content.
void ExpectChildContent(GpuBackend& backend, const std::string& name, const void* pointer,
                        ChildRole role) {
  StatusOr<ConformanceChild> child = ConformanceChild::Start(name, role);
  ASSERT_TRUE(child.ok()) << child.status().ToString();
  StatusOr<IpcHandle> handle = backend.ExportIpc(pointer);
  ASSERT_TRUE(handle.ok()) << handle.status().ToString();
  FERRY_EXPECT_OK(child->Send(*handle));
  StatusOr<std::string> answer = child->Answer();
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(*answer, "");
}

TEST_P(GpuBackendConformance, IpcSharesMemoryWithAnotherProcess) {
  const Memory memory = Device(kSize);
  FERRY_EXPECT_OK(Upload(backend(), memory.data(), Pattern(kSize, 1)));
  ExpectChildContent(backend(), GetParam().name, memory.data(), ChildRole::kReadThenOverwrite);
  ExpectHolds(memory.data(), Pattern(kSize, 2));
}

TEST_P(GpuBackendConformance, IpcKeepsTheOffsetOfAnInteriorPointer) {
  constexpr uint64_t kOffset = 4104;
  const Memory memory = Device(kSize);
  FERRY_EXPECT_OK(Upload(backend(), memory.data(), Pattern(kOffset, 9)));
  FERRY_EXPECT_OK(Upload(backend(), memory.bytes() + kOffset, Pattern(kSize - kOffset, 1)));
  ExpectChildContent(backend(), GetParam().name, memory.bytes() + kOffset,
                     ChildRole::kReadThenOverwrite);
  ExpectHolds(memory.data(), Pattern(kOffset, 9));
  ExpectHolds(memory.bytes() + kOffset, Pattern(kSize - kOffset, 2));
}

TEST_P(GpuBackendConformance, IpcImportIsIdentifiedAndOnlyCloseIpcReleasesIt) {
  const Memory memory = Device(kSize);
  ExpectChildContent(backend(), GetParam().name, memory.bytes() + 256,
                     ChildRole::kCheckImportRules);
}

TEST_P(GpuBackendConformance, IpcSharesOneAllocationWithSeveralProcesses) {
  const Memory memory = Device(kSize);
  for (int i = 0; i < 2; ++i) {
    FERRY_EXPECT_OK(Upload(backend(), memory.data(), Pattern(kSize, 1)));
    ExpectChildContent(backend(), GetParam().name, memory.data(), ChildRole::kReadThenOverwrite);
  }
}

TEST_P(GpuBackendConformance, IpcWordWrittenByAnotherProcessReleasesAStream) {
  const Memory memory = Device(4096);
  FERRY_EXPECT_OK(Upload(backend(), memory.data(), Bytes(4096, 0)));
  const Status waiting =
      stream().WaitValue64(memory.words() + 1, kWordFromChild, WaitCondition::kEqual);
  if (waiting.code() == ErrorCode::kInvalidBuffer) {
    GTEST_SKIP() << "streams cannot wait in this device's memory: " << waiting.ToString();
  }
  FERRY_EXPECT_OK(waiting);
  FERRY_EXPECT_CODE(kWouldBlock, stream().Query());
  ExpectChildContent(backend(), GetParam().name, memory.words() + 1, ChildRole::kWriteWord);
  FERRY_EXPECT_OK(stream().Synchronize());
}

TEST_P(GpuBackendConformance, IpcExportDescribesTheWholeAllocation) {
  const Memory memory = Device(kSize);
  StatusOr<IpcHandle> handle = backend().ExportIpc(memory.bytes() + 1000);
  ASSERT_TRUE(handle.ok()) << handle.status().ToString();
  EXPECT_EQ(handle->offset_bytes, 1000u);
  EXPECT_EQ(handle->size_bytes, kSize);
  EXPECT_EQ(handle->device, 0);
  EXPECT_EQ(handle->allocation_id, backend().Identify(memory.data()).allocation_id);
}

TEST_P(GpuBackendConformance, IpcExportRejectsWhatIsNotDeviceMemory) {
  const Memory pinned = Pinned(4096);
  std::vector<uint8_t> ordinary(64);
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().ExportIpc(pinned.data()).status());
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().ExportIpc(ordinary.data()).status());
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().ExportIpc(nullptr).status());
}

TEST_P(GpuBackendConformance, IpcImportRejectsAnEmptyHandleAndABadOffset) {
  FERRY_EXPECT_CODE(kInvalidArgument, backend().ImportIpc(IpcHandle{}).status());
  const Memory memory = Device(kSize);
  StatusOr<IpcHandle> handle = backend().ExportIpc(memory.data());
  ASSERT_TRUE(handle.ok());
  handle->offset_bytes = kSize;
  FERRY_EXPECT_CODE(kInvalidArgument, backend().ImportIpc(*handle).status());
}

TEST_P(GpuBackendConformance, IpcCloseRejectsWhatWasNotImported) {
  const Memory memory = Device(kSize);
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().CloseIpc(memory.data()));
  FERRY_EXPECT_CODE(kInvalidBuffer, backend().CloseIpc(nullptr));
}

}  // namespace
}  // namespace ferry::gpu
