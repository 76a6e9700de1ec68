// Copies that are waited for, between all kinds of memory, over an emulated link.
#include "gpu_backends/api/copy_streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "common/process_memory.h"
#include "gpu_backends/api/imported_memory.h"
#include "gpu_backends/host/host_backend.h"
#include "tests/gpu_backends/status_checks.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kBytes = 1 << 20;

class CopyStreamsTest : public testing::Test {
 protected:
  void SetUp() override {
    HostBackendOptions options;
    options.device_count = 2;
    options.link = {.h2d_mb_per_s = 8000, .d2h_mb_per_s = 8000, .latency_us = 5};
    backend_ = Must(CreateHostBackend(options));
    streams_ = std::make_unique<CopyStreams>(*backend_);
    device_ = Device(0);
  }
  std::byte* Device(int device) {
    void* const memory = Must(backend_->AllocateDevice(device, kBytes));
    return static_cast<std::byte*>(memory);
  }
  static std::vector<std::byte> Bytes(uint64_t size_bytes) {
    std::vector<std::byte> bytes(size_bytes);
    for (uint64_t i = 0; i < size_bytes; ++i) {
      bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
    }
    return bytes;
  }

  std::unique_ptr<GpuBackend> backend_;
  std::unique_ptr<CopyStreams> streams_;
  std::byte* device_ = nullptr;
};

