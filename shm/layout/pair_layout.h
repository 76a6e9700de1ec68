// One end of a matched pair of persistent requests: a block in the heap of the rank whose request
// it is, mapped by its peers on the node and by its daemon (docs/stream_triggered.md).
//
// Each word has one class of writer. Both ends are started equally often, in turn: a rank does not
// start the n-th time before the wait for its start n-1.
#pragma once

#include <cstdint>

#include "shm/layout/counter_layout.h"
#include "shm/layout/descriptor.h"
#include "shm/layout/layout_check.h"

namespace ferry::shm {

enum class PairState : uint32_t {
  kOffered = 0,
  kMatched = 1,  // the words beside it are valid
  kFailed = 2,   // `error` is valid
};

// The other end. The daemon writes it once; `state` is stored last.
struct alignas(64) PairWords {
  uint32_t state;  // PairState
  int32_t error;   // ErrorCode
  uint32_t mode;   // SendMode, of the pair's send
  uint32_t reserved0;
  uint64_t size_bytes;  // of the messages: the size of the send
  // Only where both ends are on one node: the other end's PairLayout and memory.
  Location end;
  Location window;
};
FERRY_ASSERT_LAYOUT(PairWords, 64);
FERRY_ASSERT_OFFSET(PairWords, state, 0);
FERRY_ASSERT_OFFSET(PairWords, size_bytes, 16);
FERRY_ASSERT_OFFSET(PairWords, end, 24);
FERRY_ASSERT_OFFSET(PairWords, window, 40);

// A page of the NIC, in which a store of 1 by this end's rank, or by its device, adds 1 to the
// counter that starts the end's messages: then ferryd adds nothing. Only where the NIC's driver
// lets a second process map it.
struct alignas(64) CounterPageWords {
  // By the daemon. The page is [offset, offset + size_bytes) of the descriptor that the attach
  // socket gives for that NIC; `add` is where in the page the word lies.
  uint64_t id;  // 0: there is none, or not any more. Stored last; never used again
  uint64_t offset;
  uint64_t size_bytes;
  uint32_t add;
  uint32_t nic;
  // By the rank.
  uint64_t used;   // the id of the page that it, or its device, may still store to; 0: none
  uint64_t first;  // the first start that it makes there, as all later ones; stored before `used`
  uint64_t reserved[2];
};
FERRY_ASSERT_LAYOUT(CounterPageWords, 64);
FERRY_ASSERT_OFFSET(CounterPageWords, id, 0);
FERRY_ASSERT_OFFSET(CounterPageWords, offset, 8);
FERRY_ASSERT_OFFSET(CounterPageWords, size_bytes, 16);
FERRY_ASSERT_OFFSET(CounterPageWords, add, 24);
FERRY_ASSERT_OFFSET(CounterPageWords, nic, 28);
FERRY_ASSERT_OFFSET(CounterPageWords, used, 32);
FERRY_ASSERT_OFFSET(CounterPageWords, first, 40);

// A send that follows receives of its rank: its message n moves once their messages n have come,
// with no start of a stream in between. All of them go to and come from other nodes.
inline constexpr uint32_t kMostFollowed = 7;
// So many sends may follow one receive: more would delay other pairs at each of its messages.
inline constexpr uint32_t kMostFollowers = 64;

struct alignas(64) FollowWords {
  uint32_t count;  // receives, at most kMostFollowed; written by the rank before the first start
  uint32_t reserved0;
  uint64_t ends[kMostFollowed];  // where in this end's region theirs lie
};
FERRY_ASSERT_LAYOUT(FollowWords, 64);
FERRY_ASSERT_OFFSET(FollowWords, count, 0);
FERRY_ASSERT_OFFSET(FollowWords, ends, 8);

enum class SendMode : uint32_t { kStandard = 0, kReady = 1, kSynchronous = 2 };

struct alignas(64) PairLayout {
  CounterLayout start;  // by the stream, or the rank, that starts it: the number of starts
  CounterLayout done;   // by the process that moves the bytes: messages complete at this end
  CounterLayout meet;   // of the send's end, on one node: the starts of both ends, of modes other
                        // than ready. The end that makes it even moves the bytes.
  PairWords pair;
  // Written by the rank: starts that it has made or enqueued. The daemon polls `start` while it is
  // less.
  uint64_t armed;
  // Inside a node (shm/pair_move.h), by both ends:
  uint64_t gate;  // how many operations of this end touch the other one (16 bits), whether the pair
                  // is closed (1 bit), and which use of this block this is (the upper half)
  uint64_t claim;   // the round (upper half), and the next part of its message to be copied by
                    // whoever comes first: the mover at the other end, or who waits at this one
  uint64_t moved;   // parts of that round that are in place, and 1 for the mover
  uint32_t sleeps;  // 1: a thread sleeps here (a futex word) until the other end moves data
  // Written by the rank before `armed` grows, when one store of a stream into a CounterLayout
  // elsewhere in its region starts several ends: which of this end's starts that counter counts. An
  // end changes to another counter only when none of its starts is under way.
  uint32_t shares;        // 1: the words below say so; 0: all starts are counted by `start`
  uint64_t shared_start;  // where in the region that counter lies
  uint64_t shared_base;   // added to it (modulo 2^64): the number of this end's starts
  uint64_t shared_until;  // the last of them; later ones are counted by `start`
  CounterPageWords page;
  FollowWords follows;
};
FERRY_ASSERT_LAYOUT(PairLayout, 448);
FERRY_ASSERT_OFFSET(PairLayout, start, 0);
FERRY_ASSERT_OFFSET(PairLayout, done, 64);
FERRY_ASSERT_OFFSET(PairLayout, meet, 128);
FERRY_ASSERT_OFFSET(PairLayout, pair, 192);
FERRY_ASSERT_OFFSET(PairLayout, armed, 256);
FERRY_ASSERT_OFFSET(PairLayout, gate, 264);
FERRY_ASSERT_OFFSET(PairLayout, claim, 272);
FERRY_ASSERT_OFFSET(PairLayout, moved, 280);
FERRY_ASSERT_OFFSET(PairLayout, sleeps, 288);
FERRY_ASSERT_OFFSET(PairLayout, shares, 292);
FERRY_ASSERT_OFFSET(PairLayout, shared_start, 296);
FERRY_ASSERT_OFFSET(PairLayout, shared_base, 304);
FERRY_ASSERT_OFFSET(PairLayout, shared_until, 312);
FERRY_ASSERT_OFFSET(PairLayout, page, 320);
FERRY_ASSERT_OFFSET(PairLayout, follows, 384);

// Messages of two chunks or more are moved in chunks of so many bytes.
inline constexpr uint64_t kMoveChunkBytes = 128 << 10;

}  // namespace ferry::shm
