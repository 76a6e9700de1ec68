// Partitioned communication from kernels, on two sides that a test has made in plain memory.
// tests/mpi/e2e/partitioned_kernels_test.cc has whole jobs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "ferry/device/emulated.h"
#include "ferry/device/partitioned.h"
#include "shm/atomic.h"
#include "shm/mpsc_ring.h"
#include "shm/ring_consumer.h"
#include "tests/gpu_backends/device_partitioned_pair.h"

namespace ferry::device {
namespace {

int Arrived(Pair& pair, int partition) {
  int flag = -1;
  EXPECT_EQ(MPIX_Parrived(pair.receive(), partition, &flag), MPIX_DEVICE_SUCCESS);
  return flag;
}

// ---- Kernel copy --------------------------------------------------------------------------------

using Ready = int (*)(int, MPIX_Prequest);
using Await = int (*)(MPIX_Prequest, int);

// Each crew readies every so many-th partition, and awaits it on the other side.
void ExpectRounds(const Sizes& shape, const Shape& launch, uint32_t kind, Ready ready,
                  Await await) {
  Pair pair(shape);
  for (uint64_t round = 1; round <= 5; ++round) {
    pair.Start(round);
    std::atomic<int> failures{0};
    Launch(launch, [&] {
      const ferry_device_crew crew = ferry_device_crew_of(kind);
      const auto threads = static_cast<int>(ferry_device_thread_count());
      const auto first = static_cast<int>(ferry_device_thread()) - static_cast<int>(crew.thread);
      // Partitions are shared out by the first thread of each crew.
      for (int i = first; i < first + static_cast<int>(crew.count); ++i) {
        for (int partition = i; partition < shape.partitions; partition += threads) {
          pair.Fill(round, partition, crew);
          failures += ready(partition, pair.send()) != MPIX_DEVICE_SUCCESS ? 1 : 0;
        }
      }
      for (int partition = 0; partition < shape.partitions; ++partition) {
        failures += await(pair.receive(), partition) != MPIX_DEVICE_SUCCESS ||
                            !pair.IsThere(round, partition)
                        ? 1
                        : 0;
      }
    });
    EXPECT_EQ(failures, 0);
    pair.ExpectRoundOver(round);
    EXPECT_EQ(pair.send()->moved, round * pair.units());  // only the kernel has moved them
  }
}

TEST(KernelCopyTest, OfThreads) {
  ExpectRounds({13, 4, 24}, {2, 3}, FERRY_DEVICE_CREW_THREAD, MPIX_Pready, MPIX_Pawait);
  ExpectRounds({130, 64, 8}, {1, 5}, FERRY_DEVICE_CREW_THREAD, MPIX_Pready_thread,
               MPIX_Pawait_thread);
}
TEST(KernelCopyTest, OfSubGroups) {
  ExpectRounds({24, 5, 40}, {2, 6, 3}, FERRY_DEVICE_CREW_SUB_GROUP, MPIX_Pready_warp,
               MPIX_Pawait_warp);
  ExpectRounds({24, 5, 40}, {2, 6, 4}, FERRY_DEVICE_CREW_SUB_GROUP, MPIX_Pready_sub_group,
               MPIX_Pawait_sub_group);
}
TEST(KernelCopyTest, OfWorkGroups) {
  ExpectRounds({16, 1, 1000}, {4, 4}, FERRY_DEVICE_CREW_GROUP, MPIX_Pready_block,
               MPIX_Pawait_block);
  ExpectRounds({16, 3, 1000}, {4, 4}, FERRY_DEVICE_CREW_GROUP, MPIX_Pready_work_group,
               MPIX_Pawait_work_group);
}
TEST(KernelCopyTest, OfPartitionsWithoutBytes) {
  ExpectRounds({9, 4, 0}, {1, 3}, FERRY_DEVICE_CREW_THREAD, MPIX_Pready, MPIX_Pawait);
}

TEST(KernelCopyTest, OfPartitionsThatHostsMoveInPieces) {
  ExpectRounds({5, 1, 600, 0, 6}, {2, 4}, FERRY_DEVICE_CREW_GROUP, MPIX_Pready_block,
               MPIX_Pawait_block);
}

TEST(KernelCopyTest, MovesAUnitOnceItIsComplete) {
  Pair pair({8, 4, 24});
  pair.Start(1);
  const ferry_device_crew alone = ferry_device_crew_of(FERRY_DEVICE_CREW_THREAD);
  for (const int partition : {6, 4, 7}) {
    pair.Fill(1, partition, alone);
    EXPECT_EQ(MPIX_Pready(partition, pair.send()), MPIX_DEVICE_SUCCESS);
  }
  EXPECT_EQ(pair.counter(1), 0b1101u);
  EXPECT_EQ(pair.words(1).ready, 0u);
  EXPECT_EQ(pair.arrived(1), 0u);
  EXPECT_EQ(Arrived(pair, 6), 0);
  pair.Fill(1, 5, alone);
  EXPECT_EQ(MPIX_Pready(5, pair.send()), MPIX_DEVICE_SUCCESS);
  EXPECT_EQ(pair.words(1).ready, 15u);
  EXPECT_EQ(pair.words(1).taken, 15u);
  EXPECT_EQ(pair.arrived(1), 15u);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(Arrived(pair, i), i >= 4 ? 1 : 0);
    EXPECT_EQ(pair.IsThere(1, i), i >= 4);
  }
}

TEST(KernelCopyTest, OfRangesAndLists) {
  Pair pair({150, 64, 8});
  const ferry_device_crew alone = ferry_device_crew_of(FERRY_DEVICE_CREW_THREAD);
  for (uint64_t round = 1; round <= 3; ++round) {
    pair.Start(round);
    for (int i = 0; i < 150; ++i) {
      pair.Fill(round, i, alone);
    }
    EXPECT_EQ(MPIX_Pready_range(10, 139, pair.send()), MPIX_DEVICE_SUCCESS);
    EXPECT_EQ(Arrived(pair, 9), 0);
    EXPECT_EQ(Arrived(pair, 64), 1);
    EXPECT_EQ(Arrived(pair, 140), 0);
    std::vector<int> rest;
    for (int i = 149; i >= 0; --i) {
      if (i < 10 || i > 139) {
        rest.push_back(i);
      }
    }
    EXPECT_EQ(MPIX_Pready_list(static_cast<int>(rest.size()), rest.data(), pair.send()),
              MPIX_DEVICE_SUCCESS);
    pair.ExpectRoundOver(round);
  }
  EXPECT_EQ(MPIX_Pready_list(0, nullptr, pair.send()), MPIX_DEVICE_SUCCESS);
}

// Lists and ranges of a group are readied once.
TEST(KernelCopyTest, OfRangesAndListsOfGroups) {
  Pair pair({20, 6, 50});
  pair.Start(1);
  const int odd[] = {11, 13, 15, 17, 19};
  const int even[] = {10, 12, 14, 16, 18};
  std::atomic<int> failures{0};
  Launch({2, 4, 2}, [&] {
    const ferry_device_crew crew = ferry_device_crew_of(FERRY_DEVICE_CREW_GROUP);
    int status = 0;
    for (int i = 0; i < 20; ++i) {
      if ((i < 10 ? i / 5 : 1 - i % 2) == static_cast<int>(ferry_device_group())) {
        pair.Fill(1, i, crew);
      }
    }
    if (ferry_device_group() == 0) {
      status += MPIX_Pready_range_block(0, 4, pair.send());
      status += MPIX_Pready_list_block(5, odd, pair.send());
    } else {
      status += MPIX_Pready_range_work_group(5, 9, pair.send());
      status += MPIX_Pready_list_wg(5, even, pair.send());
    }
    failures += status;
  });
  EXPECT_EQ(failures, 0);
  pair.ExpectRoundOver(1);
}

TEST(ArrivalTest, OfOtherNumbersOfPartitions) {
  // 12 of the sender's: each of 4 needs three of them; each of 24 half of one; 18 are across.
  for (const int receive : {1, 4, 18, 24}) {
    Pair pair({12, 5, 36, receive});
    pair.Start(1);
    EXPECT_EQ(MPIX_Pready_range(0, 4, pair.send()), MPIX_DEVICE_SUCCESS);  // unit 0: 5 of 12
    for (int i = 0; i < receive; ++i) {
      EXPECT_EQ(Arrived(pair, i), (i + 1) * 12 <= 5 * receive ? 1 : 0) << i << " of " << receive;
    }
    EXPECT_EQ(MPIX_Pready_range(5, 11, pair.send()), MPIX_DEVICE_SUCCESS);
    for (int i = 0; i < receive; ++i) {
      EXPECT_EQ(Arrived(pair, i), 1);
    }
  }
}

// ---- Receivers that start later -----------------------------------------------------------------

TEST(ClearingTest, WhatIsNotClearedIsLeftReady) {
  for (const uint32_t way : {FERRY_PARTITIONED_BY_KERNEL, FERRY_PARTITIONED_BY_DAEMON}) {
    Pair pair({8, 4, 24}, way);
    pair.Start(1, false);
    EXPECT_EQ(MPIX_Pready_range(0, 3, pair.send()), MPIX_DEVICE_SUCCESS);
    EXPECT_EQ(pair.words(0).ready, 15u);
    EXPECT_EQ(pair.words(0).taken, 0u);
    EXPECT_EQ(pair.arrived(0), 0u);
    EXPECT_TRUE(pair.TakeByHost(0, 1));
    EXPECT_EQ(pair.words(0).taken, 15u);
    EXPECT_EQ(pair.arrived(0), 15u);
  }
}

TEST(ClearingTest, HostsMoveTheRestInPieces) {
  Pair pair({3, 1, 600, 0, 6});
  pair.Start(1, false);
  pair.Fill(1, 1, ferry_device_crew_of(FERRY_DEVICE_CREW_THREAD));
  EXPECT_EQ(MPIX_Pready(1, pair.send()), MPIX_DEVICE_SUCCESS);
  EXPECT_EQ(pair.words(1).ready, 0b11'1111u);
  pair.words(1).taken = 0b01'1111;  // a side that has taken its share
  pair.MoveByHost(1, 0b01'1111);
  EXPECT_EQ(Arrived(pair, 1), 0);
  EXPECT_TRUE(pair.TakeByHost(1, 1));
  EXPECT_EQ(Arrived(pair, 1), 1);
  EXPECT_TRUE(pair.IsThere(1, 1));
}

TEST(ClearingTest, LeavesAllToTheHostIfItIsToMoveThem) {
  Pair pair({8, 4, 24}, FERRY_PARTITIONED_BY_HOST);
  pair.Start(1);
  EXPECT_EQ(MPIX_Pready_range(0, 7, pair.send()), MPIX_DEVICE_SUCCESS);
  EXPECT_EQ(pair.words(1).ready, 15u);
  EXPECT_EQ(pair.arrived(1), 0u);
  EXPECT_TRUE(pair.TakeByHost(0, 1));
  EXPECT_TRUE(pair.TakeByHost(1, 1));
}

// Until the other side has said that it has come to that round.
void AwaitRound(const std::atomic<uint64_t>& word, uint64_t round) {
  while (word.load() != round) {
    sched_yield();
  }
}

// The receiver's host starts each round while the kernel readies, and looks at what is ready once:
// what it does not see then, the kernel moves.
TEST(ClearingTest, AStartMeanwhileMovesEachUnitOnce) {
  constexpr uint64_t kRounds = 300;
  const Sizes shape{6, 2, 16};
  Pair pair(shape);
  std::atomic<uint64_t> begun{0};
  std::atomic<uint64_t> ended{0};
  std::thread receiver([&] {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      AwaitRound(begun, round);
      (void)shm::Exchange(pair.cleared(), round, std::memory_order_seq_cst);
      for (uint32_t unit = 0; unit < pair.units(); ++unit) {
        ferry_device_full_fence();
        (void)pair.TakeByHost(unit, round);
      }
      for (int i = 0; i < shape.partitions; ++i) {
        EXPECT_EQ(MPIX_Pawait(pair.receive(), i), MPIX_DEVICE_SUCCESS);
        EXPECT_TRUE(pair.IsThere(round, i));
      }
      ended.store(round);
    }
  });
  Launch({3, 1}, [&] {
    const auto group = static_cast<int>(ferry_device_group());
    const ferry_device_crew alone = ferry_device_crew_of(FERRY_DEVICE_CREW_THREAD);
    for (uint64_t round = 1; round <= kRounds; ++round) {
      AwaitRound(ended, round - 1);
      if (group == 0) {
        pair.Start(round, false);
        begun.store(round);
      }
      AwaitRound(begun, round);
      for (int i = group; i < shape.partitions; i += 3) {
        pair.Fill(round, i, alone);
        EXPECT_EQ(MPIX_Pready(i, pair.send()), MPIX_DEVICE_SUCCESS);
      }
    }
  });
  receiver.join();
  pair.ExpectRoundOver(kRounds);
}

// ---- Units that stay incomplete -----------------------------------------------------------------

// The host claims every unit in every round at some time, and moves, bit by bit, what it sees in
// the counter. (mpi/partitioned/prequest.cc does the same.)
TEST(ClaimTest, EachPartitionIsMovedOnce) {
  constexpr uint64_t kRounds = 300;
  const Sizes shape{8, 4, 16};
  Pair pair(shape);
  std::atomic<uint64_t> begun{0};
  std::atomic<uint64_t> ended{0};
  const auto flush = [&](uint32_t unit, uint64_t round, bool* is_own) {
    const uint64_t full = pair.full(unit);
    ferry_partitioned_unit& its = *ferry_partitioned_unit_of(pair.send(), unit);
    (void)shm::Exchange(its.claimed, round, std::memory_order_seq_cst);
    const uint64_t bits =
        shm::Load(pair.counter(unit), std::memory_order_seq_cst) - (round - 1) * full;
    *is_own |= bits != full || shm::LoadAcquire(its.left) == round;
    if (*is_own) {
      const uint64_t ready = pair.words(unit).ready - (round - 1) * full;
      ferry_device_fetch_add(&pair.words(unit).ready, bits & ~ready);
      (void)pair.TakeByHost(unit, round);
    }
    return ferry_device_load_acquire(&pair.words(unit).ready) == round * full;
  };
  std::thread host([&] {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      AwaitRound(begun, round);
      for (uint32_t unit = 0; unit < pair.units(); ++unit) {
        bool is_own = false;
        while (!flush(unit, round, &is_own)) {
          sched_yield();
        }
      }
      for (int i = 0; i < shape.partitions; ++i) {
        EXPECT_EQ(MPIX_Pawait(pair.receive(), i), MPIX_DEVICE_SUCCESS);
        EXPECT_TRUE(pair.IsThere(round, i));
      }
      ended.store(round);
    }
  });
  Launch({2, 1}, [&] {
    const auto group = static_cast<int>(ferry_device_group());
    const ferry_device_crew alone = ferry_device_crew_of(FERRY_DEVICE_CREW_THREAD);
    for (uint64_t round = 1; round <= kRounds; ++round) {
      AwaitRound(ended, round - 1);
      if (group == 0) {
        pair.Start(round);
        begun.store(round);
      }
      AwaitRound(begun, round);
      for (int i = group; i < shape.partitions; i += 2) {
        pair.Fill(round, i, alone);
        EXPECT_EQ(MPIX_Pready(i, pair.send()), MPIX_DEVICE_SUCCESS);
      }
    }
  });
  host.join();
  pair.ExpectRoundOver(kRounds);
}

// ---- Daemon copy --------------------------------------------------------------------------------

class DaemonCopyTest : public testing::Test {
 protected:
  static constexpr uint32_t kSlots = 8;

