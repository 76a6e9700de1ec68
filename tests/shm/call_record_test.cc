// The record of a rank's calls: what the writer shows, a reader finds, whole; and a reader survives
// what no writer writes.
#include "shm/call_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shm/atomic.h"
#include "shm/call_board.h"

namespace ferry::shm {
namespace {

constexpr uint32_t kJobSize = 16;
constexpr uint32_t kThread = 4711;

// All words of the call follow from one number.
CallDescription CallNumber(uint64_t i) {
  CallDescription call;
  call.name = i % 2 == 0 ? CallName::kMpiRecv : CallName::kMpiAllreduce;
  call.inner = call.name;
  call.flags = kCallHasGroup | kCallHasTag | kCallHasBytes | kCallHasNumber | kCallHasObject;
  call.group = static_cast<uint32_t>(i);
  call.peer = static_cast<int32_t>(i % kJobSize);
  call.peer_in_group = static_cast<int32_t>(i % kJobSize);
  call.tag = static_cast<int32_t>(i % 1000);
  call.bytes = i;
  call.number = i;
  call.object = i;
  call.missing = static_cast<int32_t>(i % kJobSize);
  call.missing_count = 1;
  return call;
}

// Returns true if it is that call, from its first word to its last.
bool IsWhole(const CallView& view) {
  const uint64_t i = view.number;
  const CallDescription call = CallNumber(i);
  return view.name == call.name && view.inner == call.inner && view.group == call.group &&
         view.peer == call.peer && view.peer_in_group == call.peer_in_group &&
         view.tag == call.tag && view.bytes == i && view.object == i &&
         (view.begin_ns == 0 || view.begin_ns == i);
}

class CallRecordTest : public testing::Test {
 protected:
  CallView Only() {
    const CallsView found = ReadCalls(layout_, kJobSize);
    EXPECT_EQ(found.calls.size(), 1U);
    return found.calls.empty() ? CallView() : found.calls.front();
  }