TEST_F(CopyStreamsTest, CopiesOrdinaryMemoryOfAllSizes) {
  for (const uint64_t size_bytes : {uint64_t{0}, uint64_t{1}, uint64_t{32} << 10,
                                    (uint64_t{32} << 10) + 1, uint64_t{300'000}, kBytes}) {
    const std::vector<std::byte> sent = Bytes(size_bytes);
    std::vector<std::byte> got(size_bytes);
    ASSERT_TRUE(streams_->Copy(device_, sent.data(), size_bytes).ok());
    ASSERT_TRUE(streams_->Copy(got.data(), device_, size_bytes).ok());
    EXPECT_EQ(sent, got) << size_bytes;
  }
}

TEST_F(CopyStreamsTest, PacksToAndFromOrdinaryMemory) {
  const std::vector<std::byte> sent = Bytes(kBytes);
  for (const auto& [block_bytes, count] :
       {std::pair{uint64_t{4}, uint64_t{1000}}, {5, 100'000}, {60'000, 7}, {65'536, 9}}) {
    SCOPED_TRACE(std::to_string(count) + " blocks of " + std::to_string(block_bytes));
    const uint64_t stride = block_bytes + 3;
    std::vector<std::byte> packed(block_bytes * count);
    std::vector<std::byte> expected;
    std::vector<std::byte> back(kBytes, std::byte{0xee});
    std::vector<std::byte> got(kBytes);
    ASSERT_TRUE(streams_->Copy(device_, sent.data(), kBytes).ok());
    StridedCopy copy{device_, packed.data(), block_bytes, count, static_cast<int64_t>(stride),
                     true};
    Status status = streams_->CopyStrided(copy);
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_TRUE(streams_->Copy(device_, back.data(), kBytes).ok());
    copy.is_pack = false;
    status = streams_->CopyStrided(copy);
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_TRUE(streams_->Copy(got.data(), device_, kBytes).ok());
    for (uint64_t i = 0; i < count; ++i) {
      expected.insert(expected.end(), sent.begin() + static_cast<int64_t>(i * stride),
                      sent.begin() + static_cast<int64_t>(i * stride + block_bytes));
      std::memcpy(&back[i * stride], &sent[i * stride], block_bytes);
    }
    EXPECT_EQ(packed, expected);
    EXPECT_EQ(got, back);
  }
}

TEST_F(CopyStreamsTest, LeavesLongBlocksToCopies) {
  std::vector<std::byte> packed(600'000);
  EXPECT_EQ(streams_->CopyStrided({device_, packed.data(), 65'537, 2, 300'000, true}).code(),
            ErrorCode::kUnsupported);
  EXPECT_TRUE(streams_->CopyStrided({device_, packed.data(), 0, 2, 300'000, true}).ok());
}

// The device is that of the result or, where this is host memory, of whichever operand has one.
TEST_F(CopyStreamsTest, ReducesWhereverTheDeviceIsNamed) {
  std::byte* const other = Device(1);
  void* const pinned = Must(backend_->AllocatePinned(kBytes));
  constexpr uint64_t kCount = 1000;
  std::vector<int32_t> ones(kCount, 1);
  std::vector<int32_t> got(kCount);
  void* const buffers[] = {device_, other, pinned};
  for (void* const to : buffers) {
    for (void* const left : buffers) {
      for (void* const right : buffers) {
        for (void* const each : buffers) {
          ASSERT_TRUE(streams_->Copy(each, ones.data(), kCount * sizeof(int32_t)).ok());
        }
        const Status status = streams_->Reduce({to, left, right, kCount, ReductionType::kI32});
        ASSERT_TRUE(status.ok()) << status.ToString();
        ASSERT_TRUE(streams_->Copy(got.data(), to, kCount * sizeof(int32_t)).ok());
        EXPECT_EQ(got, std::vector<int32_t>(kCount, 2));
      }
    }
  }
  EXPECT_TRUE(streams_->Reduce({}).ok());
  EXPECT_TRUE(backend_->Free(pinned).ok());
}

TEST_F(CopyStreamsTest, KnowsWhatDevicesReduce) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(streams_->CanReduce(0, ReductionType::kF64, ReductionOp::kSum));
    EXPECT_TRUE(streams_->CanReduce(1, ReductionType::kF32I32, ReductionOp::kMaxloc));
    EXPECT_FALSE(streams_->CanReduce(0, ReductionType::kF64, ReductionOp::kBand));
    EXPECT_FALSE(streams_->CanReduce(2, ReductionType::kF64, ReductionOp::kSum));
  }
}

TEST_F(CopyStreamsTest, CopiesBetweenDevices) {
  std::byte* other = Device(1);
  const std::vector<std::byte> sent = Bytes(kBytes);
  std::vector<std::byte> got(kBytes);
  ASSERT_TRUE(streams_->Copy(device_, sent.data(), kBytes).ok());
  ASSERT_TRUE(streams_->Copy(other, device_, kBytes).ok());
  ASSERT_TRUE(streams_->Copy(got.data(), other, kBytes).ok());
  EXPECT_EQ(sent, got);
}

TEST_F(CopyStreamsTest, CopiesHostMemoryThatMayOverlap) {
  std::vector<std::byte> bytes = Bytes(100);
  const std::vector<std::byte> before = bytes;
  ASSERT_TRUE(streams_->Copy(bytes.data() + 1, bytes.data(), 99).ok());
  EXPECT_EQ(std::memcmp(bytes.data() + 1, before.data(), 99), 0);
}

TEST_F(CopyStreamsTest, ReadsAndWritesAnotherProcess) {
  const std::vector<std::byte> sent = Bytes(600'000);  // several pieces
  std::vector<std::byte> got(600'000);
  ASSERT_TRUE(
      streams_->Read(device_, getpid(), reinterpret_cast<uint64_t>(sent.data()), sent.size()).ok());
  ASSERT_TRUE(
      streams_->Write(getpid(), reinterpret_cast<uint64_t>(got.data()), device_, got.size()).ok());
  EXPECT_EQ(sent, got);
  EXPECT_EQ(streams_->Read(device_, getpid(), 64, 4096).code(), ErrorCode::kInvalidBuffer);
}

TEST_F(CopyStreamsTest, GoesOnAfterAnError) {
  std::vector<std::byte> bytes(8192);
  EXPECT_EQ(streams_->Copy(bytes.data(), device_ + kBytes - 4096, 8192).code(),
            ErrorCode::kInvalidBuffer);
  EXPECT_TRUE(streams_->Copy(bytes.data(), device_, 8192).ok());
}

TEST_F(CopyStreamsTest, SeveralThreadsCopyAtOnce) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (ptrdiff_t i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      std::vector<std::byte> sent(1000, static_cast<std::byte>(i));
      std::vector<std::byte> got(1000);
      for (int round = 0; round < 50; ++round) {
        ASSERT_TRUE(streams_->Copy(device_ + i * 1000, sent.data(), sent.size()).ok());
        ASSERT_TRUE(streams_->Copy(got.data(), device_ + i * 1000, got.size()).ok());
        ASSERT_EQ(sent, got);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(CopyStreamsTest, CopiesImportedMemory) {
  IpcHandle handle = Must(backend_->ExportIpc(device_));
  auto imported = ImportedMemory::Import(*backend_, handle);
  ASSERT_TRUE(imported.ok()) << imported.status().ToString();
  EXPECT_EQ((*imported)->size_bytes(), kBytes);
  const std::vector<std::byte> sent = Bytes(5000);
  std::vector<std::byte> got(5000);
  ASSERT_TRUE(streams_->Copy((*imported)->base(), sent.data(), sent.size()).ok());
  ASSERT_TRUE(streams_->Copy(got.data(), device_, got.size()).ok());
  EXPECT_EQ(sent, got);
  const std::byte* base = (*imported)->base();
  imported->reset();
  EXPECT_EQ(backend_->Identify(base).kind, PointerKind::kUnknown);
}

TEST_F(CopyStreamsTest, GuardedMemoryIsForStreamsAlone) {
  HostBackendOptions options;
  options.link = {.h2d_mb_per_s = 8000, .d2h_mb_per_s = 8000, .guard = true};
  const auto backend = CreateHostBackend(options);
  ASSERT_TRUE(backend.ok());
  CopyStreams streams(**backend);
  void* const memory = Must((*backend)->AllocateDevice(0, kBytes));
  IpcHandle handle = Must((*backend)->ExportIpc(memory));
  const auto imported = ImportedMemory::Import(**backend, handle);
  ASSERT_TRUE(imported.ok());
  const std::vector<std::byte> sent = Bytes(100'000);
  std::vector<std::byte> got(100'000);
  ASSERT_TRUE(streams.Copy(memory, sent.data(), sent.size()).ok());
  ASSERT_TRUE(streams.Copy(got.data(), (*imported)->base(), got.size()).ok());
  EXPECT_EQ(sent, got);
  // The kernel may not look there for us, so nor may we.
  for (const void* place :
       {static_cast<const void*>(memory), static_cast<const void*>((*imported)->base())}) {
    EXPECT_EQ(ReadProcessMemory(getpid(), reinterpret_cast<uint64_t>(place), got.data(), 64),
              ErrorCode::kInvalidBuffer);
  }
}

TEST_F(CopyStreamsTest, ImportsFromTheBeginningOnly) {
  IpcHandle handle = Must(backend_->ExportIpc(device_ + 4096));
  EXPECT_EQ(ImportedMemory::Import(*backend_, handle).status().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace ferry::gpu
