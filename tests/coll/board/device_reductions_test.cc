// Reductions of memory that only streams reach, of all members or of some: by one kernel where all
// have offered theirs, and by CPUs, or messages, where they have not.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <vector>

#include "coll/board/board_run.h"
#include "tests/coll/board/limits.h"
#include "tests/coll/board/thread_node.h"
#include "tests/coll/collective_case.h"

namespace ferry::collective {
namespace {

constexpr int kMembers = 4;
constexpr uint32_t kAll = (1U << kMembers) - 1;

// Elements: a line, a cell, several.
constexpr size_t kCounts[] = {1, 100, 2000};

struct Kind {
  Collective collective = Collective::kAllreduce;
  int root = 0;
};
constexpr Kind kKinds[] = {
    {Collective::kAllreduce}, {Collective::kReduce, 0}, {Collective::kReduce, 2}};

// One member's data: on a device, with copies that are made late, or the device's own memory.
class Data : public DeviceData {
 public:
  Data(CaseRank* rank, bool has_copies, ErrorCode fetches) : rank_(*rank), fetches_(fetches) {
    type = gpu::ReductionType::kU64;
    output = GetsResult() ? rank_.output.data() : nullptr;
    input = rank_.problem.in_place ? output : rank_.input.data();
    if (has_copies) {
      input_copy_.resize(rank_.input.size());
      output_copy_.resize(rank_.output.size());
    }
    has_copies_ = has_copies;
  }

  Binding MakeBinding(Reducer* reducer) {
    return {.input = has_copies_ ? input_copy_.data() : rank_.input.data(),
            .output = has_copies_ ? output_copy_.data() : rank_.output.data(),
            .reducer = reducer,
            .on_device = this};
  }
  ErrorCode Fetch() override {
    if (!has_fetched_ && has_copies_) {
      input_copy_ = rank_.input;
      output_copy_ = rank_.output;
    }
    has_fetched_ = true;
    return fetches_;
  }
  void Deliver() {
    if (has_fetched_ && has_copies_ && GetsResult()) {
      rank_.output = output_copy_;
    }
  }
  bool has_fetched() const { return has_fetched_; }

 private:
  bool GetsResult() const {
    return rank_.problem.collective == Collective::kAllreduce ||
           rank_.problem.rank == rank_.problem.root;
  }