  CallBoardLayout layout_{};
  CallBoard board_{&layout_};
};

TEST_F(CallRecordTest, ShowsNoCallAtFirst) {
  const CallsView found = ReadCalls(layout_, kJobSize);
  EXPECT_TRUE(found.calls.empty());
  EXPECT_EQ(found.unshown, 0U);
  EXPECT_FALSE(found.changing);
}

TEST_F(CallRecordTest, ShowsACallUntilItsEnd) {
  const int slot = board_.Begin(CallNumber(42), kThread, 42, false);
  const CallView view = Only();
  EXPECT_TRUE(IsWhole(view));
  EXPECT_EQ(view.number, 42U);
  EXPECT_EQ(view.begin_ns, 42U);
  EXPECT_EQ(view.thread, kThread);
  EXPECT_TRUE(view.has_group && view.has_tag && view.has_bytes && view.has_number);
  EXPECT_EQ(view.missing, 42 % kJobSize);
  board_.End(slot, false);
  EXPECT_TRUE(ReadCalls(layout_, kJobSize).calls.empty());
}

TEST_F(CallRecordTest, TwoLooksAtOneCallFindOneGeneration) {
  const int slot = board_.Begin(CallNumber(1), kThread, 0, false);
  const uint64_t generation = Only().generation;
  board_.SetBegin(slot, 1);
  board_.SetMissing(slot, 3, 2);
  const CallView again = Only();
  EXPECT_EQ(again.generation, generation);
  EXPECT_EQ(again.begin_ns, 1U);
  EXPECT_EQ(again.missing, 3);
  EXPECT_EQ(again.missing_count, 2U);
  board_.End(slot, false);
  EXPECT_EQ(board_.Begin(CallNumber(1), kThread, 0, false), slot);
  EXPECT_GT(Only().generation, generation);
  EXPECT_EQ(Only().missing, 1);
}

TEST_F(CallRecordTest, WritesAGroupsNameOnceAndAgainWhenItIsForgotten) {
  std::string name = "halo";
  CallDescription call = CallNumber(7);
  int written = 0;
  struct Object {
    std::string* name;
    int* written;
  } object{&name, &written};
  call.group_object = &object;
  call.write_name = [](const void* it, char(&to)[kCallGroupNameBytes]) {
    const auto* const group = static_cast<const Object*>(it);
    std::memcpy(to, group->name->data(), std::min(group->name->size(), sizeof(to)));
    ++*group->written;
  };
  const auto show = [&] {
    const int slot = board_.Begin(call, kThread, 0, false);
    const std::string found = Only().group_name;
    board_.End(slot, false);
    return found;
  };
  EXPECT_EQ(show(), "halo");
  EXPECT_EQ(show(), "halo");
  EXPECT_EQ(written, 1);
  name = "a name that is longer than the field, of which the beginning is shown";
  board_.ForgetNames();
  EXPECT_EQ(show(), name.substr(0, kCallGroupNameBytes));
  EXPECT_EQ(written, 2);
  call.group = 8;
  call.write_name = nullptr;
  EXPECT_EQ(show(), "");  // not that of the group before
}

// Calls on files that follow each other may belong to no communicator, or to one number.
TEST_F(CallRecordTest, ShowsEachCallsOwnFile) {
  CallDescription call;
  call.name = CallName::kMpiFileWriteAt;
  call.flags = kCallHasFile | kCallHasObject | kCallHasBytes;
  call.object = call.bytes = 4096;
  call.write_name = [](const void* it, char(&to)[kCallGroupNameBytes]) {
    std::strncpy(to, static_cast<const char*>(it), sizeof(to));
  };
  for (const char* name : {"/tmp/one", "/tmp/two"}) {
    call.group_object = call.file = name;
    const int slot = board_.Begin(call, kThread, 0, false);
    EXPECT_EQ(Only().file, name);
    EXPECT_EQ(Only().group_name, "");
    EXPECT_FALSE(Only().has_group);
    EXPECT_EQ(CallPhrase(Only()),
              std::string("MPI_File_write_at of ") + name + ", from byte 4096 on, 4096 B");
    board_.End(slot, false);
  }
  CallDescription other = CallNumber(7);
  other.write_name = [](const void*, char(&to)[kCallGroupNameBytes]) { std::strcpy(to, "rows"); };
  const int slot = board_.Begin(other, kThread, 0, false);
  EXPECT_EQ(Only().group_name, "rows");
  EXPECT_EQ(Only().file, "");
  board_.End(slot, false);
}

TEST_F(CallRecordTest, CountsThreadsWithoutASlot) {
  std::vector<int> slots;
  for (uint32_t i = 0; i < kCallSlots + 3; ++i) {
    slots.push_back(board_.Begin(CallNumber(i), i, 0, true));
  }
  EXPECT_EQ(slots.back(), CallBoard::kUnshown);
  EXPECT_EQ(ReadCalls(layout_, kJobSize).calls.size(), kCallSlots);
  EXPECT_EQ(ReadCalls(layout_, kJobSize).unshown, 3U);
  board_.SetBegin(CallBoard::kUnshown, 1);
  board_.SetMissing(CallBoard::kUnshown, 1, 1);
  for (const int slot : slots) {
    board_.End(slot, true);
  }
  EXPECT_TRUE(ReadCalls(layout_, kJobSize).calls.empty());
  EXPECT_EQ(ReadCalls(layout_, kJobSize).unshown, 0U);
}

TEST_F(CallRecordTest, AddsUpTotalsByName) {
  board_.AddCall(CallName::kMpiPut, 100);
  board_.AddCall(CallName::kMpiPut, 1);
  board_.AddWait(CallName::kMpiRecv, 7);
  const CallTotals& puts = layout_.totals[static_cast<size_t>(CallName::kMpiPut)];
  EXPECT_EQ(puts.calls, 2U);
  EXPECT_EQ(puts.bytes, 101U);
  const CallTotals& receives = layout_.totals[static_cast<size_t>(CallName::kMpiRecv)];
  EXPECT_EQ(receives.waits, 1U);
  EXPECT_EQ(receives.waited_ns, 7U);
}

// More threads than slots begin and end calls, whose words each follow from one number, until the
// reader has seen many. Now and then a thread lets others run in the middle of a call.
TEST_F(CallRecordTest, NoReaderSeesACallThatIsTorn) {
  constexpr uint64_t kLooks = 5'000;
  constexpr uint32_t kThreads = kCallSlots + 2;
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; !is_over.load(std::memory_order_relaxed); ++i) {
        const uint64_t number = i * kThreads + t + 1;
        const int slot = board_.Begin(CallNumber(number), t, 0, true);
        board_.SetBegin(slot, number);
        if (i % 50 == 0) {
          std::this_thread::yield();
        }
        board_.End(slot, true);
      }
    });
  }
  uint64_t torn = 0;
  std::vector<uint64_t> generations(kCallSlots);
  for (uint64_t seen = 0; seen < kLooks;) {
    for (const CallView& view : ReadCalls(layout_, kJobSize).calls) {
      ++seen;
      torn += IsWhole(view) ? 0 : 1;
      torn += view.generation >= generations[view.slot] ? 0 : 1;
      generations[view.slot] = view.generation;
    }
    std::this_thread::yield();
  }
  is_over.store(true, std::memory_order_relaxed);
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(torn, 0U);
  EXPECT_TRUE(ReadCalls(layout_, kJobSize).calls.empty());
  EXPECT_EQ(layout_.unshown, 0U);
}

