// Messages of four ranks on two nodes, many at once and both ways, into receives that are
// announced by RTR or not: each is received once, whole and in order.
#include <gtest/gtest.h>
#include <sched.h>

#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "tests/internode/core/progress_rtrs_fixture.h"
#include "tests/support/patience.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kRanks = 4;
constexpr uint32_t kSends = 600;
constexpr uint32_t kSlots = 16;  // in each rank's heap, at either end
constexpr uint64_t kSlotBytes = 128 << 10;
constexpr uint32_t kMostWords = 25'000;
constexpr uint32_t kFewWords = 2;

// The head of a message; `words` words that follow from `number` come after it.
struct Head {
  uint32_t from, number;
  int32_t tag;
  uint32_t words;

  uint64_t bytes() const { return sizeof(Head) + words * sizeof(uint32_t); }
  uint32_t Word(uint32_t index) const { return number * 31 + index; }
};

struct Flying {
  uint32_t request, slot;
};

struct Awaited {
  uint32_t request, slot;
  int32_t source, tag;
  uint64_t number;  // in the order of posting
  bool cancelled;
};

struct OneRank {
  std::deque<Flying> sends;
  std::deque<Awaited> receives;
  std::deque<uint32_t> free_send, free_receive;
  std::map<std::pair<uint32_t, int32_t>, uint32_t> next_sent;  // by destination and tag
  // By source and tag, and then by the order of posting: the number of the message.
  std::map<std::pair<uint32_t, int32_t>, std::map<uint64_t, uint32_t>> order;
  uint32_t sent = 0, got = 0;
};

