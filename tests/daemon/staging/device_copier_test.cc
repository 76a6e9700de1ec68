// Copies between staging memory and device memory by streams.
#include "daemon/staging/device_copier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "gpu_backends/host/host_backend.h"
#include "internode/staging/staging_pool.h"
#include "tests/internode/registration/test_registrar.h"
#include "tests/support/patience.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kBlockBytes = 64 << 10;

// A stream whose copies fail once it has come to them, as long as `broken` says so.
class BreakingStream final : public gpu::Stream {
 public:
  BreakingStream(std::unique_ptr<gpu::Stream> real, const std::atomic<bool>& broken)
      : real_(std::move(real)), broken_(broken) {}
  Status CopyStrided(const gpu::StridedCopy& copy) override { return real_->CopyStrided(copy); }
  Status CopySpread(const gpu::SpreadCopy& copy) override { return real_->CopySpread(copy); }
  Status Reduce(const gpu::Reduction& reduction) override { return real_->Reduce(reduction); }
  Status CopyAsync(void* destination, const void* source, uint64_t size_bytes) override {
    return broken_ ? real_->LaunchHost([] { return Status(ErrorCode::kSystem, "broken"); })
                   : real_->CopyAsync(destination, source, size_bytes);
  }
  Status LaunchMove(const gpu::MatchedMove& move) override { return real_->LaunchMove(move); }
  Status AwaitMove(const gpu::MatchedMove& move) override { return real_->AwaitMove(move); }
  Status RecordEvent(gpu::Event* event) override { return real_->RecordEvent(event); }
  Status WaitEvent(gpu::Event* event) override { return real_->WaitEvent(event); }
  Status WriteValue64(uint64_t* word, uint64_t value) override {
    return real_->WriteValue64(word, value);
  }
  Status WaitValue64(uint64_t* word, uint64_t value, gpu::WaitCondition condition) override {
    return real_->WaitValue64(word, value, condition);
  }
  Status LaunchHost(std::function<Status()> function) override {
    return real_->LaunchHost(std::move(function));
  }
  Status Query() override { return real_->Query(); }
  Status Synchronize() override { return real_->Synchronize(); }

 private:
  const std::unique_ptr<gpu::Stream> real_;
  const std::atomic<bool>& broken_;
};

class BreakingBackend final : public gpu::GpuBackend {
 public:
  explicit BreakingBackend(std::unique_ptr<gpu::GpuBackend> real) : real_(std::move(real)) {}
  std::string_view name() const override { return "breaking"; }
  std::string version() const override { return real_->version(); }
  int device_count() const override { return real_->device_count(); }
  StatusOr<gpu::DeviceInfo> GetDeviceInfo(int device) const override {
    return real_->GetDeviceInfo(device);
  }
  gpu::PointerInfo Identify(const void* pointer) const override { return real_->Identify(pointer); }
  StatusOr<void*> AllocateDevice(int device, uint64_t size_bytes) override {
    return real_->AllocateDevice(device, size_bytes);
  }
  StatusOr<void*> AllocatePinned(uint64_t size_bytes) override {
    return real_->AllocatePinned(size_bytes);
  }
  StatusOr<void*> AllocateManaged(int device, uint64_t size_bytes) override {
    return real_->AllocateManaged(device, size_bytes);
  }
  Status Free(void* pointer) override { return real_->Free(pointer); }
  StatusOr<gpu::IpcHandle> ExportIpc(const void* pointer) override {
    return real_->ExportIpc(pointer);
  }
  StatusOr<void*> ImportIpc(const gpu::IpcHandle& handle) override {
    return real_->ImportIpc(handle);
  }
  Status CloseIpc(void* pointer) override { return real_->CloseIpc(pointer); }
  StatusOr<gpu::Dmabuf> ExportDmabuf(const void* pointer) override {
    return real_->ExportDmabuf(pointer);
  }
  Status LetKernelsReach(int device, const void* pointer) override {
    return real_->LetKernelsReach(device, pointer);
  }
  Status RegisterHostMemory(void* pointer, uint64_t size_bytes) override {
    return real_->RegisterHostMemory(pointer, size_bytes);
  }
  Status UnregisterHostMemory(void* pointer) override {
    return real_->UnregisterHostMemory(pointer);
  }
  StatusOr<std::unique_ptr<gpu::Stream>> CreateStream(int device) override {
    auto stream = real_->CreateStream(device);
    FERRY_RETURN_IF_ERROR(stream.status());
    return std::unique_ptr<gpu::Stream>(
        std::make_unique<BreakingStream>(std::move(*stream), broken));
  }
  StatusOr<std::unique_ptr<gpu::Stream>> AdoptStream(int device, void* native) override {
    return real_->AdoptStream(device, native);
  }
  StatusOr<std::unique_ptr<gpu::Event>> CreateEvent(int device) override {
    return real_->CreateEvent(device);
  }