// ---- What no rank writes ------------------------------------------------------------------------

TEST_F(CallRecordTest, ARecordThatIsAlwaysBeingChangedIsGivenUp) {
  (void)board_.Begin(CallNumber(1), kThread, 0, false);
  StoreRelaxed(layout_.slots[0].sequence, 7);
  CallView view;
  EXPECT_EQ(ReadCall(layout_.slots[0], kJobSize, &view), CallLook::kChanging);
  EXPECT_TRUE(ReadCalls(layout_, kJobSize).changing);
  EXPECT_TRUE(ReadCalls(layout_, kJobSize).calls.empty());
}

TEST_F(CallRecordTest, UnknownNumbersAndRanksAreLeftOut) {
  const int slot = board_.Begin(CallNumber(3), kThread, 0, false);
  CallRecordLayout& record = layout_.slots[slot];
  record.peer = static_cast<int32_t>(kJobSize);
  record.missing = -7;
  record.inner = 9999;
  std::memset(record.group_name, 0x1b, sizeof(record.group_name));
  CallView view = Only();
  EXPECT_EQ(view.peer, kCallNoRank);
  EXPECT_EQ(view.missing, kCallNoRank);
  EXPECT_EQ(view.missing_count, 0U);
  EXPECT_EQ(view.inner, CallName::kNone);
  EXPECT_EQ(view.group_name, std::string(kCallGroupNameBytes, '?'));
  record.name = kMostCallNames - 1;  // of no function
  EXPECT_TRUE(ReadCalls(layout_, kJobSize).calls.empty());
}

TEST_F(CallRecordTest, AnyBytesAreReadWithoutHarm) {
  std::mt19937_64 random(20261130);
  for (int round = 0; round < 2000; ++round) {
    auto* const words = reinterpret_cast<uint64_t*>(&layout_);
    for (size_t i = 0; i < offsetof(CallBoardLayout, totals) / sizeof(uint64_t); ++i) {
      words[i] = random();
    }
    for (CallRecordLayout& record : layout_.slots) {
      record.sequence &= ~uint64_t{1};
      record.name = static_cast<uint16_t>(record.name % (kMostCallNames + 20));
    }
    for (const CallView& view : ReadCalls(layout_, kJobSize).calls) {
      ASSERT_LT(view.peer, static_cast<int32_t>(kJobSize));
      ASSERT_GE(view.peer, kCallAnyRank);
      ASSERT_LT(view.missing, static_cast<int32_t>(kJobSize));
      ASSERT_GE(view.missing, kCallNoRank);
      ASSERT_LE(view.missing_count, kJobSize);
      ASSERT_LE(view.group_name.size(), kCallGroupNameBytes);
      for (const char c : CallPhrase(view)) {
        ASSERT_TRUE(c >= ' ' && c <= '~');
      }
    }
  }
}

// ---- Names --------------------------------------------------------------------------------------

TEST(CallNamesTest, EachLineIsFoundByItsName) {
  int lines = 0;
  for (uint16_t number = 1; number < kMostCallNames; ++number) {
    if (!IsCallName(number)) {
      continue;
    }
    ++lines;
    const auto name = static_cast<CallName>(number);
    EXPECT_EQ(CallNamed(CallText(name)), name) << CallText(name);
    EXPECT_NE(KindOf(name), CallKind::kNone);
  }
  EXPECT_EQ(lines, 243);
  EXPECT_FALSE(IsCallName(0));
  EXPECT_FALSE(IsCallName(kMostCallNames));
}

