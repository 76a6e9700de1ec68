// Messages between nodes from and to device memory that the network card reaches, as dma-bufs, and
// their early ends. The card is tests/fixtures/device_nic.
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/daemon/progress_fixture.h"

namespace ferry::daemon {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kSourceOffset = 128;
constexpr uint64_t kDestinationOffset = 4 * kMiB + 64;

enum class Kind { kHeap, kPrivate, kDevice };

struct Ends {
  const char* name;
  Kind source;
  Kind destination;
};
constexpr Ends kBoth{"", Kind::kDevice, Kind::kDevice};

class NicDeviceTest : public PlaneTest {
 protected:
  NicDeviceTest() {
    setenv("GPU_NIC", "dmabuf", 1);
    setenv("GPU_NIC_REFUSES", "", 1);
    setenv("GPU_NIC_LOG", log_.c_str(), 1);
    std::ofstream(log_).flush();
    // It is there when the planes ask for libfabric by its name.
    EXPECT_NE(dlopen(std::filesystem::absolute("tests/fixtures/device_nic/libfabric.so.1").c_str(),
                     RTLD_NOW | RTLD_LOCAL),
              nullptr)
        << dlerror();
    UseDevices(4000, 5000);
    amend_device_ = [](Region& region) {
      region.dmabuf.Reset(fcntl(region.fd.get(), F_DUPFD_CLOEXEC, 0));
      region.backend = "cuda";
    };
  }
  void TearDown() override {
    PlaneTest::TearDown();
    EXPECT_THAT(Log(), testing::Not(HasSubstr("bad")));
  }
  std::string Log() const {
    std::ifstream log(log_);
    return {std::istreambuf_iterator<char>(log), {}};
  }

  struct Message {
    Ends ends;
    std::vector<std::byte> sent;
    std::vector<std::byte> got;
    Passage passage = {};
  };
  static shm::Location Place(Kind kind, uint64_t offset, const void* address) {
    return kind == Kind::kHeap     ? InHeap(offset)
           : kind == Kind::kDevice ? InDevice(offset)
                                   : Private(address);
  }
  Message Begin(const Ends& ends, uint64_t size_bytes) {
    Message message{ends, Pattern(size_bytes, 3 + static_cast<uint32_t>(size_bytes)),
                    std::vector<std::byte>(size_bytes)};
    if (ends.source != Kind::kPrivate) {
      std::byte* base = ends.source == Kind::kHeap ? rank(0).heap() : rank(0).device();
      std::memcpy(base + kSourceOffset, message.sent.data(), size_bytes);
    }
    message.passage = PlaneTest::Begin(
        0, 1, Place(ends.source, kSourceOffset, message.sent.data()),
        Place(ends.destination, kDestinationOffset, message.got.data()), size_bytes, 7);
    return message;
  }
  void ExpectPassed(const Message& message) {
    ExpectEnd(message.passage);
    const std::byte* where = message.got.data();
    if (message.ends.destination != Kind::kPrivate) {
      where = (message.ends.destination == Kind::kHeap ? rank(1).heap() : rank(1).device()) +
              kDestinationOffset;
    }
    EXPECT_TRUE(std::equal(message.sent.begin(), message.sent.end(), where));
  }
  // A message between devices whose reads the card has taken, and does not carry out.
  void BeginHeld(Message* message) {
    ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
    gate(1).closed = true;
    *message = Begin(kBoth, kMiB);
    ASSERT_TRUE(Meanwhile([&] { return gate(1).held != 0; }));
  }
  // Registrations of ranks' memory.
  uint64_t Registered(uint32_t node) { return plane(node).Registered().entries; }