  CaseRank& rank_;
  const ErrorCode fetches_;
  bool has_copies_ = false;
  bool has_fetched_ = false;
  std::vector<uint8_t> input_copy_;
  std::vector<uint8_t> output_copy_;
};

class DeviceReductionsTest : public ::testing::Test {
 protected:
  void MakeNode(bool crowded = true, bool has_pauses = false) {
    node_ = std::make_unique<ThreadNode>(kMembers, crowded, has_pauses);
  }
  // The bits of `devices` are the members whose memory only streams reach.
  void Make(const Kind& kind, size_t count, uint32_t devices, bool in_place = false) {
    ranks_ = MakeCase({.collective = kind.collective,
                       .size = node_->members(),
                       .count = count,
                       .root = kind.root,
                       .in_place = in_place,
                       .seed = ++number_});
    devices_ = devices;
    node_->SetByStream(nullptr, 0);
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if ((devices >> i & 1) != 0) {
        node_->AddByStream(ranks_[i].input.data(), ranks_[i].input.size());
        node_->AddByStream(ranks_[i].output.data(), ranks_[i].output.size());
      }
    }
  }
  // Runs it once. `mute`: the bits of members that have device memory, and no kernel for it.
  void Run(const BoardLimits& limits, bool has_copies = true, uint32_t mute = 0,
           const std::vector<int>& without = {}) {
    before_ = node_->reductions();
    copies_before_ = node_->copies();
    const size_t size = ranks_.size();
    results_.assign(size, BoardResult::kDone);
    failures_.assign(size, {});
    fetched_.assign(size, 0);
    for (std::atomic<bool>& has_returned : has_returned_) {
      has_returned = false;
    }
    node_->Run(
        [&](int member) {
          RunOne(static_cast<size_t>(member), limits, has_copies, mute);
          has_returned_[static_cast<size_t>(member) % has_returned_.size()] = true;
        },
        without);
  }
  void RunOne(size_t i, const BoardLimits& limits, bool has_copies, uint32_t mute) {
    CaseRank& rank = ranks_[i];
    CaseReducer reducer(true);
    Board& board = node_->board(static_cast<int>(i));
    if (((devices_ & ~mute) >> i & 1) == 0) {
      results_[i] =
          RunOnBoard(&board, number_, rank.problem,
                     {rank.input.data(), rank.output.data(), &reducer}, limits, &failures_[i]);
      return;
    }
    Data data(&rank, has_copies, fetches_[i % fetches_.size()]);
    results_[i] = RunOnBoard(&board, number_, rank.problem, data.MakeBinding(&reducer), limits,
                             &failures_[i]);
    if (results_[i] == BoardResult::kDone && failures_[i].code == ErrorCode::kOk) {
      data.Deliver();
    }
    fetched_[i] = data.has_fetched() ? 1 : 0;
  }
  void ExpectAll(BoardResult result) {
    for (size_t i = 0; i < ranks_.size(); ++i) {
      EXPECT_EQ(results_[i], result) << i;
      EXPECT_EQ(failures_[i].code, ErrorCode::kOk) << i;
    }
  }
  void ExpectRight() {
    ExpectAll(BoardResult::kDone);
    for (const CaseRank& rank : ranks_) {
      EXPECT_EQ(rank.output, rank.expected) << rank.problem.rank;
    }
  }
  void ExpectFailed(const std::vector<int>& without = {}) {
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (std::find(without.begin(), without.end(), static_cast<int>(i)) == without.end()) {
        EXPECT_NE(failures_[i].code, ErrorCode::kOk) << i;
      }
    }
  }
  uint64_t reductions() const { return node_->reductions() - before_; }
  uint64_t copies() const { return node_->copies() - copies_before_; }
  int fetched() const { return static_cast<int>(std::count(fetched_.begin(), fetched_.end(), 1)); }

  std::unique_ptr<ThreadNode> node_ = std::make_unique<ThreadNode>(kMembers, true);
  std::vector<CaseRank> ranks_;
  uint32_t devices_ = 0;
  uint64_t number_ = 0;
  uint64_t before_ = 0;
  uint64_t copies_before_ = 0;
  std::vector<BoardResult> results_;
  std::vector<RunFailure> failures_;
  std::vector<char> fetched_;
  std::array<ErrorCode, 8> fetches_{};                      // by member: how Fetch ends
  std::array<std::atomic<bool>, kMembers> has_returned_{};  // by member of a node of kMembers
};

TEST_F(DeviceReductionsTest, AShortOneIsOneKernelOfOneMember) {
  for (const BoardLimits& limits : {kSlicesOnly, kDirectOnly}) {
    for (const Kind& kind : kKinds) {
      for (const size_t count : kCounts) {
        for (const bool in_place : {false, true}) {
          for (const bool has_copies : {false, true}) {
            Make(kind, count, kAll, in_place);
            Run(limits, has_copies);
            ExpectRight();
            EXPECT_EQ(reductions(), 1U);
            EXPECT_EQ(copies(), 0U);
            EXPECT_EQ(fetched(), 0);
          }
        }
      }
    }
  }
}

// The members share the work of longer ones.
TEST_F(DeviceReductionsTest, ALongOneIsNot) {
  constexpr size_t kMostOfReduce = (size_t{64} << 10) / sizeof(uint64_t) / kMembers;
  for (const Kind& kind : kKinds) {
    const size_t most = kind.collective == Collective::kReduce ? kMostOfReduce : 8 * kMostOfReduce;
    for (const size_t more : {0U, 1U}) {
      Make(kind, most + more, kAll);
      Run(kSlicesOnly);
      ExpectRight();
      EXPECT_EQ(reductions(), 1U - more);
      EXPECT_EQ(fetched(), more == 0 ? 0 : kMembers);
    }
  }
}

