// The words that a rank keeps for each peer on another node, so that messages can be written
// straight into waiting receives (receiver-first rendezvous; the rules are in
// engine/rendezvous/rtr.h).
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"

namespace ferry::shm {

// An RTR: a receive into which its rank lets the source of the message write.
struct Rtr {
  uint32_t context;
  int32_t tag;
  uint32_t receive;  // the receiver's request, and its generation
  uint32_t generation;
  uint64_t seen;  // messages of the peer that the receiver had taken in order before
};
FERRY_ASSERT_LAYOUT(Rtr, 24);
FERRY_ASSERT_OFFSET(Rtr, context, 0);
FERRY_ASSERT_OFFSET(Rtr, tag, 4);
FERRY_ASSERT_OFFSET(Rtr, receive, 8);
FERRY_ASSERT_OFFSET(Rtr, generation, 12);
FERRY_ASSERT_OFFSET(Rtr, seen, 16);

inline constexpr uint32_t kHeldRtrs = 4;
inline constexpr uint32_t kEnvelopeHistory = 8;

// The envelope of a message that was sent.
struct SentEnvelope {
  uint32_t context;
  int32_t tag;
};
FERRY_ASSERT_LAYOUT(SentEnvelope, 8);

// The words for one peer: the RTRs that came from it, and the messages that either has sent to
// the other. Counts begin anew with each life of the link.
struct alignas(64) RtrBook {
  uint64_t sent;                           // messages to the peer
  uint64_t taken;                          // messages of the peer, in order
  SentEnvelope history[kEnvelopeHistory];  // of message n at n % kEnvelopeHistory
  Rtr rtrs[kHeldRtrs];                     // the first `held`, oldest first
  uint32_t held;
  uint32_t cuts;          // times the link was cut (written by the daemon, before PeerWords::dead)
  uint32_t cuts_applied;  // the last of them for which the counts have begun anew
  uint32_t reserved0;
};
FERRY_ASSERT_LAYOUT(RtrBook, 192);
FERRY_ASSERT_OFFSET(RtrBook, sent, 0);
FERRY_ASSERT_OFFSET(RtrBook, taken, 8);
FERRY_ASSERT_OFFSET(RtrBook, history, 16);
FERRY_ASSERT_OFFSET(RtrBook, rtrs, 80);
FERRY_ASSERT_OFFSET(RtrBook, held, 176);
FERRY_ASSERT_OFFSET(RtrBook, cuts, 180);
FERRY_ASSERT_OFFSET(RtrBook, cuts_applied, 184);

// RequestLayout::rtr: of a receive; or, without kOut, of a send that is being cancelled.
enum class RtrState : uint32_t {
  kQuiet = 0,        // not announced by an RTR, or matched since
  kOut = 1,          // its source may write into it
  kToWithdraw = 2,   // the rank is to ask the daemon for the RTR, or the RTS, back
  kWithdrawing = 3,  // the daemon was asked
};

}  // namespace ferry::shm
