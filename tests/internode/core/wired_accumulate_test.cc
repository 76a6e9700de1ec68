// Accumulates of two ranks on the same elements, in every order in which cores and commands may
// take turns: each replaces what it finds by a value of its own, so what they find is a chain. It
// shows which of them were carried out, how often, and in which order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "shm/accumulate.h"
#include "shm/atomic.h"
#include "shm/layout/one_sided_layout.h"
#include "tests/internode/core/wired_cores.h"

namespace ferry::daemon {
namespace {

// Where rank 1 has rows of elements; only those at a multiple of 8 may a CPU change at once.
constexpr uint64_t kAligned = 64;
constexpr uint64_t kElsewhere = 204;
constexpr uint64_t kMostElements = 3;  // of a row: so many do not go in a command
constexpr int kRounds = 200;

struct Asked {
  uint32_t from = 0;
  uint64_t offset = 0;
  uint64_t value = 0;
  uint64_t count = 0;
  uint16_t answer = 0;
  uint16_t serial = 0;
  bool is_over = false;
  ErrorCode error = ErrorCode::kOk;
  std::vector<uint64_t> found;
};

class WiredAccumulateTest : public WiredCoresTest,
                            public testing::WithParamInterface<std::tuple<bool, int>> {
 protected:
  static bool by_link() { return std::get<0>(GetParam()); }
  static int seed() { return std::get<1>(GetParam()); }
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Start(by_link(), {0, 1}));
    for (const uint32_t node : {0U, 1U}) {
      const std::shared_ptr<const Region> heap = rank(node).MakeHeap();
      progress::ClaimableRegion memory;
      memory.base = heap->mapping.base();
      memory.size_bytes = heap->size_bytes();
      memory.number = heap->id;
      memory.keep_alive = heap;
      ASSERT_TRUE(cores_[node]->control().AddRegion(kJob, node, std::move(memory)).ok());
    }
  }

  // ---- What the ranks' libraries do

  shm::LaneLayout* LaneOf(uint32_t from) {
    shm::SessionLayout& session = *rank(from).view().layout;
    return by_link() ? &session.to_link : &session.to_daemon;
  }
  // One that replaces what rank 1 has there. False: there is no room now.
  bool Say(uint32_t from, uint64_t offset, uint64_t count) {
    shm::LaneProducer producer(LaneOf(from));
    const uint16_t answer = FreeAnswer(from);
    if (!producer.HasRoom() || answer == shm::kNoAnswer) {
      return false;
    }
    const shm::Accumulation what =
        *shm::Accumulation::Of(reduction::OpKind::kReplace, reduction::NumberKind::kUint64);
    shm::AnswerLayout& place = rank(from).view().layout->answers[answer];
    Asked one{.from = from,
              .offset = offset,
              .value = ++last_value_,
              .count = count,
              .answer = answer,
              .serial = static_cast<uint16_t>(shm::LoadAcquire(place.serial) + 1),
              .found = {}};
    shm::Descriptor command{};
    command.kind = static_cast<uint8_t>(shm::DescriptorKind::kOneSided);
    command.destination = 1;
    command.context = kHeapRegion;
    command.size_bytes = count * sizeof(uint64_t);
    command.tag = static_cast<int32_t>(what.packed());
    shm::OneSidedCommand words{};
    words.operation = static_cast<uint8_t>(shm::OneSidedOperation::kAccumulate);
    words.width = 8;
    words.answer = answer;
    words.serial = one.serial;
    words.offset = offset;
    words.operand = words.compare = one.value;
    if (command.size_bytes > shm::kInlinePutBytes) {
      const uint32_t cell = producer.TryTakeCell();
      if (cell == shm::kNoCell) {
        return false;
      }
      const std::vector<uint64_t> operands(count, one.value);
      std::memcpy(producer.Cell(cell), operands.data(), command.size_bytes);
      command.flags = shm::kFlagCell;
      command.cell = static_cast<uint16_t>(cell);
    }
    std::memcpy(command.payload, &words, sizeof(words));
    EXPECT_TRUE(producer.TryPush(command));
    by_link() ? rank(from).RingLink() : rank(from).RingDaemon();
    asked_.push_back(std::move(one));
    ++said_[from];
    return true;
  }
  uint16_t FreeAnswer(uint32_t from) const {
    std::set<uint16_t> taken;
    for (const Asked& one : asked_) {
      if (one.from == from && !one.is_over) {
        taken.insert(one.answer);
      }
    }
    for (uint16_t answer = 0; answer < shm::kAnswers; ++answer) {
      if (!taken.contains(answer)) {
        return answer;
      }
    }
    return shm::kNoAnswer;
  }
  // How many of a rank's are over, as its daemon or core tells it.
  uint64_t Done(uint32_t from) {
    return shm::LoadAcquire(rank(from).view().by_rank.one_sided[1].done);
  }
  void TakeAnswers() {
    for (const uint32_t from : {0U, 1U}) {
      EXPECT_GE(Done(from), done_[from]) << "what was over is not any more";
      done_[from] = Done(from);
    }
    for (Asked& one : asked_) {
      const shm::SessionLayout& session = *rank(one.from).view().layout;
      const shm::AnswerLayout& answer = session.answers[one.answer];
      if (!one.is_over && shm::LoadAcquire(answer.serial) == one.serial) {
        one.is_over = true;
        one.error = static_cast<ErrorCode>(answer.error);
        one.found.resize(one.count);
        std::memcpy(one.found.data(), session.answer_cells[one.answer],
                    one.count * sizeof(uint64_t));
      }
    }
  }