  std::atomic<bool> broken{false};

 private:
  const std::unique_ptr<gpu::GpuBackend> real_;
};

class DeviceCopierTest : public testing::Test, protected progress::CopySink {
 protected:
  void SetUp() override {
    gpu::HostBackendOptions options;
    options.link = {.h2d_mb_per_s = 2000, .d2h_mb_per_s = 2000, .latency_us = 10};
    auto made = gpu::CreateHostBackend(options);
    ASSERT_TRUE(made.ok());
    auto breaking = std::make_unique<BreakingBackend>(std::move(*made));
    backend_ = breaking.get();
    gpus_ = std::make_shared<gpu::GpuSource>(
        [] { return Status(ErrorCode::kNotFound, "there is only one"); }, 0, std::move(breaking));
    pool_ = registrar_.MakePool({kBlockBytes, 4});
    const auto memory = backend_->AllocateDevice(0, kBlockBytes);
    ASSERT_TRUE(memory.ok());
    device_ = static_cast<std::byte*>(*memory);
    copier_ = std::make_unique<DeviceCopier>(gpus_, [this] { ++rung_; });
    copier_->Open(*pool_);
  }
  void TearDown() override {
    copier_->Close(*pool_);
    copier_.reset();
  }

  progress::CopyTask Task(progress::CopyTask::Direction direction, std::byte* local,
                          uint64_t size_bytes) {
    progress::CopyTask task;
    task.direction = direction;
    task.device = device_;
    task.local = local;
    task.size_bytes = size_bytes;
    task.context = local;
    return task;
  }
  void OnCopied(const progress::CopyTask& task) override { copied_.push_back(task); }
  // Waits until `count` copies have ended.
  void CollectUntil(size_t count) {
    const auto end = std::chrono::steady_clock::now() + tests::kPatience;
    while (copied_.size() < count && std::chrono::steady_clock::now() < end) {
      copier_->Collect(*this);
      std::this_thread::yield();
    }
    ASSERT_EQ(copied_.size(), count);
  }

  static constexpr auto kIn = progress::CopyTask::Direction::kFromProcess;
  static constexpr auto kOut = progress::CopyTask::Direction::kToProcess;
  TestRegistrar registrar_;
  std::shared_ptr<gpu::GpuSource> gpus_;
  BreakingBackend* backend_ = nullptr;
  std::unique_ptr<progress::StagingPool> pool_;
  std::byte* device_ = nullptr;
  std::unique_ptr<DeviceCopier> copier_;
  std::atomic<uint32_t> rung_{0};
  std::vector<progress::CopyTask> copied_;
};

TEST_F(DeviceCopierTest, CopiesBothWaysAndRings) {
  std::memset(device_, 7, kBlockBytes);
  std::byte* first = pool_->base();
  ASSERT_TRUE(copier_->Submit(Task(kIn, first, kBlockBytes)));
  EXPECT_EQ(copier_->pending(), 1U);
  CollectUntil(1);
  EXPECT_EQ(copied_[0].result, ErrorCode::kOk);
  EXPECT_EQ(copied_[0].place, progress::TracePlace::kStream);
  EXPECT_EQ(copied_[0].context, first);
  EXPECT_EQ(first[kBlockBytes - 1], std::byte{7});
  std::memset(first, 9, 100);
  ASSERT_TRUE(copier_->Submit(Task(kOut, first, 100)));
  CollectUntil(2);
  EXPECT_EQ(device_[99], std::byte{9});
  EXPECT_EQ(device_[100], std::byte{7});
  EXPECT_EQ(copier_->pending(), 0U);
  EXPECT_EQ(rung_, 2U);
}