class ProgressRtrsOrderTest : public ProgressRtrsTest {
 protected:
  ProgressRtrsOrderTest() {
    for (OneRank& one : all_) {
      for (uint32_t slot = 0; slot < kSlots; ++slot) {
        one.free_send.push_back(slot);
        one.free_receive.push_back(slot);
      }
    }
  }

  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }
  // Draws a rank of the other node.
  uint32_t Across(uint32_t r) { return (r < 2 ? 2 : 0) + Below(2); }
  uint32_t SumOf(uint32_t OneRank::*count) const {
    uint32_t sum = 0;
    for (const OneRank& one : all_) {
      sum += one.*count;
    }
    return sum;
  }

  void SendSomething(uint32_t r) {
    OneRank& one = all_[r];
    if (sends_left_ == 0 || one.free_send.empty()) {
      return;
    }
    const uint32_t to = Across(r);
    const auto tag = static_cast<int32_t>(Below(3));
    const uint32_t slot = one.free_send.front();
    one.free_send.pop_front();
    const Head head{r, one.next_sent[{to, tag}]++, tag,
                    Below(3) == 0 ? kFewWords : kMostWords - Below(5000)};
    std::byte* where = rank(r).heap() + slot * kSlotBytes;
    std::memcpy(where, &head, sizeof(head));
    for (uint32_t i = 0; i < head.words; ++i) {
      const uint32_t word = head.Word(i);
      std::memcpy(where + sizeof(head) + i * sizeof(word), &word, sizeof(word));
    }
    one.sends.push_back({rank(r).SendFrom(to, tag, InHeap(slot * kSlotBytes), head.bytes()), slot});
    one.sent++;
    sends_left_--;
  }

  void ReceiveSomething(uint32_t r) {
    OneRank& one = all_[r];
    if (one.free_receive.empty()) {
      return;
    }
    const uint32_t slot = one.free_receive.front();
    one.free_receive.pop_front();
    const int32_t source = Below(40) == 0 ? shm::kAnySource : static_cast<int32_t>(Across(r));
    const int32_t tag = Below(40) == 0 ? shm::kAnyTag : static_cast<int32_t>(Below(3));
    const uint32_t request =
        rank(r).Receive(source, tag, InHeap((kSlots + slot) * kSlotBytes), kSlotBytes);
    one.receives.push_back({request, slot, source, tag, posted_++, false});
  }

  void Cancel(uint32_t r, Awaited* receive) {
    receive->cancelled |= rank(r).Cancel(receive->request);
  }
  void CancelAll(uint32_t r) {
    for (Awaited& receive : all_[r].receives) {
      Cancel(r, &receive);
    }
  }
  void CancelSomething(uint32_t r) {
    std::deque<Awaited>& receives = all_[r].receives;
    if (receives.size() > kSlots / 2) {
      Cancel(r, &receives[Below(static_cast<uint32_t>(receives.size()))]);
    }
  }

  // Takes the requests that have ended.
  void Collect(uint32_t r) {
    OneRank& one = all_[r];
    std::erase_if(one.sends, [&](const Flying& flying) {
      if (!rank(r).Test(flying.request)) {
        return false;
      }
      EXPECT_EQ(rank(r).Wait(flying.request), ErrorCode::kOk);
      one.free_send.push_back(flying.slot);
      return true;
    });
    std::erase_if(one.receives, [&](const Awaited& receive) {
      if (!rank(r).Test(receive.request)) {
        return false;
      }
      Take(r, receive);
      one.free_receive.push_back(receive.slot);
      return true;
    });
  }

  void Take(uint32_t r, const Awaited& receive) {
    const uint64_t bytes = rank(r).MessageBytes(receive.request);
    const ErrorCode error = rank(r).Wait(receive.request);
    if (error == ErrorCode::kCancelled) {
      EXPECT_TRUE(receive.cancelled);
      return;
    }
    EXPECT_EQ(error, ErrorCode::kOk);
    const std::byte* where = rank(r).heap() + (kSlots + receive.slot) * kSlotBytes;
    Head head;
    std::memcpy(&head, where, sizeof(head));
    EXPECT_TRUE(receive.source < 0 || receive.source == static_cast<int32_t>(head.from));
    EXPECT_TRUE(receive.tag < 0 || receive.tag == head.tag);
    ASSERT_EQ(bytes, head.bytes());
    for (uint32_t i = 0; i < head.words; ++i) {
      uint32_t word = 0;
      std::memcpy(&word, where + sizeof(head) + i * sizeof(word), sizeof(word));
      ASSERT_EQ(word, head.Word(i))
          << "message " << head.number << " of " << head.from << ", word " << i;
    }
    all_[r].order[{head.from, head.tag}][receive.number] = head.number;
    all_[r].got++;
  }

  void DoSomething(uint32_t r) {
    const uint32_t what = Below(10);
    if (what < 3) {
      SendSomething(r);
    } else if (what < 6) {
      ReceiveSomething(r);
    } else if (what == 6) {
      CancelSomething(r);
    }
    if (sends_left_ == 0 && all_[r].free_receive.empty()) {
      CancelAll(r);  // receives for messages that come no more
    }
  }

  // Cancels the remaining receives, until there are none.
  bool Finish() {
    for (uint32_t r = 0; r < kRanks; ++r) {
      CancelAll(r);
    }
    return Eventually([&] {
      bool empty = true;
      for (uint32_t r = 0; r < kRanks; ++r) {
        rank(r).Progress();
        Collect(r);
        empty &= all_[r].receives.empty() && all_[r].sends.empty();
      }
      return empty;
    });
  }

  void ExpectInOrder() const {
    for (const OneRank& one : all_) {
      for (const auto& [envelope, order] : one.order) {
        uint32_t next = 0;
        for (const auto& [receive, number] : order) {
          EXPECT_EQ(number, next++) << "from " << envelope.first << ", tag " << envelope.second;
        }
      }
    }
  }

  std::vector<OneRank> all_ = std::vector<OneRank>(kRanks);
  std::mt19937 random_{7};
  uint64_t posted_ = 0;
  uint32_t sends_left_ = kSends;
};

// Some receives have wildcards, some are cancelled.
TEST_F(ProgressRtrsOrderTest, EveryMessageIsReceivedOnceAndInOrder) {
  ASSERT_NO_FATAL_FAILURE(StartOpen({2, 2}));
  const uint64_t end_ns = MonotonicNs() + tests::kPatienceNs;
  while ((sends_left_ > 0 || SumOf(&OneRank::got) < SumOf(&OneRank::sent)) &&
         MonotonicNs() < end_ns && !HasFailure()) {
    const uint32_t r = Below(kRanks);
    DoSomething(r);
    for (uint32_t n = Below(100); n > 0; --n) {  // so that another one is first
      ProgressAll();
      sched_yield();
    }
    Collect(r);
  }
  EXPECT_EQ(SumOf(&OneRank::sent), kSends);
  EXPECT_EQ(SumOf(&OneRank::got), kSends);
  EXPECT_TRUE(Finish());
  ExpectInOrder();
  EXPECT_GT(writes(0) + writes(1), 20U);
  EXPECT_GT(plane(0).Nic().reads + plane(1).Nic().reads, 20U);
  ExpectNoHarm();
}

}  // namespace
}  // namespace ferry::daemon