  // ---- A round

  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }
  void TurnOne(uint32_t node) {
    now_ns_ += 1000;
    cores_[node]->Turn(now_ns_);
  }
  // Takes one step: a rank asks for an operation, or a core takes its turn.
  void Step() {
    const uint32_t what = Below(8);
    if (what < 4) {
      TurnOne(what % 2);
    } else {
      // Rank 1 leaves to its daemon what its own CPU cannot do; by a link none of that goes.
      const bool of_target = what == 7 && !by_link();
      const uint64_t offset = of_target || (Below(2) == 0 && !by_link()) ? kElsewhere : kAligned;
      (void)Say(of_target ? 1 : 0, offset, 1 + Below(kMostElements));
    }
    TakeAnswers();
  }
  void BeginRound(int round) {
    random_.seed(static_cast<uint32_t>(round));
    std::memset(rank(1).heap(), 0, 4096);
    asked_.clear();
  }
  void EndRound() {
    Settle();
    TakeAnswers();
    for (const Asked& one : asked_) {
      ASSERT_TRUE(one.is_over) << "value " << one.value << " of rank " << one.from;
    }
    EXPECT_EQ(done_[0], said_[0]);
    EXPECT_EQ(done_[1], said_[1]);
    for (const uint64_t offset : {kAligned, kElsewhere}) {
      for (uint64_t element = 0; element < kMostElements; ++element) {
        SCOPED_TRACE("element " + std::to_string(element) + " at " + std::to_string(offset));
        ASSERT_NO_FATAL_FAILURE(ExpectChain(offset, element));
      }
    }
    EXPECT_TRUE(violations_.empty()) << violations_.front();
  }

  // From the last value back to the first. Of an operation that has failed it is not known if it
  // was carried out, and which value it found; but no value is found twice, and none that was never
  // written.
  void ExpectChain(uint64_t offset, uint64_t element) {
    std::map<uint64_t, const Asked*> by_value;
    std::set<uint64_t> found;
    bool has_failed = false;
    uint64_t count = 0;
    for (const Asked& one : asked_) {
      if (one.offset == offset && element < one.count) {
        by_value[one.value] = &one;
        has_failed = has_failed || one.error != ErrorCode::kOk;
        count += one.error == ErrorCode::kOk ? 1 : 0;
      }
    }
    for (const auto& [value, one] : by_value) {
      if (one->error == ErrorCode::kOk) {
        const uint64_t before = one->found[element];
        EXPECT_TRUE(found.insert(before).second) << before << " was found twice";
        EXPECT_TRUE(before == 0 || by_value.contains(before)) << before;
      }
    }
    uint64_t value = 0;
    std::memcpy(&value, rank(1).heap() + offset + element * sizeof(value), sizeof(value));
    EXPECT_FALSE(found.contains(value)) << "the last one, " << value << ", was found";
    uint64_t last[2] = {UINT64_MAX, UINT64_MAX};
    while (value != 0) {
      const auto one = by_value.find(value);
      ASSERT_NE(one, by_value.end()) << value << " was written by nobody";
      EXPECT_LT(value, last[one->second->from]) << "the order of its calls";
      last[one->second->from] = value;
      if (one->second->error != ErrorCode::kOk) {
        break;
      }
      --count;
      value = one->second->found[element];
    }
    EXPECT_TRUE(has_failed || count == 0) << count << " are not in the chain";
  }

  std::mt19937 random_;
  std::vector<Asked> asked_;
  uint64_t last_value_ = 0;
  uint64_t said_[2] = {};
  uint64_t done_[2] = {};
};

TEST_P(WiredAccumulateTest, EachIsCarriedOutOnceAndInOrder) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    BeginRound(round);
    for (int n = 0; n < 120; ++n) {
      Step();
    }
    ASSERT_NO_FATAL_FAILURE(EndRound());
    for (const Asked& one : asked_) {
      ASSERT_EQ(one.error, ErrorCode::kOk);
    }
  }
}