// Whichever members have which memory, and whichever of them have no kernel: no member waits for
// ever, and the result is right.
TEST_F(DeviceReductionsTest, InSlicesDeviceMemoryIsFetchedWhereSomeHaveNone) {
  for (const bool has_pauses : {false, true}) {
    MakeNode(/*crowded=*/!has_pauses, has_pauses);
    for (const Kind& kind : kKinds) {
      for (const size_t count : kCounts) {
        for (uint32_t devices = 0; devices < kAll; ++devices) {
          for (const bool in_place : {false, true}) {
            SCOPED_TRACE(std::to_string(devices) + " " + std::to_string(kind.root));
            Make(kind, count, devices, in_place);
            Run(kSlicesOnly);
            ExpectRight();
            EXPECT_EQ(reductions(), 0U);
            EXPECT_EQ(fetched(), __builtin_popcount(devices));
            Make(kind, count, kAll, in_place);
            Run(kSlicesOnly, /*has_copies=*/false, /*mute=*/kAll & ~devices);
            ExpectRight();
            EXPECT_EQ(reductions(), 0U);
          }
        }
      }
    }
  }
}

// Long ones go by messages, and nothing has been done to any data.
TEST_F(DeviceReductionsTest, LongOnesGoElsewhereWhereSomeHaveNone) {
  for (const Kind& kind : kKinds) {
    for (uint32_t devices = 1; devices < kAll; ++devices) {
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE(std::to_string(devices) + " " + std::to_string(kind.root));
        Make(kind, 100, devices, in_place);
        const std::vector<CaseRank> before = ranks_;
        Run(kDirectOnly, /*has_copies=*/false);
        ExpectAll(BoardResult::kElsewhere);
        EXPECT_EQ(reductions(), 0U);
        for (size_t i = 0; i < ranks_.size(); ++i) {
          EXPECT_EQ(ranks_[i].input, before[i].input);
          EXPECT_EQ(ranks_[i].output, before[i].output);
        }
        Make(kind, 100, kAll, in_place);
        Run(kDirectOnly);  // and the board works on
        ExpectRight();
      }
    }
  }
}

// It is tried once for each collective.
TEST_F(DeviceReductionsTest, WhatNoKernelReachesIsReducedByCpus) {
  for (const BoardLimits& limits : {kSlicesOnly, kDirectOnly}) {
    for (const size_t count : kCounts) {
      MakeNode();
      node_->EndReductions(ErrorCode::kUnsupported);
      for (const Collective collective : {Collective::kAllreduce, Collective::kReduce}) {
        for (const uint64_t tries : {1U, 0U, 0U}) {
          const bool goes_by_messages = limits.cells_max_bytes == 0 && tries == 0;
          Make({collective, 1}, count, kAll, /*in_place=*/tries == 1);
          Run(limits, /*has_copies=*/false);
          EXPECT_EQ(reductions(), tries);
          if (goes_by_messages) {
            ExpectAll(BoardResult::kElsewhere);
          } else {
            ExpectRight();
          }
        }
      }
    }
  }
}

// Slots are used again and again, by offers and by data, and by those that took an offer's place.
TEST_F(DeviceReductionsTest, OneAfterAnother) {
  for (const bool crowded : {false, true}) {
    MakeNode(crowded);
    std::mt19937 random(7);
    for (int round = 0; round < 400; ++round) {
      const Kind kind{round % 3 == 0 ? Collective::kReduce : Collective::kAllreduce,
                      static_cast<int>(random() % kMembers)};
      const uint32_t devices = random() % 2 == 0 ? kAll : random() & kAll;
      Make(kind.collective == Collective::kReduce ? kind : Kind{}, kCounts[random() % 3], devices,
           random() % 2 == 0);
      Run(kSlicesOnly, random() % 2 == 0);
      ExpectRight();
      EXPECT_EQ(reductions(), devices == kAll ? 1U : 0U);
    }
  }
}

