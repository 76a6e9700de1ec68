// Messages between nodes from and to device memory that the network card reaches, as dma-bufs, and
// their early ends. The card is tests/fixtures/device_nic.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "shm/atomic.h"
#include "tests/internode/core/nic_device_fixture.h"

namespace ferry::daemon {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

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
  const bool is_private =
      GetParam().source == Kind::kPrivate || GetParam().destination == Kind::kPrivate;
  EXPECT_EQ(Came(shm::Path::kRdma), is_private ? 0U : sizes.size());
  EXPECT_EQ(Came(shm::Path::kStaged), is_private ? sizes.size() : 0U);
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
  EXPECT_EQ(Came(shm::Path::kStaged), 3U);
  EXPECT_EQ(Came(shm::Path::kRdma), 0U);
}

// A driver's limit of what may be pinned: what was pinned before is used on, the rest is staged.
TEST_F(NicDeviceTest, TheCardRefusesAfterSomeRegistrations) {
  setenv("GPU_NIC_REFUSES", "12", 1);
  setenv("GPU_NIC_TAKES", "1", 1);
  config::Options options = FastOptions();
  options.registration_piece_bytes = kMiB;
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}, options));
  ExpectPassed(Begin(kBoth, kMiB / 2));  // one piece at each end
  EXPECT_EQ(Came(shm::Path::kRdma), 1U);
  ExpectPassed(Begin(kBoth, 3 * kMiB));  // the source has more: refused in the middle of the job
  ExpectPassed(Begin(kBoth, kMiB / 2));
  ExpectNothingLeft();
  EXPECT_EQ(Came(shm::Path::kStaged), 2U);
  for (uint32_t node = 0; node < 2; ++node) {
    EXPECT_EQ(plane(node).Nic().device_direct, 1U);
    EXPECT_EQ(plane(node).Nic().device_staged, 2U);
    EXPECT_EQ(plane(node).Registered().device_refusals, 1U);
  }
  EXPECT_EQ(told_.TakeRefusals().size(), 2U);
}

// The provider completes a read with an error: both ends hear of it, the next message passes, and
// what was pinned is unpinned with its region.
TEST_F(NicDeviceTest, AReadThatFailsEndsItsMessageOnly) {
  GiveFaults(1, "rndv_get.read:2:SYSTEM");
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  ExpectEnd(Begin(kBoth, 3 * kMiB).passage, ErrorCode::kSystem);
  ExpectPassed(Begin(kBoth, 3 * kMiB));
  ExpectNothingLeft();
  EXPECT_EQ(Came(shm::Path::kRdma), 1U) << "the one that came";
  EXPECT_EQ(plane(1).Nic().device_staged, 0U);
  plane(1).RemoveRegion(kJob, 1, kDeviceRegion);
  EXPECT_EQ(Registered(1), 0U);
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
    EXPECT_EQ(Came(shm::Path::kStaged), 1U);
    Stop();
  }
}