// A packet that a daemon sends twice counts once.
TEST_P(WiredAccumulateTest, AnswersThatComeTwiceChangeNothing) {
  ends_[0]->repeats = true;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    BeginRound(round);
    for (int n = 0; n < 120; ++n) {
      Step();
    }
    ASSERT_NO_FATAL_FAILURE(EndRound());
    for (const Asked& one : asked_) {
      ASSERT_EQ(one.error, ErrorCode::kOk);
    }
  }
}

// No transport lets one message overtake another. Were it so, no operation would get another one's
// answer: the one that was overtaken fails by name.
TEST_P(WiredAccumulateTest, AnswersThatOvertakeOthersAreNeverMixedUp) {
  uint64_t corrupt = 0;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    BeginRound(round);
    for (int n = 0; n < 120; ++n) {
      ends_[0]->holds_messages = n % 20 != 19;
      if (n % 20 == 19) {
        ends_[0]->Reverse();
        TurnOne(0);
      }
      Step();
    }
    ends_[0]->holds_messages = false;
    ASSERT_NO_FATAL_FAILURE(EndRound());
    for (const Asked& one : asked_) {
      ASSERT_TRUE(one.error == ErrorCode::kOk || one.error == ErrorCode::kCorrupt)
          << static_cast<int>(one.error);
      corrupt += one.error == ErrorCode::kOk ? 0 : 1;
    }
  }
  EXPECT_GT(corrupt, 0U) << "none was overtaken";
}

// The wire breaks at any time: requests and answers are lost. Those of rank 1, which need no wire,
// all come through.
TEST_P(WiredAccumulateTest, WhatACutLosesFailsAndNothingIsDoneTwice) {
  if (by_link()) {
    GTEST_SKIP() << "a link that breaks is its daemons' to mend";
  }
  uint64_t failed = 0;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    BeginRound(round);
    const uint32_t end = 1 + Below(120);
    for (uint32_t n = 0; n < end; ++n) {
      Step();
    }
    CutWire();
    for (int n = 0; n < 20; ++n) {
      Step();
    }
    Settle();
    Mend(static_cast<uint64_t>(round) + 1);
    ASSERT_NO_FATAL_FAILURE(EndRound());
    for (const Asked& one : asked_) {
      const bool may_fail = one.from == 0;
      ASSERT_TRUE(one.error == ErrorCode::kOk || (may_fail && one.error == ErrorCode::kLinkDown))
          << static_cast<int>(one.error);
      failed += one.error == ErrorCode::kOk ? 0 : 1;
    }
    BeginRound(round);
    for (int n = 0; n < 20; ++n) {
      Step();
    }
    ASSERT_NO_FATAL_FAILURE(EndRound());
    for (const Asked& one : asked_) {
      ASSERT_EQ(one.error, ErrorCode::kOk);
    }
  }
  EXPECT_GT(failed, 0U);
}

// Once one has failed, so do all that come after it; and the dead rank's memory is left alone.
class WiredAccumulateDeathTest : public WiredAccumulateTest {};

TEST_P(WiredAccumulateDeathTest, ATargetThatDiesEndsThemByName) {
  BeginRound(seed());
  const uint32_t end = 30 + Below(60);
  for (uint32_t n = 0; n < end; ++n) {
    Step();
  }
  cores_[1]->ends().RankEnded(kJob, 1, ErrorCode::kPeerDied);
  std::vector<std::byte> memory(rank(1).heap(), rank(1).heap() + 4096);
  for (int n = 0; n < 20; ++n) {
    TurnOne(Below(2));
    (void)Say(0, kAligned, 1);
  }
  Settle();
  TakeAnswers();
  EXPECT_EQ(std::memcmp(memory.data(), rank(1).heap(), memory.size()), 0);
  bool has_failed = false;
  for (const Asked& one : asked_) {
    if (one.from != 0) {
      continue;  // its own end with it
    }
    ASSERT_TRUE(one.is_over) << one.value;
    EXPECT_EQ(one.error,
              has_failed || one.error != ErrorCode::kOk ? ErrorCode::kPeerDied : ErrorCode::kOk);
    has_failed = has_failed || one.error != ErrorCode::kOk;
  }
  EXPECT_TRUE(has_failed);
}

INSTANTIATE_TEST_SUITE_P(, WiredAccumulateTest,
                         testing::Combine(testing::Bool(), testing::Values(0)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) ? "ByLink" : "ByDaemon");
                         });
INSTANTIATE_TEST_SUITE_P(ByDaemon, WiredAccumulateDeathTest,
                         testing::Combine(testing::Values(false), testing::Range(0, 20)));

}  // namespace
}  // namespace ferry::daemon
