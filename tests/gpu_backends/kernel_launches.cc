#include "tests/gpu_backends/kernel_launches.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "shm/mpsc_ring.h"
#include "shm/ring_consumer.h"
#include "tests/gpu_backends/skip_without_images.h"
#include "tests/gpu_backends/status_checks.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kCount = 5000;

class KernelLaunches : public testing::TestWithParam<KernelDriver> {
 protected:
  void SetUp() override {
    FERRY_SKIP_WITHOUT_IMAGES(GetParam().format);
    driver_ = Must(GetParam().open());
    const Status loaded = driver_->LoadKernels(0);
    ASSERT_TRUE(loaded.ok()) << loaded.ToString();
    stream_ = Must(driver_->CreateStream(0));
    control_ = static_cast<uint64_t*>(Pinned(2 * sizeof(uint64_t)));
  }
  void TearDown() override {
    if (driver_ == nullptr) {
      return;
    }
    if (stream_ != nullptr) {
      Finish();
      driver_->DestroyStream(0, stream_);
    }
    for (const auto& [kind, memory] : memory_) {
      EXPECT_TRUE(driver_->Free(kind, memory).ok());
    }
  }

  void* Device(uint64_t size_bytes) {
    return Keep(PointerKind::kDevice, Must(driver_->AllocateDevice(0, size_bytes)));
  }
  void* Pinned(uint64_t size_bytes) {
    void* pinned = Keep(PointerKind::kPinned, Must(driver_->AllocatePinned(size_bytes)));
    std::memset(pinned, 0, size_bytes);
    return pinned;
  }
  void* Keep(PointerKind kind, void* memory) {
    memory_.emplace_back(kind, memory);
    return memory;
  }
  Status Launch(Kernel kernel, uint64_t threads, std::initializer_list<KernelArgument> arguments) {
    return driver_->Launch(0, stream_, kernel, threads, {arguments.begin(), arguments.size()});
  }
  void Copy(void* to, const void* from, uint64_t size_bytes) {
    const Status status = driver_->Copy(0, stream_, to, from, size_bytes);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  void Finish() {
    Status status;
    while ((status = driver_->QueryStream(0, stream_)).code() == ErrorCode::kWouldBlock) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  std::unique_ptr<Driver> driver_;
  NativeStream stream_ = nullptr;
  uint64_t* control_ = nullptr;
  std::vector<std::pair<PointerKind, void*>> memory_;
};

TEST_P(KernelLaunches, ComputeInDeviceMemory) {
  auto* const host = static_cast<double*>(Pinned(2 * kCount * sizeof(double)));
  std::iota(host, host + 2 * kCount, 1.0);
  auto* const in = static_cast<double*>(Device(kCount * sizeof(double)));
  auto* const inout = static_cast<double*>(Device(kCount * sizeof(double)));
  Copy(in, host, kCount * sizeof(double));
  Copy(inout, host + kCount, kCount * sizeof(double));
  for (const uint64_t threads : {1, 100, 256, 1000, 1'000'000}) {
    const Status status =
        Launch(Kernel::kReduceF64, threads,
               {control_, inout, in, inout, kCount, static_cast<uint64_t>(ReductionOp::kSum),
                nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                nullptr, nullptr, nullptr, nullptr});
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  auto* const result = static_cast<double*>(Pinned(kCount * sizeof(double)));
  Copy(result, inout, kCount * sizeof(double));
  Finish();
  for (uint64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(result[i], host[kCount + i] + 5 * host[i]) << i;
  }
}

TEST_P(KernelLaunches, PackInTheMiddleOfMemory) {
  constexpr uint64_t kBlock = 12;
  constexpr uint64_t kStride = 20;
  constexpr uint64_t kBlocks = 100;
  auto* const host = static_cast<uint8_t*>(Pinned(kBlocks * kStride + 8));
  std::iota(host, host + kBlocks * kStride + 8, uint8_t{3});
  auto* const blocks = static_cast<uint8_t*>(Device(kBlocks * kStride + 8));
  auto* const packed = static_cast<uint8_t*>(Pinned(kBlocks * kBlock + 4));
  Copy(blocks, host, kBlocks * kStride + 8);
  const Status status =
      Launch(Kernel::kPack, 300, {control_, packed + 4, blocks + 8, kBlocks, kBlock, kStride});
  EXPECT_TRUE(status.ok()) << status.ToString();
  Finish();
  for (uint64_t i = 0; i < kBlocks; ++i) {
    EXPECT_EQ(std::memcmp(packed + 4 + i * kBlock, host + 8 + i * kStride, kBlock), 0) << i;
  }
}

TEST_P(KernelLaunches, TakeTheirTurnInTheStream) {
  auto* const words = static_cast<uint64_t*>(Pinned(3 * sizeof(uint64_t)));
  EXPECT_TRUE(Launch(Kernel::kWaitWord, 1, {control_, words, uint64_t{1}, uint64_t{0}}).ok());
  EXPECT_TRUE(Launch(Kernel::kWriteWord, 1, {control_, words + 1, uint64_t{2}}).ok());
  EXPECT_EQ(driver_->QueryStream(0, stream_).code(), ErrorCode::kWouldBlock);
  EXPECT_EQ(words[1], 0u);
  // By another stream.
  const NativeStream other = Must(driver_->CreateStream(0));
  const std::array<KernelArgument, 3> arguments = {control_, words, uint64_t{1}};
  EXPECT_TRUE(driver_->Launch(0, other, Kernel::kWriteWord, 1, arguments).ok());
  Finish();
  EXPECT_EQ(words[1], 2u);
  while (driver_->QueryStream(0, other).code() == ErrorCode::kWouldBlock) {
    std::this_thread::yield();
  }
  driver_->DestroyStream(0, other);
}

// The other end of the ring is a thread of the test, in place of ferryd.
TEST_P(KernelLaunches, AskThroughARing) {
  constexpr uint32_t kSlots = 16;
  constexpr uint32_t kAskers = 40;
  constexpr uint64_t kTimes = 25;
  constexpr uint32_t kRegion = 3;
  constexpr uint64_t kFails = 7;  // every so-many-th request
  const uint64_t slots_end = shm::MpscRing::SizeBytes(kSlots);
  auto* const block =
      static_cast<uint8_t*>(Pinned(slots_end + kAskers * sizeof(shm::RingCompletion) + 8));
  auto* const layout = reinterpret_cast<shm::MpscRingLayout*>(block);
  auto* const failures = reinterpret_cast<uint64_t*>(block + slots_end) + 2 * kAskers;
  ASSERT_TRUE(shm::MpscRing::Initialize(layout, kSlots).ok());
  layout->completions = kAskers;
  layout->region = kRegion;
  layout->completions_offset = slots_end;
  auto* const tickets = static_cast<uint64_t*>(Device(2 * sizeof(uint64_t)));
  Copy(tickets, failures - 2 * kAskers, 2 * sizeof(uint64_t));  // zeroes
  const Status status = Launch(Kernel::kRingAsk, kAskers,
                               {control_, layout, tickets, uint64_t{9}, uint64_t{640},
                                uint64_t{kAskers} + 100, kTimes, failures});
  ASSERT_TRUE(status.ok()) << status.ToString();
  shm::RingConsumer consumer(layout, kSlots);
  std::vector<uint64_t> asked(kAskers);
  for (uint64_t taken = 0; taken < kAskers * kTimes;) {
    shm::RingRequest request{};
    uint64_t ticket = 0;
    if (!consumer.Take(&request, &ticket)) {
      std::this_thread::yield();
      continue;
    }
    ++taken;
    EXPECT_EQ(request.kind, 2U);
    EXPECT_EQ(request.region, 9U);
    EXPECT_EQ(request.offset, 640U);
    EXPECT_EQ(request.value, 1U);
    ASSERT_EQ(request.completion_region, kRegion);
    const uint64_t asker = (request.completion - slots_end) / sizeof(shm::RingCompletion);
    ASSERT_LT(asker, kAskers);
    ++asked[asker];
    shm::RingConsumer::Answer(reinterpret_cast<shm::RingCompletion*>(block + request.completion),
                              ticket, 0,
                              ticket % kFails == 0 ? ErrorCode::kLimitExceeded : ErrorCode::kOk);
  }
  Finish();
  EXPECT_EQ(asked, std::vector<uint64_t>(kAskers, kTimes));
  EXPECT_EQ(layout->tickets, 0U);
  Copy(block, tickets, sizeof(uint64_t));
  Finish();
  EXPECT_EQ(layout->tickets, kAskers * kTimes);
  EXPECT_EQ(*failures, (kAskers * kTimes + kFails - 1) / kFails);
}

TEST_P(KernelLaunches, TheDeviceTellsThatItRunsThem) {
  const DeviceInfo info = Must(driver_->GetDeviceInfo(0));
  EXPECT_TRUE(info.kernels);
  EXPECT_EQ(info.no_kernels_because, "");
}

INSTANTIATE_TEST_SUITE_P(Drivers, KernelLaunches, testing::ValuesIn(KernelDrivers()),
                         [](const auto& info) { return info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KernelLaunches);

}  // namespace
}  // namespace ferry::gpu
