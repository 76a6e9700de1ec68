// The streams of ranks that wait for each other for ever.
//
// A stream carries out what was enqueued in its order. It cannot get past the first wait whose
// message is not complete; that message needs the start of the other end; and if that start stands
// behind such a wait in the other rank's queue, only the end of that one can bring it. Such facts
// do not change by themselves, whatever kernels run meanwhile: a circle of them never ends. Of a
// halo exchange that goes on, the starts stand before the waits.
//
// Only ends of one node are compared, and queues that their ranks wait for (ferry_queue_wait).
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
};

// Nothing: the rank waits for no queue, or for nothing in it that it has noted down.
std::optional<StreamWait> FindStreamWait(uint32_t rank, WhySteps* steps);

// "to receive from rank 1, tag 3".
std::string StreamWaitText(const StreamWait& wait);

}  // namespace ferry::daemon