TEST_F(DeviceCopierTest, PinsStagingMemoryWhileItBelongsToItsPool) {
  const auto kind = [this](const std::byte* fragment) { return backend_->Identify(fragment).kind; };
  progress::StagingShape shape{kBlockBytes, 4, 2};
  shape.user = copier_->memory_user();
  auto pool = registrar_.MakePool(shape);
  std::byte* const base = pool->base();
  EXPECT_EQ(kind(base), gpu::PointerKind::kPinned);
  EXPECT_EQ(kind(base + 2 * kBlockBytes - 1), gpu::PointerKind::kPinned);
  EXPECT_EQ(kind(base + 2 * kBlockBytes), gpu::PointerKind::kUnknown);
  EXPECT_EQ(kind(pool->TakeCell()), gpu::PointerKind::kPinned);
  pool->Take(progress::StagingUse::kIncoming, 0);
  pool->waiters(progress::StagingUse::kIncoming).Push(0, 1);
  pool->Grow();
  registrar_.Collect();
  EXPECT_EQ(kind(base + 2 * kBlockBytes), gpu::PointerKind::kUnknown);  // for the other direction
  EXPECT_EQ(kind(base + 3 * kBlockBytes), gpu::PointerKind::kPinned);
  pool.reset();
  registrar_.Finish();
  EXPECT_EQ(kind(base), gpu::PointerKind::kUnknown);
}

TEST_F(DeviceCopierTest, TimesWhatIsTraced) {
  progress::CopyTask task = Task(kIn, pool_->base(), kBlockBytes);
  task.timed = true;
  ASSERT_TRUE(copier_->Submit(task));
  ASSERT_TRUE(copier_->Submit(task));
  CollectUntil(2);
  for (const progress::CopyTask& one : copied_) {
    EXPECT_GE(one.ended_ns - one.begun_ns, 30'000U);  // 64 KiB at 2 GB/s
  }
  EXPECT_LE(copied_[0].ended_ns, copied_[1].begun_ns);
}

TEST_F(DeviceCopierTest, ARefusedCopyFailsAloneAndInItsTurn) {
  for (const bool timed : {false, true}) {
    copied_.clear();
    progress::CopyTask good = Task(kIn, pool_->base(), kBlockBytes);
    progress::CopyTask bad = Task(kIn, pool_->base() + 2 * kBlockBytes, kBlockBytes);
    bad.device = device_ + 4096;  // runs past the end
    good.timed = bad.timed = timed;
    ASSERT_TRUE(copier_->Submit(good));
    ASSERT_TRUE(copier_->Submit(bad));
    ASSERT_TRUE(copier_->Submit(good));
    CollectUntil(3);
    EXPECT_EQ(copied_[0].result, ErrorCode::kOk);
    EXPECT_EQ(copied_[1].result, ErrorCode::kInvalidBuffer);
    EXPECT_EQ(copied_[2].result, ErrorCode::kOk);
  }
}

TEST_F(DeviceCopierTest, AStreamThatFailsTakesWhatIsQueuedAlongAndIsReplaced) {
  for (const bool timed : {false, true}) {
    copied_.clear();
    progress::CopyTask task = Task(kIn, pool_->base(), kBlockBytes);
    task.timed = timed;
    backend_->broken = true;
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(copier_->Submit(task));
    }
    CollectUntil(3);
    for (const progress::CopyTask& one : copied_) {
      EXPECT_EQ(one.result, ErrorCode::kSystem);
    }
    EXPECT_EQ(copier_->pending(), 0U);
    backend_->broken = false;
    ASSERT_TRUE(copier_->Submit(task));
    CollectUntil(4);
    EXPECT_EQ(copied_[3].result, ErrorCode::kOk);
  }
}

TEST_F(DeviceCopierTest, TakesNoMoreThanItsPoolsHaveFragments) {
  for (uint32_t i = 0; i < pool_->fragments(); ++i) {
    ASSERT_TRUE(copier_->Submit(Task(kIn, pool_->base(), 16)));
  }
  EXPECT_FALSE(copier_->Submit(Task(kIn, pool_->base(), 16)));
  CollectUntil(pool_->fragments());
  EXPECT_TRUE(copier_->Submit(Task(kIn, pool_->base(), 16)));
  CollectUntil(pool_->fragments() + 1);
}

TEST_F(DeviceCopierTest, GoesWithCopiesUnderWay) {
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(copier_->Submit(Task(kIn, pool_->base(), kBlockBytes)));
    ASSERT_TRUE(copier_->Submit(Task(kOut, pool_->base() + kBlockBytes, kBlockBytes)));
  }
}

}  // namespace
}  // namespace ferry::daemon
