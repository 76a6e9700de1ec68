// The waits of each thread of a rank, as its ferryd and people see them, and what the rank's calls
// have done so far. Written by the rank, read by its ferryd (shm/call_record.h).
//
// A record is written when a call begins to wait, past its first spins, or where it begins, if it
// is one that takes long anyhow (a collective, the synchronisation of a window). So a rank that
// computes shows no call, and a message that is there at once costs nothing.
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"

namespace ferry::shm {

// Threads of a rank whose calls are shown at the same time. Further ones are only counted.
inline constexpr uint32_t kCallSlots = 8;
// Entries of CallBoardLayout::totals: the numbers of call_names.h are smaller.
inline constexpr uint32_t kMostCallNames = 256;
inline constexpr uint32_t kCallGroupNameBytes = 32;

// Ranks in CallRecordLayout, other than ranks of the job.
inline constexpr int32_t kCallNoRank = -1;
inline constexpr int32_t kCallAnyRank = -2;

// Bits of CallRecordLayout::flags: which of its words mean something.
enum CallFlag : uint16_t {
  kCallHasGroup = 1,       // group, group_name
  kCallHasTag = 2,         // tag
  kCallHasBytes = 4,       // bytes
  kCallHasNumber = 8,      // number
  kCallAnyTag = 16,        // it takes any tag (kCallHasTag is clear)
  kCallHasObject = 32,     // object
  kCallPeerIsRoot = 64,    // `peer` is the root of a collective, for which it need not wait
  kCallNonblocking = 128,  // it waits for the end of a nonblocking or persistent `inner`
  // `group_name` is the end of a file's name, and `object`, if it is there, the first byte of the
  // file that the call is about.
  kCallHasFile = 256,
};

// A call of a thread. A reader that finds the same even `sequence` before and after it has copied
// the words below has words of one call, but for `missing` and `missing_count`.
struct alignas(128) CallRecordLayout {
  // Odd while the words below it are being changed. A rank that is killed then leaves it odd.
  uint64_t sequence;
  uint64_t generation;  // of the call: grows with each call of the slot
  // CLOCK_MONOTONIC, good to a few ms: when the call began to wait, or began.
  uint64_t begin_ns;
  uint16_t name;   // CallName; 0: the slot shows no call. The end of a call changes this alone.
  uint16_t inner;  // CallName of the operation that a completion call waits for; 0: not known
  uint16_t flags;  // CallFlag
  uint16_t reserved0;
  uint32_t thread;  // its id in the kernel
  // The communicator's number, which no other of the job ever has (mpi/comm/context_ids.h: contexts
  // of its messages are the eight from 8 * group on); or that of a team, with bit 31 set.
  uint32_t group;
  int32_t peer;           // its rank in the job, kCallNoRank or kCallAnyRank
  int32_t peer_in_group;  // its number in the communicator, as the program passed it; else as peer
  int32_t tag;
  uint32_t reserved1;
  uint64_t bytes;
  // Of a collective: its number among those of the communicator, from 0, counted by each rank.
  // Ranks in the same call of a communicator have the same. Of an operation of a queue: its
  // position.
  uint64_t number;
  // The window's number, the address that the call waits at, the queue or the request; of a file
  // see kCallHasFile.
  uint64_t object;
  // Whom it is known to wait for, where no request of the session says that: a rank of the job that
  // has not come (kCallNoRank: not known), and how many there are. Changes while the call waits.
  int32_t missing;
  uint32_t missing_count;
  char group_name[kCallGroupNameBytes];  // need not end with a 0
  uint64_t reserved2;
};
FERRY_ASSERT_LAYOUT(CallRecordLayout, 128);
FERRY_ASSERT_OFFSET(CallRecordLayout, generation, 8);
FERRY_ASSERT_OFFSET(CallRecordLayout, begin_ns, 16);
FERRY_ASSERT_OFFSET(CallRecordLayout, name, 24);
FERRY_ASSERT_OFFSET(CallRecordLayout, inner, 26);
FERRY_ASSERT_OFFSET(CallRecordLayout, flags, 28);
FERRY_ASSERT_OFFSET(CallRecordLayout, thread, 32);
FERRY_ASSERT_OFFSET(CallRecordLayout, group, 36);
FERRY_ASSERT_OFFSET(CallRecordLayout, peer, 40);
FERRY_ASSERT_OFFSET(CallRecordLayout, peer_in_group, 44);
FERRY_ASSERT_OFFSET(CallRecordLayout, tag, 48);
FERRY_ASSERT_OFFSET(CallRecordLayout, bytes, 56);
FERRY_ASSERT_OFFSET(CallRecordLayout, number, 64);
FERRY_ASSERT_OFFSET(CallRecordLayout, object, 72);
FERRY_ASSERT_OFFSET(CallRecordLayout, missing, 80);
FERRY_ASSERT_OFFSET(CallRecordLayout, missing_count, 84);
FERRY_ASSERT_OFFSET(CallRecordLayout, group_name, 88);

// Totals of the calls of one name since the rank attached. A kill may lose a count, and so may
// threads that call at the same time.
struct CallTotals {
  uint64_t calls;      // that have begun; of collectives and one-sided operations
  uint64_t bytes;      // their payload in this rank
  uint64_t waits;      // that were shown in a record, and are over
  uint64_t waited_ns;  // in these
};
FERRY_ASSERT_LAYOUT(CallTotals, 32);
FERRY_ASSERT_OFFSET(CallTotals, bytes, 8);
FERRY_ASSERT_OFFSET(CallTotals, waits, 16);
FERRY_ASSERT_OFFSET(CallTotals, waited_ns, 24);

struct alignas(128) CallBoardLayout {
  uint32_t unshown;  // threads that wait now, and found no free slot
  uint32_t reserved0;
  uint64_t reserved[15];
  CallRecordLayout slots[kCallSlots];
  alignas(128) CallTotals totals[kMostCallNames];  // by CallName
};
FERRY_ASSERT_LAYOUT(CallBoardLayout, 9344);
FERRY_ASSERT_OFFSET(CallBoardLayout, slots, 128);
FERRY_ASSERT_OFFSET(CallBoardLayout, totals, 1152);

}  // namespace ferry::shm