TEST(CallNamesTest, FormsOfAFunctionShareItsLine) {
  EXPECT_EQ(CallNamed("MPI_Send_c"), CallName::kMpiSend);
  EXPECT_EQ(CallNamed("MPI_Ibarrier"), CallName::kMpiBarrier);
  EXPECT_EQ(CallNamed("MPI_Allreduce_init_c"), CallName::kMpiAllreduce);
  EXPECT_EQ(CallNamed("MPI_Ineighbor_alltoallw_c"), CallName::kMpiNeighborAlltoallw);
  EXPECT_EQ(CallNamed("MPI_Isend"), CallName::kMpiIsend);
  EXPECT_EQ(CallNamed("MPI_Init"), CallName::kMpiInit);
  EXPECT_EQ(CallNamed("MPI_Comm_rank"), CallName::kNone);
  EXPECT_EQ(CallNamed("MPI_File_iread_at_c"), CallName::kMpiFileReadAt);
  EXPECT_EQ(CallNamed("MPI_File_iwrite_all"), CallName::kMpiFileWriteAll);
  EXPECT_EQ(CallNamed("MPI_File_write_ordered_begin_c"), CallName::kMpiFileWriteOrdered);
  EXPECT_EQ(CallNamed("MPI_File_read_at_all_end"), CallName::kMpiFileReadAtAll);
  EXPECT_EQ(CallNamed("MPI_File_get_amode"), CallName::kNone);
  EXPECT_EQ(CallNamed("shmem_long_wait_until"), CallName::kShmemWaitUntil);
  EXPECT_EQ(CallNamed("shmem_int_wait_until_all_vector"), CallName::kShmemWaitUntilAllVector);
  EXPECT_EQ(CallNamed("shmem_signal_wait_until"), CallName::kShmemSignalWaitUntil);
  EXPECT_EQ(CallNamed("shmem_ctx_double_put_nbi"), CallName::kShmemPutNbi);
  EXPECT_EQ(CallNamed("shmem_put64"), CallName::kShmemPut);
  EXPECT_EQ(CallNamed("shmem_broadcast32"), CallName::kShmemBroadcast);
  EXPECT_EQ(CallNamed("shmem_float_sum_reduce"), CallName::kShmemReduce);
  EXPECT_EQ(CallNamed("shmem_int_and_to_all"), CallName::kShmemReduce);
  EXPECT_EQ(CallNamed("shmem_barrier_all"), CallName::kShmemBarrierAll);
  EXPECT_EQ(CallNamed("shmem_my_pe"), CallName::kNone);
  EXPECT_EQ(CallNamed("ferry_recv"), CallName::kFerryRecv);
  EXPECT_EQ(CallNamed(""), CallName::kNone);
}

TEST(CallNamesTest, PhrasesSayWhatACallWaitsFor) {
  CallView view;
  view.name = CallName::kMpiRecv;
  view.has_group = view.has_tag = view.has_bytes = true;
  view.group = 1;
  view.group_name = "MPI_COMM_WORLD";
  view.peer = view.peer_in_group = 3;
  view.tag = 7;
  view.bytes = 64;
  EXPECT_EQ(CallPhrase(view), "MPI_Recv on MPI_COMM_WORLD, from rank 3, tag 7, 64 B");
  view.peer = 5;
  view.has_tag = false;
  view.any_tag = true;
  view.group_name = "";
  EXPECT_EQ(CallPhrase(view),
            "MPI_Recv on communicator 1, from rank 3 (5 of the job), any tag, 64 B");
  view = {};
  view.name = CallName::kMpiWait;
  view.inner = CallName::kMpiBcast;
  view.is_nonblocking = view.has_group = view.has_number = view.is_peer_root = true;
  view.group_name = "rows";
  view.number = 12;
  view.peer = view.peer_in_group = 0;
  EXPECT_EQ(CallPhrase(view),
            "MPI_Wait for a nonblocking MPI_Bcast on rows, number 12, root rank 0");
  view = {};
  view.name = CallName::kFerryProbe;
  view.peer = view.peer_in_group = kCallAnyRank;
  EXPECT_EQ(CallPhrase(view), "ferry_probe from any rank");
  EXPECT_STREQ(CallText(static_cast<CallName>(255)), "a call");
}

}  // namespace
}  // namespace ferry::shm