// Where there is no room for more registrations, no message waits for it.
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
  const std::future<void> removed = BeginToRemove(1);
  EXPECT_FALSE(plane(1).Inspect(kJob, 1).transfers.empty());
  EXPECT_NE(removed.wait_for(0s), std::future_status::ready);  // the card has it
  gate(1).closed = false;
  EXPECT_EQ(WaitTogether(1, message.passage.receive), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(WaitTogether(0, message.passage.send), ErrorCode::kInvalidBuffer);
  removed.wait();
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

// ---- One-sided operations ----------------------------------------------------------------------

// Long puts and gets of device memory, as OpenSHMEM and MPI windows make them.
class NicDeviceOneSidedTest : public NicDevicePathTest {
 protected:
  // Has rank 0 fetch from rank 1, or rank 1 store into it. Returns the error.
  ErrorCode Move(shm::OneSidedOperation operation, const shm::Location& here, uint64_t there,
                 uint64_t size_bytes) {
    const bool is_get = operation == shm::OneSidedOperation::kLongGet;
    const uint32_t caller = is_get ? 1 : 0;
    Wish wish = About(1 - caller, operation, there, size_bytes);
    const Kind remote = is_get ? GetParam().source : GetParam().destination;
    wish.command.context = remote == Kind::kDevice ? kDeviceRegion : kHeapRegion;
    constexpr uint16_t kAnswer = 3;
    shm::AnswerLayout& words = rank(caller).view().layout->answers[kAnswer];
    wish.words.answer = kAnswer;
    wish.words.serial = static_cast<uint16_t>(shm::LoadAcquire(words.serial) + 1);
    std::vector<std::byte> place(sizeof(here));
    std::memcpy(place.data(), &here, sizeof(here));
    Say(caller, wish, &place);
    EXPECT_TRUE(Eventually([&] { return shm::LoadAcquire(words.serial) == wish.words.serial; }));
    return static_cast<ErrorCode>(words.error);
  }
};

TEST_P(NicDeviceOneSidedTest, PutsAndGetsGoWithoutAStage) {
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  uint64_t moved = 0;
  for (const uint64_t size_bytes : {uint64_t{8}, uint64_t{70'001}, 3 * kMiB + 12345}) {
    for (const auto operation :
         {shm::OneSidedOperation::kLongPut, shm::OneSidedOperation::kLongGet}) {
      SCOPED_TRACE(size_bytes);
      const Message message = Make(GetParam(), size_bytes);
      const bool is_get = operation == shm::OneSidedOperation::kLongGet;
      const shm::Location here = is_get ? Place(GetParam().destination, kDestinationOffset, nullptr)
                                        : Place(GetParam().source, kSourceOffset, nullptr);
      EXPECT_EQ(Move(operation, here, is_get ? kSourceOffset : kDestinationOffset, size_bytes),
                ErrorCode::kOk);
      ExpectThere(message);
      ++moved;
    }
  }
  ExpectNothingLeft();
  EXPECT_EQ(plane(0).Nic().device_direct, GetParam().source == Kind::kDevice ? moved : 0);
  EXPECT_EQ(plane(1).Nic().device_direct, GetParam().destination == Kind::kDevice ? moved : 0);
  EXPECT_EQ(plane(0).Nic().device_staged + plane(1).Nic().device_staged, 0U);
}

INSTANTIATE_TEST_SUITE_P(Ends, NicDeviceOneSidedTest,
                         testing::Values(Ends{"DeviceToDevice", Kind::kDevice, Kind::kDevice},
                                         Ends{"DeviceToHeap", Kind::kDevice, Kind::kHeap},
                                         Ends{"HeapToDevice", Kind::kHeap, Kind::kDevice}),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- Receiver-first ----------------------------------------------------------------------------

class NicDeviceRtrTest : public NicDevicePathTest {
 protected:
  NicDeviceRtrTest() { engine_options_.receiver_first_min_bytes = 1; }

  // The sender has time to hear of the receive.
  Message BeginTold(uint64_t size_bytes) {
    Message message = Make(GetParam(), size_bytes);
    message.passage = {.from = 0, .to = 1};
    message.passage.receive = rank(1).Receive(
        0, 7, Place(GetParam().destination, kDestinationOffset, nullptr), size_bytes);
    const shm::RtrBook& book = rank(0).view().by_rank.rtrs[1];
    const uint64_t until_ns = MonotonicNs() + 50'000'000;
    while (shm::LoadAcquire(book.held) == 0 && MonotonicNs() < until_ns) {
      ProgressAll();
    }
    message.passage.send =
        rank(0).SendFrom(1, 7, Place(GetParam().source, kSourceOffset, nullptr), size_bytes);
    return message;
  }
  // The first receives may only open the window.
  void OpenWindow() {
    const uint64_t before = plane(0).Nic().writes;
    ASSERT_TRUE(Eventually([&] {
      ExpectPassed(BeginTold(kMiB));
      return plane(0).Nic().writes > before;
    }));
  }
};

TEST_P(NicDeviceRtrTest, TheSendersCardWritesIntoTheReceive) {
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  ASSERT_NO_FATAL_FAILURE(OpenWindow());
  const uint64_t before = plane(0).Nic().writes;
  ASSERT_TRUE(Eventually([&] {
    ExpectPassed(BeginTold(3 * kMiB + 12345));
    return plane(0).Nic().writes > before;
  }));
  ExpectNothingLeft();
  for (uint32_t node = 0; node < 2; ++node) {
    const bool is_device =
        (node == 0 ? GetParam().source : GetParam().destination) == Kind::kDevice;
    EXPECT_EQ(plane(node).Nic().device_staged, 0U);
    EXPECT_EQ(plane(node).Nic().device_direct != 0, is_device);
  }
  EXPECT_GE(rank(1).Statistic(shm::Statistic::kWrittenMessages), 2U);
  EXPECT_EQ(Came(shm::Path::kStaged), 0U);
  EXPECT_EQ(GetParam().source == Kind::kDevice, Log().find("write ") != std::string::npos);
  for (uint32_t node = 0; node < 2; ++node) {
    plane(node).RemoveRegion(kJob, node, kDeviceRegion);
    plane(node).RemoveRegion(kJob, node, kHeapRegion);
    EXPECT_EQ(Registered(node), 0U);
  }
}

TEST_P(NicDeviceRtrTest, ARegionThatGoesIsNotWrittenAnyMore) {
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  ASSERT_NO_FATAL_FAILURE(OpenWindow());
  gate(0).closed = true;
  const Message message = BeginTold(kMiB);
  ASSERT_TRUE(Meanwhile([&] { return gate(0).held != 0; }));
  const uint32_t end = GetParam().source == Kind::kDevice ? 0 : 1;
  const std::future<void> removed = BeginToRemove(end);
  EXPECT_FALSE(plane(0).Inspect(kJob, 0).transfers.empty());
  EXPECT_NE(removed.wait_for(0s), std::future_status::ready);  // the card has it
  gate(0).closed = false;
  (void)WaitTogether(1, message.passage.receive);
  (void)WaitTogether(0, message.passage.send);
  removed.wait();
  ExpectPassed(Begin({"", Kind::kHeap, Kind::kHeap}, kMiB));
  ExpectNothingLeft();
}

TEST_P(NicDeviceRtrTest, WhatTheCardRefusesIsFetchedByAStage) {
  setenv("GPU_NIC_REFUSES", "12", 1);
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  for (int message = 0; message < 3; ++message) {
    ExpectPassed(BeginTold(kMiB));
  }
  ExpectNothingLeft();
  EXPECT_EQ(plane(0).Nic().device_direct + plane(1).Nic().device_direct, 0U);
}

INSTANTIATE_TEST_SUITE_P(Ends, NicDeviceRtrTest,
                         testing::Values(Ends{"DeviceToDevice", Kind::kDevice, Kind::kDevice},
                                         Ends{"DeviceToHeap", Kind::kDevice, Kind::kHeap},
                                         Ends{"HeapToDevice", Kind::kHeap, Kind::kDevice}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ferry::daemon