TEST_F(DeviceReductionsTest, AFailureOfTheKernelIsToldToAll) {
  for (const BoardLimits& limits : {kSlicesOnly, kDirectOnly}) {
    for (const Kind& kind : kKinds) {
      MakeNode();
      node_->EndReductions(ErrorCode::kSystem);
      Make(kind, 100, kAll);
      Run(limits);
      ExpectFailed();
      EXPECT_EQ(failures_[static_cast<size_t>(kind.root)].code, ErrorCode::kSystem);
      node_->EndReductions(ErrorCode::kOk);
      Make(kind, 100, kAll);
      Run(limits);
      ExpectRight();
    }
  }
}

TEST_F(DeviceReductionsTest, ACopyThatFailsIsToldToAllThatWait) {
  for (const Kind& kind : kKinds) {
    for (const size_t count : kCounts) {
      MakeNode();
      fetches_[1] = ErrorCode::kCancelled;
      Make(kind, count, kAll & ~1U);  // member 0 has host memory, 1 fails
      Run(kSlicesOnly);
      EXPECT_NE(failures_[1].code, ErrorCode::kOk);
      EXPECT_NE(failures_[static_cast<size_t>(kind.root)].code, ErrorCode::kOk);
      fetches_[1] = ErrorCode::kOk;
      Make(kind, count, kAll);
      Run(kSlicesOnly);
      ExpectRight();
    }
  }
}

TEST_F(DeviceReductionsTest, TheDeathOfAMemberIsTold) {
  for (const BoardLimits& limits : {kSlicesOnly, kDirectOnly}) {
    for (const Kind& kind : kKinds) {
      for (const int dead : {0, 1, 2, 3}) {
        MakeNode();
        Make(kind, 100, kAll);
        node_->Kill(dead);
        Run(limits, true, 0, {dead});
        ExpectFailed({dead});
        EXPECT_EQ(reductions(), 0U);
      }
    }
  }
}

// A member that waits for the kernel hears of the death meanwhile, and its program may free what it
// has offered as soon as the call returns: so it returns when the kernel has ended.
TEST_F(DeviceReductionsTest, AMemberThatDiesMeanwhileIsToldWhenTheKernelHasEnded) {
  constexpr int kYields = 300;  // time enough for a member to return that need not wait for any
  for (const BoardLimits& limits : {kSlicesOnly, kDirectOnly}) {
    for (const Kind& kind : kKinds) {
      for (const int dead : {0, 1, 2, 3}) {
        const int reducing = kind.collective == Collective::kReduce ? kind.root : 0;
        if (dead == reducing) {
          continue;
        }
        SCOPED_TRACE(std::to_string(dead) + " " + std::to_string(reducing));
        MakeNode();
        Make(kind, 100, kAll);
        int returned = 0;
        node_->BeforeReductions([&] {
          node_->Kill(dead);
          for (int i = 0; i < kYields; ++i) {
            sched_yield();
          }
          for (int member = 0; member < kMembers; ++member) {
            returned += member != dead && has_returned_[static_cast<size_t>(member)] ? 1 : 0;
          }
        });
        Run(limits);
        EXPECT_EQ(reductions(), 1U);
        EXPECT_EQ(returned, 0);
        for (int member = 0; member < kMembers; ++member) {
          const auto i = static_cast<size_t>(member);
          if (member != dead && failures_[i].code == ErrorCode::kOk) {
            EXPECT_EQ(ranks_[i].output, ranks_[i].expected) << member;
          }
        }
      }
    }
  }
}

// Too long, too many members: as before there was a kernel.
TEST_F(DeviceReductionsTest, WhatIsTooMuchForOneKernelIsLeftToOthers) {
  Make({}, 40'000, kAll);
  Run(Limits(SIZE_MAX, SIZE_MAX));
  ExpectRight();
  EXPECT_EQ(reductions(), 0U);
  node_ = std::make_unique<ThreadNode>(9, true);
  Make({}, 100, (1U << 9) - 1);
  Run(kSlicesOnly);
  ExpectRight();
  EXPECT_EQ(reductions(), 0U);
  node_ = std::make_unique<ThreadNode>(8, true);
  Make({}, 100, (1U << 8) - 1);
  Run(kSlicesOnly);
  ExpectRight();
  EXPECT_EQ(reductions(), 1U);
}

}  // namespace
}  // namespace ferry::collective