  const std::string log_ = testing::TempDir() + "/nic.log";
};

class NicDevicePathTest : public NicDeviceTest, public testing::WithParamInterface<Ends> {};

TEST_P(NicDevicePathTest, MovesMessagesOfAllSizesWithoutAStage) {
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  const std::vector<uint64_t> sizes = {70'000, kMiB, kMiB + 1, 3 * kMiB + 12345};
  for (const uint64_t size_bytes : sizes) {
    SCOPED_TRACE(size_bytes);
    ExpectPassed(Begin(GetParam(), size_bytes));
  }
  ExpectNothingLeft();
  const uint64_t from = GetParam().source == Kind::kDevice ? sizes.size() : 0;
  const uint64_t to = GetParam().destination == Kind::kDevice ? sizes.size() : 0;
  EXPECT_EQ(plane(0).Nic().device_direct, from);
  EXPECT_EQ(plane(1).Nic().device_direct, to);
  EXPECT_EQ(plane(0).Nic().device_staged + plane(1).Nic().device_staged, 0U);
  EXPECT_EQ(plane(0).Nic().device_memory, "by address or dma-buf");
}

// A message without a byte, and short ones, need no card.
TEST_P(NicDevicePathTest, MovesShortMessagesToo) {
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  for (const uint64_t size_bytes : std::initializer_list<uint64_t>{0, 33, 8192, 8193, 65536}) {
    SCOPED_TRACE(size_bytes);
    ExpectPassed(Begin(GetParam(), size_bytes));
  }
  ExpectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(Ends, NicDevicePathTest,
                         testing::Values(Ends{"DeviceToDevice", Kind::kDevice, Kind::kDevice},
                                         Ends{"DeviceToHeap", Kind::kDevice, Kind::kHeap},
                                         Ends{"DeviceToPrivate", Kind::kDevice, Kind::kPrivate},
                                         Ends{"HeapToDevice", Kind::kHeap, Kind::kDevice},
                                         Ends{"PrivateToDevice", Kind::kPrivate, Kind::kDevice}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(NicDeviceTest, WhatTheCardRefusesIsStagedAndSaidOnce) {
  setenv("GPU_NIC_REFUSES", "12", 1);
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  for (int message = 0; message < 3; ++message) {
    ExpectPassed(Begin(kBoth, kMiB));
  }
  ExpectNothingLeft();
  for (uint32_t node = 0; node < 2; ++node) {
    EXPECT_EQ(plane(node).Nic().device_staged, 3U);
    EXPECT_EQ(plane(node).Nic().device_direct, 0U);
    EXPECT_THAT(plane(node).Nic().device_refusal, HasSubstr("fi_mr_regattr with a dma-buf"));
    EXPECT_EQ(plane(node).Registered().device_refusals, 1U);
    EXPECT_EQ(plane(node).Registered().refusals, 0U);
  }
  EXPECT_THAT(told_.TakeRefusals(),
              testing::ElementsAre(HasSubstr("goes by staging"), HasSubstr("goes by staging")));
}

// One end alone may have what the card reaches.
TEST_F(NicDeviceTest, OneEndIsStagedAlone) {
  for (const uint32_t staged : {0U, 1U}) {
    SCOPED_TRACE(staged);
    uint32_t rank = 0;
    amend_device_ = [&rank, staged](Region& region) {
      if (rank++ != staged) {
        region.dmabuf.Reset(fcntl(region.fd.get(), F_DUPFD_CLOEXEC, 0));
        region.backend = "cuda";
      }
    };
    ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
    ExpectPassed(Begin(kBoth, 2 * kMiB + 5));
    ExpectNothingLeft();
    EXPECT_EQ(plane(staged).Nic().device_staged, 1U);
    EXPECT_EQ(plane(1 - staged).Nic().device_direct, 1U);
    Stop();
  }
}

// Where there is no room for more registrations, nobody waits for it.
TEST_F(NicDeviceTest, WithoutRoomItIsStaged) {
  config::Options options = FastOptions();
  options.registration_cache_bytes = kMiB;
  options.registration_piece_bytes = kMiB;
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}, options));
  ExpectPassed(Begin(kBoth, 3 * kMiB));
  ExpectNothingLeft();
  EXPECT_EQ(plane(0).Nic().device_staged, 1U);
  EXPECT_EQ(plane(1).Nic().device_staged, 1U);
}

TEST_F(NicDeviceTest, ARegionThatGoesIsUnpinnedBeforeItIsGone) {
  Message message;
  ASSERT_NO_FATAL_FAILURE(BeginHeld(&message));
  EXPECT_EQ(Registered(1), 1U);
  const RankReport report = plane(1).Inspect(kJob, 1);
  ASSERT_EQ(report.transfers.size(), 1U);
  EXPECT_EQ(report.transfers[0].way, "the network card reaches its device memory itself");
  std::atomic<bool> removed{false};
  std::thread remover([&] {
    plane(1).RemoveRegion(kJob, 1, kDeviceRegion);
    removed = true;
  });
  EXPECT_TRUE(Eventually([&] { return !plane(1).Inspect(kJob, 1).transfers.empty(); }));
  EXPECT_FALSE(removed);  // the card has it
  gate(1).closed = false;
  EXPECT_EQ(WaitTogether(1, message.passage.receive), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(WaitTogether(0, message.passage.send), ErrorCode::kInvalidBuffer);
  remover.join();
  EXPECT_EQ(Registered(1), 0U);
  EXPECT_THAT(Log(), HasSubstr("release"));
  ExpectPassed(Begin({"", Kind::kDevice, Kind::kHeap}, kMiB));
  ExpectNothingLeft();
}

TEST_F(NicDeviceTest, ARankThatDiesLeavesNothingPinned) {
  Message message;
  ASSERT_NO_FATAL_FAILURE(BeginHeld(&message));
  const uint32_t pinned = gate(1).pinned;
  std::thread remover([&] { RemoveRank(1); });
  plane(0).RankEnded(kJob, 1, ErrorCode::kPeerDied);
  EXPECT_EQ(rank(0).Wait(message.passage.send), ErrorCode::kPeerDied);
  gate(1).closed = false;
  remover.join();
  EXPECT_TRUE(Eventually([&] { return Registered(1) == 0 && gate(1).pinned < pinned; }));
}

}  // namespace
}  // namespace ferry::daemon
