// The streams of ranks that wait for each other for ever.
//
// A stream carries out what was enqueued in its order. It cannot get past the first wait whose
// message is not complete; that message needs the start of the other end; and if that start stands
// behind such a wait in the other rank's queue, only the end of that one can bring it. Such facts
// do not change by themselves, whatever kernels run meanwhile: a circle of them never ends. Of a
// halo exchange that goes on, the starts stand before the waits.
//
// Only queues count that their ranks wait for (ferry_queue_wait). Of two ends on one node the order
// is known here. Between nodes each daemon knows its own end's: that the other one holds back all
// that it could send, and that nothing is under way, is for the second look to tell (WaitGraph).
//
// Thread: the control thread. Reads are bounded; see rank_view.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/admin/why_steps.h"

namespace ferry::daemon {

// The first wait of the queue that the rank waits for whose message is not complete. Its stream is
// there, or is still before it.
struct StreamWait {
  uint32_t peer = 0;
  int32_t tag = 0;
  bool is_send = false;
  // The start of the other end stands behind such a wait of the peer's queue.
  bool is_peer_held = false;
  // The other end is on another node, so that this daemon cannot tell.
  bool is_remote = false;
};

// Nothing: the rank waits for no queue, or for nothing in it that it has noted down.
std::optional<StreamWait> FindStreamWait(uint32_t rank, WhySteps* steps);

// The messages and starts of a rank here for one that waits for it, by their matched pairs.
struct PairsTo {
  uint64_t sent = 0;  // messages that it has sent, of all pairs
  // Some start has been made, or enqueued, that nothing is known to hold back. Of a pair inside the
  // node it is known only from its queue's steps.
  bool may_send = false;
  bool is_held = false;  // each pair's next start stands behind a wait that is not over
};
PairsTo FindPairsTo(uint32_t rank, uint32_t waiter, WhySteps* steps);
// How many messages of that peer have come by matched pairs.
uint64_t PairsReceived(uint32_t rank, uint32_t peer, const WhySteps& steps);

// "to receive from rank 1, tag 3".
std::string StreamWaitText(const StreamWait& wait);

}  // namespace ferry::daemon
