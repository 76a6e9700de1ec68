// One slot per request (isend, irecv, persistent or not) of a rank, in its session segment.
//
// Requests live in shared memory so that the daemon's progress worker can match for a rank that
// computes. The slot's index also names the TransferLayout of the same message in the rank's inbox.
#pragma once

#include <cstdint>

#include "shm/layout/descriptor.h"
#include "shm/layout/layout_check.h"

namespace ferry::shm {

enum class RequestState : uint32_t {
  kFree = 0,
  kInactive = 1,      // a persistent request between starts
  kQueued = 2,        // send: waits for lane space or credit in the rank's own queue
  kPosted = 3,        // receive: in the match table
  kLanded = 4,        // receive: an eager message was matched; a rank's thread still has to copy it
  kTransferring = 5,  // a TransferLayout says how far it is
  kRemoteWait = 6,    // the daemon finishes it with kRndvGetDone or kSendDone
  kComplete = 7,      // `error` and the status words are valid
  kMatched = 8,       // its pair (pair_layout.h) shows how far it is; kMatch: its pairs
};

enum class RequestKind : uint32_t { kNone = 0, kSend = 1, kReceive = 2, kMatch = 3 };

inline constexpr uint32_t kRequestPersistent = 1;    // RequestLayout::flags
inline constexpr uint32_t kRequestBounceBuffer = 2;  // `buffer` is a heap block of Ferry's own
inline constexpr uint32_t kRequestSynchronous = 4;   // send: complete only once it is matched
inline constexpr uint32_t kRequestReady = 8;         // send: its receive is there
inline constexpr uint32_t kRequestPaired = 16;       // it has a matched pair
inline constexpr uint32_t kRequestByLink = 32;       // send: it was announced by the direct link
// For `ferryctl why`, on receives. kRequestServes: the receive takes requests of other ranks for a
// thread that serves them, so no rank is stuck in it. kRequestServed: the receive is for an answer
// of such a thread, which comes whatever the other rank's program does.
inline constexpr uint32_t kRequestServes = 64;
inline constexpr uint32_t kRequestServed = 128;

// RequestLayout::link_end: of a request in state kRemoteWait whose data goes by a direct link that
// was lost. The request ends once its core uses it no more, and the daemon has reported if the peer
// is dead.
enum class LinkEnd : uint32_t {
  kNone = 0,
  kHeld = 1,    // the core has; PeerWords::dead, by the daemon, shows if the peer is dead
  kParted = 2,  // the daemon has: the two have begun anew
};

struct alignas(64) RequestLayout {
  uint32_t state;       // RequestState; stored last, with release, by the one that changes the slot
  uint32_t generation;  // bumped at each use and each start: stale answers are told apart
  uint32_t kind;        // RequestKind
  uint32_t flags;
  // The request.
  uint32_t context;
  int32_t peer;   // destination, or source (kAnySource)
  int32_t tag;    // kAnyTag for receives
  uint32_t next;  // chain: free list, or a destination's queue of waiting sends (0 = end)
  Location buffer;
  uint64_t size_bytes;  // to send, or capacity
  // The result.
  int32_t error;  // ErrorCode
  int32_t status_source;
  int32_t status_tag;
  uint32_t match_entry;    // kPosted: index in the match table
  uint64_t message_bytes;  // size of the matched message (may exceed the capacity: truncated)
  // The lane that the matched message came by. kLanded: where the eager data lies. kTransferring:
  // whose inbox holds the transfer, which slot.
  uint32_t lane;
  uint16_t cell;
  uint8_t descriptor_kind;
  uint8_t descriptor_flags;
  uint32_t transfer_rank;
  uint32_t transfer_index;
  uint32_t transfer_generation;
  uint32_t serial;  // names the slot to the application; persistent requests keep it over starts
  uint8_t payload[kInlineBytes];
  uint64_t user_address;  // address the application passed (private, for the rank alone)
  uint64_t start_ns;      // CLOCK_MONOTONIC, coarse, when it was started: for `ferryctl why`
  uint32_t rtr;           // RtrState (rtr_layout.h)
  uint32_t link_end;      // LinkEnd
  uint64_t reserved[3];
};
FERRY_ASSERT_LAYOUT(RequestLayout, 192);
FERRY_ASSERT_OFFSET(RequestLayout, state, 0);
FERRY_ASSERT_OFFSET(RequestLayout, generation, 4);
FERRY_ASSERT_OFFSET(RequestLayout, context, 16);
FERRY_ASSERT_OFFSET(RequestLayout, next, 28);
FERRY_ASSERT_OFFSET(RequestLayout, buffer, 32);
FERRY_ASSERT_OFFSET(RequestLayout, size_bytes, 48);
FERRY_ASSERT_OFFSET(RequestLayout, error, 56);
FERRY_ASSERT_OFFSET(RequestLayout, match_entry, 68);
FERRY_ASSERT_OFFSET(RequestLayout, message_bytes, 72);
FERRY_ASSERT_OFFSET(RequestLayout, lane, 80);
FERRY_ASSERT_OFFSET(RequestLayout, transfer_rank, 88);
FERRY_ASSERT_OFFSET(RequestLayout, serial, 100);
FERRY_ASSERT_OFFSET(RequestLayout, payload, 104);
FERRY_ASSERT_OFFSET(RequestLayout, user_address, 136);
FERRY_ASSERT_OFFSET(RequestLayout, start_ns, 144);
FERRY_ASSERT_OFFSET(RequestLayout, rtr, 152);
FERRY_ASSERT_OFFSET(RequestLayout, link_end, 156);

}  // namespace ferry::shm
