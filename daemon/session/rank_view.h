// Shows people what a rank of this node is doing, read out of its shared memory and /proc.
//
// Thread: any; the session must be kept alive by the caller. Does not block. Each word is read
// once, relaxed, and bounded by what was checked at attach; related words may be from slightly
// different times. A rank can make its own lines wrong, nothing else.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/error_code.h"
#include "daemon/session/session.h"
#include "shm/call_record.h"
#include "shm/layout/request_layout.h"
#include "shm/layout/transfer_layout.h"

namespace ferry::daemon {

// The state of a rank's process, derived from the state letter of common/process_stat.h.
enum class ProcessState { kEnded, kRuns, kSleeps, kUninterruptible, kStopped, kTraced };
// Returns kEnded for a zombie, and when there is no such process; kRuns where /proc cannot be read.
ProcessState ReadProcessState(pid_t pid);
// Returns true if a thread of the process runs now, of the first 256.
bool HasRunningThread(pid_t pid);

struct RequestView {
  uint32_t index = 0;
  uint32_t generation = 0;
  shm::RequestState state = shm::RequestState::kFree;
  bool send = false;
  uint32_t context = 0;
  int32_t peer = 0;
  int32_t tag = 0;
  uint64_t size_bytes = 0;
  uint64_t start_ns = 0;
  uint32_t awaited = 0;  // of a match: 1 + the rank that has still to make a request; 0: not known
  uint32_t transfer_rank = 0;
  uint32_t transfer_index = 0;
  uint32_t transfer_generation = 0;
  bool lost = false;    // with the direct link; why, the daemons have still to say
  bool served = false;  // by a thread of the peer's: its program need not act
};

// A message that has arrived before a receive for it was posted.
struct UnexpectedView {
  uint32_t source = 0;
  int32_t tag = 0;
  uint32_t context = 0;
  uint64_t size_bytes = 0;
  bool announced = false;  // its data is still with the sender
  uint32_t count = 1;      // with the same envelope
};

struct RankView {
  ProcessState process = ProcessState::kEnded;
  bool inside = false;  // a thread is inside a blocking call
  bool asleep = false;  // and sleeps there
  ErrorCode poison = ErrorCode::kOk;
  std::vector<RequestView>
      requests;             // unfinished ones, the oldest first; at most kMaxRequestsShown
  uint32_t unfinished = 0;  // all of them
  std::vector<UnexpectedView> unexpected;  // grouped; at most kMaxUnexpectedShown groups
  shm::CallsView calls;                    // that its threads are in, as far as they show them
  uint64_t fingerprint = 0;                // changes whenever a message of the rank moves
  uint64_t mark = 0;  // likewise, but not for the protocol of direct links and changes of the lease
};

inline constexpr uint32_t kMaxRequestsShown = 1000;
inline constexpr uint32_t kMaxUnexpectedShown = 32;
inline constexpr uint32_t kMaxUnexpectedRead = 65536;  // entries of the match table

// Returns true if a request in this state waits for something.
bool IsUnfinished(shm::RequestState state);
// Returns only the number of unfinished requests. Receives posted by a thread that serves other
// ranks do not count, here and in ReadRank, until a message comes for them.
uint32_t CountUnfinished(const Session& session);
RankView ReadRank(const Session& session);

struct QueueView {
  uint32_t posted = 0;
  uint32_t unexpected = 0;
  uint32_t queued_sends = 0;
};
QueueView ReadQueues(const Session& session);

// ---- Places that requests wait at; all of sessions with segments ----

// Returns how many descriptors `sender_lane` of the inbox holds; kLaneSlots: it is full; 0: it is
// not open.
uint64_t LaneBacklog(const Session& receiver, uint32_t sender_lane);
uint64_t CommandBacklog(const Session& sender);
// Returns how many messages to `peer`, on another node, the peer has not drained yet.
uint32_t CreditsOut(const Session& sender, uint32_t peer);
uint64_t CreditsOut(const Session& sender);  // to all

// The paths of the messages between a rank here and one of another node (docs/direct_links.md).
struct PathView {
  shm::PeerPath out = shm::PeerPath::kDaemon;  // to the peer
  shm::PeerPath in = shm::PeerPath::kDaemon;   // from it: kDaemon or kLink
  uint64_t daemon_messages = 0;  // to it by the daemons, since the rank thought of a link last
  uint64_t daemon_bytes = 0;
};
PathView ReadPath(const Session& session, uint32_t peer);
// The peers to which messages went by the daemons since the rank thought of a link last, in order.
std::vector<uint32_t> PeersByDaemons(const Session& session);
// Returns a number that changes with every message to the peer, and from it, on whichever path.
uint64_t ReadTraffic(const Session& session, uint32_t peer);
// The messages between a rank here and one of another node, ever (both wrap). Messages that one
// rank has sent and the other has not drained are under way, on whichever path.
struct PeerCounts {
  uint32_t sent = 0;
  uint32_t drained = 0;
};
PeerCounts ReadPeerCounts(const Session& session, uint32_t peer);
// Returns true if a message is under way between the two ranks by their direct link: announced, or
// being moved.
bool HasLinkTransfers(const Session& session, uint32_t peer);

struct TransferView {
  shm::TransferState state = shm::TransferState::kIdle;
  uint32_t generation = 0;
  uint64_t size_bytes = 0;
  uint32_t chunks_done = 0;
  uint32_t chunks_claimed = 0;
  uint32_t chunks = 0;  // in all
  ErrorCode error = ErrorCode::kOk;
};
// Reads a transfer slot; checks `index`, and returns kIdle for one out of range.
TransferView ReadTransfer(const Session& owner, uint32_t index);

}  // namespace ferry::daemon