  DaemonCopyTest() : pair_({6, 3, 100}, FERRY_PARTITIONED_BY_DAEMON) {
    auto* const layout = static_cast<shm::MpscRingLayout*>(static_cast<void*>(memory_));
    EXPECT_TRUE(shm::MpscRing::Initialize(layout, kSlots).ok());
    consumer_.emplace(layout, kSlots);
    MPIX_Prequest_object& send = *pair_.send();
    send.ring = AddressOf(memory_);
    std::memcpy(send.ring_words, memory_ + 32 * 8, sizeof(send.ring_words));
    send.ring_producers = AddressOf(producers_);
    send.peer = 3;
    send.source_region = 4;
    send.source_offset = 1000;
    send.destination_segment = 5;
    send.destination_offset = 2000;
    send.arrived_segment = 6;
    send.arrived_offset = 3000;
    send.state_region = 7;
    send.state_offset = 4096;
  }

  shm::RingOperation Take() {
    shm::RingRequest request{};
    uint64_t ticket = 0;
    EXPECT_TRUE(consumer_->Take(&request, &ticket));
    shm::RingOperation operation;
    std::memcpy(&operation, &request, sizeof(operation));
    return operation;
  }

  alignas(128) std::byte memory_[sizeof(shm::MpscRingLayout) + kSlots * 64]{};
  ferry_device_u64 producers_[16] = {};
  std::optional<shm::RingConsumer> consumer_;
  Pair pair_;
};

TEST_F(DaemonCopyTest, AsksForAPutWhoseSignalIsTheArrival) {
  pair_.Start(1);
  EXPECT_EQ(MPIX_Pready_range(3, 5, pair_.send()), MPIX_DEVICE_SUCCESS);
  const shm::RingOperation signal = Take();
  EXPECT_EQ(signal.kind, static_cast<uint32_t>(shm::RingKind::kSignal));
  EXPECT_EQ(signal.operation, FERRY_DEVICE_RING_SIGNAL_ADD);
  EXPECT_EQ(signal.flags, 0);
  EXPECT_EQ(signal.rank, 3u);
  EXPECT_EQ(signal.segment, 6u);
  EXPECT_EQ(signal.there, 3008u);
  EXPECT_EQ(signal.operand, 7u);
  EXPECT_EQ(signal.completion_region, 0u);
  const shm::RingOperation put = Take();
  EXPECT_EQ(put.kind, static_cast<uint32_t>(shm::RingKind::kPut));
  EXPECT_EQ(put.flags, shm::kRingSignalled);
  EXPECT_EQ(put.region, 4u);
  EXPECT_EQ(put.operand, 1300u);
  EXPECT_EQ(put.rank, 3u);
  EXPECT_EQ(put.segment, 5u);
  EXPECT_EQ(put.there, 2300u);
  EXPECT_EQ(put.compare, 300u);
  EXPECT_EQ(put.completion_region, 7u);
  EXPECT_EQ(put.completion,
            4096 + sizeof(ferry_partitioned_state) + sizeof(ferry_partitioned_unit));
  const ferry_partitioned_unit& its = *ferry_partitioned_unit_of(pair_.send(), 1);
  EXPECT_EQ(its.number, 2u);
  EXPECT_EQ(its.asked, 1u);
  EXPECT_EQ(pair_.words(1).ready, 7u);
  EXPECT_EQ(pair_.words(1).taken, 7u);
  EXPECT_EQ(pair_.arrived(1), 0u);  // ferryd's
}

// But for what the program wants of ferryd in any case.
TEST_F(DaemonCopyTest, LeavesToAThreadThatWaitsForThisRound) {
  struct Case {
    const char* name;
    uint32_t leaves;
    uint64_t attended;
    bool is_asked;
  };
  uint64_t round = 0;
  for (const Case& each : {Case{"nobody waits", 1, 0, true},
                           {"a thread waits", 1, 2, false},
                           {"one waits for another round", 1, 2, true},
                           {"ferryd is wanted", 0, 4, true}}) {
    SCOPED_TRACE(each.name);
    pair_.Start(++round);
    pair_.send()->leaves_to_waiting = each.leaves;
    pair_.state().attended = each.attended;
    const uint64_t moved = pair_.send()->moved;
    EXPECT_EQ(MPIX_Pready_range(0, 2, pair_.send()), MPIX_DEVICE_SUCCESS);
    EXPECT_EQ(pair_.send()->moved - moved, each.is_asked ? 1u : 0u);
    EXPECT_EQ(pair_.words(0).ready, round * 7);
    EXPECT_EQ(pair_.words(0).taken, (each.is_asked ? round : round - 1) * 7);
    shm::RingRequest request{};
    uint64_t ticket = 0;
    EXPECT_EQ(consumer_->Take(&request, &ticket), each.is_asked);
    if (each.is_asked) {
      (void)Take();
    } else {
      EXPECT_TRUE(pair_.TakeByHost(0, round));
    }
  }
}

TEST_F(DaemonCopyTest, EndsWithTheRing) {
  consumer_->End(ErrorCode::kDaemonDied);
  for (uint64_t round = 1; round <= 6; ++round) {  // more than the ring has room for
    pair_.Start(round);
    const int status = MPIX_Pready_range(0, 5, pair_.send());
    if (round > 2) {
      EXPECT_EQ(status, MPIX_DEVICE_ERR_DAEMON_DIED);
      EXPECT_EQ(pair_.state().noted >> 32, uint64_t{MPIX_DEVICE_ERR_DAEMON_DIED});
    }
  }
}

// ---- Wrong calls --------------------------------------------------------------------------------

TEST(WrongCallTest, IsReturnedAndNotedForTheHost) {
  Pair pair({8, 4, 24});
  const auto noted = [&](int status, int partition) {
    const uint64_t found = pair.state().noted;
    pair.state().noted = 0;
    return found == (static_cast<uint64_t>(status) << 32 | static_cast<uint32_t>(partition));
  };
  EXPECT_EQ(MPIX_Pready(2, pair.send()), MPIX_DEVICE_ERR_REQUEST);  // not started
  EXPECT_TRUE(noted(MPIX_DEVICE_ERR_REQUEST, 2));
  pair.Start(1);
  for (const int partition : {-1, 8, 1 << 30}) {
    EXPECT_EQ(MPIX_Pready(partition, pair.send()), MPIX_DEVICE_ERR_ARGUMENT);
    EXPECT_TRUE(noted(MPIX_DEVICE_ERR_ARGUMENT, partition));
  }
  EXPECT_EQ(MPIX_Pready_range(3, 8, pair.send()), MPIX_DEVICE_ERR_ARGUMENT);
  EXPECT_TRUE(noted(MPIX_DEVICE_ERR_ARGUMENT, 8));
  EXPECT_EQ(MPIX_Pready_range(3, 2, pair.send()), MPIX_DEVICE_ERR_ARGUMENT);
  EXPECT_TRUE(noted(MPIX_DEVICE_ERR_ARGUMENT, 2));
  EXPECT_EQ(pair.counter(0), 0u);

  EXPECT_EQ(MPIX_Pready(1, pair.send()), MPIX_DEVICE_SUCCESS);
  EXPECT_EQ(MPIX_Pready(1, pair.send()), MPIX_DEVICE_ERR_REQUEST);
  EXPECT_TRUE(noted(MPIX_DEVICE_ERR_REQUEST, 1));
  EXPECT_EQ(pair.counter(0), 2u);
  // The others of a range count.
  EXPECT_EQ(MPIX_Pready_range(0, 3, pair.send()), MPIX_DEVICE_ERR_REQUEST);
  EXPECT_TRUE(noted(MPIX_DEVICE_ERR_REQUEST, 0));
  EXPECT_EQ(pair.arrived(0), 15u);
  EXPECT_EQ(MPIX_Pready(3, pair.send()), MPIX_DEVICE_ERR_REQUEST);  // its unit is complete
  EXPECT_TRUE(noted(MPIX_DEVICE_ERR_REQUEST, 3));
  EXPECT_EQ(pair.counter(0), 15u);
}

// Threads ready one half of each unit twice, while others ready the rest: what is wrong adds
// nothing, so what is right is never taken for it.
TEST(WrongCallTest, DoesNotDisturbOthers) {
  Pair pair({32, 32, 8});
  for (uint64_t round = 1; round <= 50; ++round) {
    pair.Start(round);
    EXPECT_EQ(MPIX_Pready_range(0, 15, pair.send()), MPIX_DEVICE_SUCCESS);
    std::atomic<int> failures{0};
    Launch({2, 1}, [&] {
      const bool is_right = ferry_device_group() == 0;
      for (int i = 0; i < 16; ++i) {
        const int status = MPIX_Pready(is_right ? 16 + i : i, pair.send());
        failures += status == (is_right ? MPIX_DEVICE_SUCCESS : MPIX_DEVICE_ERR_REQUEST) ? 0 : 1;
      }
    });
    EXPECT_EQ(failures, 0);
    EXPECT_EQ(std::exchange(pair.state().noted, 0) >> 32, uint64_t{MPIX_DEVICE_ERR_REQUEST});
    for (int i = 0; i < 32; ++i) {
      EXPECT_EQ(Arrived(pair, i), 1);
    }
    EXPECT_EQ(pair.counter(0), round * pair.full(0));
  }
}

// A send to MPI_PROC_NULL ends its rounds without its kernels: they count nothing, in whichever
// they run.
TEST(NowhereTest, NothingIsCounted) {
  Pair pair({8, 4, 24}, FERRY_PARTITIONED_NOWHERE);
  EXPECT_EQ(MPIX_Pready(1, pair.send()), MPIX_DEVICE_ERR_REQUEST);  // not started
  pair.state().noted = 0;
  for (const uint64_t round : {1, 3}) {
    pair.Start(round);
    EXPECT_EQ(MPIX_Pready_range(0, 7, pair.send()), MPIX_DEVICE_SUCCESS);
    EXPECT_EQ(MPIX_Pready(7, pair.send()), MPIX_DEVICE_SUCCESS);
    EXPECT_EQ(MPIX_Pready(8, pair.send()), MPIX_DEVICE_ERR_ARGUMENT);
    pair.state().noted = 0;
  }
  for (uint32_t unit = 0; unit < pair.units(); ++unit) {
    EXPECT_EQ(pair.counter(unit), 0u);
    EXPECT_EQ(pair.words(unit).ready, 0u);
    EXPECT_EQ(pair.arrived(unit), 0u);
  }
}

TEST(WrongCallTest, TheFirstIsNoted) {
  Pair pair({8, 4, 24});
  pair.Start(1);
  const int list[] = {1, 9, 1};
  EXPECT_EQ(MPIX_Pready_list(3, list, pair.send()), MPIX_DEVICE_ERR_ARGUMENT);
  EXPECT_EQ(pair.state().noted, uint64_t{MPIX_DEVICE_ERR_ARGUMENT} << 32 | 9);
  EXPECT_EQ(pair.counter(0), 2u);
  EXPECT_EQ(MPIX_Pready_list(-1, list, pair.send()), MPIX_DEVICE_ERR_ARGUMENT);
}

// All threads of a group get the status.
TEST(WrongCallTest, IsToldToAllOfAGroup) {
  Pair pair({8, 4, 24});
  pair.Start(1);
  std::atomic<int> told{0};
  Launch({1, 5}, [&] {
    (void)MPIX_Pready_block(2, pair.send());
    told += MPIX_Pready_block(2, pair.send()) == MPIX_DEVICE_ERR_REQUEST ? 1 : 0;
  });
  EXPECT_EQ(told, 5);
  EXPECT_EQ(pair.counter(0), 4u);
}

TEST(WrongCallTest, NamesNoPrequest) {
  Pair pair({8, 4, 24});
  pair.Start(1);
  int flag = -1;
  EXPECT_EQ(MPIX_Pready(0, nullptr), MPIX_DEVICE_ERR_REQUEST);
  EXPECT_EQ(MPIX_Parrived(nullptr, 0, &flag), MPIX_DEVICE_ERR_REQUEST);
  EXPECT_EQ(MPIX_Pready(0, pair.receive()), MPIX_DEVICE_ERR_REQUEST);
  EXPECT_EQ(MPIX_Parrived(pair.send(), 0, &flag), MPIX_DEVICE_ERR_REQUEST);
  EXPECT_EQ(MPIX_Pawait(pair.send(), 0), MPIX_DEVICE_ERR_REQUEST);
  EXPECT_EQ(MPIX_Parrived(pair.receive(), 8, &flag), MPIX_DEVICE_ERR_ARGUMENT);
  EXPECT_EQ(MPIX_Pawait(pair.receive(), -1), MPIX_DEVICE_ERR_ARGUMENT);
  EXPECT_EQ(flag, 0);
  pair.send()->version = 99;
  EXPECT_EQ(MPIX_Pready(0, pair.send()), MPIX_DEVICE_ERR_VERSION);
}

// ---- Waits --------------------------------------------------------------------------------------

TEST(WaitTest, IsOverIfNothingWasStarted) {
  Pair pair({8, 4, 24});
  EXPECT_EQ(Arrived(pair, 5), 1);
  EXPECT_EQ(MPIX_Pawait(pair.receive(), 5), MPIX_DEVICE_SUCCESS);
}

TEST(WaitTest, EndsByTheHostsWord) {
  Pair pair({8, 4, 24});
  pair.Start(1);
  EXPECT_EQ(MPIX_Pready_range(0, 3, pair.send()), MPIX_DEVICE_SUCCESS);
  std::atomic<int> ended{0};
  std::thread kernel([&] {
    Launch({2, 3}, [&] {
      ended += MPIX_Pawait_block(pair.receive(), 5) == MPIX_DEVICE_ERR_PEER_DIED ? 1 : 0;
    });
  });
  ferry_device_store_release(&pair.receive_state().error, MPIX_DEVICE_ERR_PEER_DIED);
  kernel.join();
  EXPECT_EQ(ended, 6);
  int flag = 0;
  EXPECT_EQ(MPIX_Parrived(pair.receive(), 5, &flag), MPIX_DEVICE_ERR_PEER_DIED);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(Arrived(pair, 3), 1);  // what came before counts
}

}  // namespace
}  // namespace ferry::device
