// The fixture for the tests of receives that RTRs name: a sender and a receiver on two nodes, and
// messages between them that are written.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/clock.h"
#include "shm/atomic.h"
#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {

inline constexpr uint64_t kBytes = 200'000;
inline constexpr int32_t kTag = 7;
inline constexpr uint64_t kFrom = 0;        // in the sender's heap
inline constexpr uint64_t kInto = 4 << 20;  // in the receiver's

class ProgressRtrsTest : public PlaneTest {
 protected:
  ProgressRtrsTest() { engine_options_.receiver_first_min_bytes = 1; }

  // Rank 0 is on one node, the last one on the other.
  PlaneRank& sender() { return rank(0); }
  PlaneRank& receiver() { return rank(receiver_); }
  shm::RtrBook& book() { return sender().view().by_rank.rtrs[receiver_]; }
  uint64_t writes(uint32_t node) { return plane(node).Nic().writes; }

  // Waits until the sender holds an RTR, up to `patience_ns`.
  bool HoldsRtr(uint64_t patience_ns = 50'000'000) {
    const uint64_t end_ns = MonotonicNs() + patience_ns;
    while (shm::LoadAcquire(book().held) == 0 && MonotonicNs() < end_ns) {
      ProgressAll();
    }
    return shm::LoadAcquire(book().held) != 0;
  }
  // Returns true if the daemon has read all of the rank's commands.
  static bool HasBeenRead(PlaneRank& rank) {
    const shm::LaneLayout& lane = rank.view().layout->to_daemon;
    return shm::LoadAcquire(lane.consumer.head) == lane.producer.tail;
  }
  // The receiver's first RTRs may only open its window.
  void StartOpen(const std::vector<uint32_t>& ranks_per_node = {1, 1},
                 const config::Options& options = FastOptions()) {
    ASSERT_NO_FATAL_FAILURE(Start(ranks_per_node, options));
    receiver_ = ranks_per_node[0];
    OpenWindow();
  }
  void OpenWindow() {
    const uint64_t before = writes(0);
    ASSERT_TRUE(Eventually([&] {
      const uint32_t receive = receiver().Receive(0, 99, InHeap(kInto), kBytes);
      HoldsRtr();
      const uint32_t send = sender().SendFrom(receiver_, 99, InHeap(kFrom), kBytes);
      ExpectEnd({0, receiver_, send, receive});
      return writes(0) > before;
    }));
  }

  // Posts a receive that the sender learns of.
  void Post(uint64_t capacity_bytes = kBytes, int32_t tag = kTag) {
    std::memset(receiver().heap() + kInto, 0, capacity_bytes);
    receive_ = receiver().Receive(0, tag, InHeap(kInto), capacity_bytes);
    ASSERT_TRUE(HoldsRtr(20'000'000'000));
  }
  void Send(uint64_t size_bytes = kBytes, int32_t tag = kTag) {
    sent_ = Pattern(size_bytes, seed_++);
    std::memcpy(sender().heap() + kFrom, sent_.data(), size_bytes);
    send_ = sender().SendFrom(receiver_, tag, InHeap(kFrom), size_bytes);
  }
  // Opens the window, announces a message, and holds it in the sender's NIC.
  void StartHeld() {
    ASSERT_NO_FATAL_FAILURE(StartOpen());
    ASSERT_NO_FATAL_FAILURE(BeginHeld());
  }
  void BeginHeld() {
    ASSERT_NO_FATAL_FAILURE(Post());
    gate(0).closed = true;
    Send();
    ASSERT_TRUE(Meanwhile(
        [&] { return gate(0).held > 0 && StateOf(receive_) == shm::RequestState::kRemoteWait; }));
  }
  shm::RequestState StateOf(uint32_t request) {
    return static_cast<shm::RequestState>(shm::LoadAcquire(receiver().Slot(request).state));
  }
  void ExpectArrived(uint64_t bytes = kBytes) {
    EXPECT_TRUE(std::equal(sent_.begin(), sent_.begin() + static_cast<ptrdiff_t>(bytes),
                           receiver().heap() + kInto));
  }
  void ExpectEnds(ErrorCode error = ErrorCode::kOk,
                  std::source_location where = std::source_location::current()) {
    ExpectEnd({0, receiver_, send_, receive_}, error, where);
  }
  void ExpectPassed(std::source_location where = std::source_location::current()) {
    ExpectEnds(ErrorCode::kOk, where);
    ExpectArrived();
  }
  void ExpectWritten() {
    const uint64_t before = writes(0);
    ASSERT_NO_FATAL_FAILURE(Post());
    Send();
    ExpectPassed();
    EXPECT_EQ(writes(0), before + 1);
  }
  void ExpectNoHarm() {
    EXPECT_TRUE(AllIdle());
    EXPECT_THAT(told_.violations, testing::IsEmpty());
    EXPECT_THAT(told_.failed_jobs, testing::IsEmpty());
    EXPECT_THAT(told_.lost_links, testing::IsEmpty());
  }
  void Return() {
    ASSERT_NO_FATAL_FAILURE(Reconnect(++life_));
    ReturnNodes();
    // A rank that has not been told of the cut yet is told by its next message.
    char letter = 'x';
    (void)WaitTogether(0, sender().Send(receiver_, 9, &letter, 1));
    const uint32_t hears = receiver().Receive(0, 10, Private(&letter), 1);
    if (!receiver().Test(hears)) {
      EXPECT_EQ(WaitTogether(0, sender().Send(receiver_, 10, &letter, 1)), ErrorCode::kOk);
    }
    (void)WaitTogether(receiver_, hears);
  }

  uint32_t receiver_ = 1;
  uint32_t receive_ = 0;
  uint32_t send_ = 0;
  uint32_t seed_ = 1;
  uint64_t life_ = 0;
  std::vector<std::byte> sent_;
};

}  // namespace ferry::daemon
