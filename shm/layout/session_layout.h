// A rank's session segment, which only the rank and its daemon map.
//
// SessionLayout, then RequestLayout[request_limit], then the arrays with an entry for each rank of
// the job, then MatchTableLayout with its entries; SessionPlaces says where. Everything a restarted
// daemon could not learn again lies here.
#pragma once

#include <cstdint>

#include "shm/layout/call_layout.h"
#include "shm/layout/device_ring_layout.h"
#include "shm/layout/journal_layout.h"
#include "shm/layout/lane_layout.h"
#include "shm/layout/layout_check.h"
#include "shm/layout/lease_layout.h"
#include "shm/layout/match_layout.h"
#include "shm/layout/one_sided_layout.h"
#include "shm/layout/request_layout.h"
#include "shm/layout/rtr_layout.h"
#include "shm/layout/segment_header.h"
#include "shm/layout/wake_layout.h"

namespace ferry::shm {

// How far a rank knows of a cut link. A cut link loses messages silently: they were complete for
// their senders. So each rank gets an error.
enum class CutState : uint32_t {
  kNone = 0,
  kTold = 1,  // an operation has failed because of it
  kTell = 2,  // the next operation with this peer will fail
};

// The path of a direction, that is of the messages from one rank to another of another node: by the
// daemons, or by the direct link of the two. While the path is switched, messages wait; such states
// have odd numbers.
enum class PeerPath : uint32_t {
  kDaemon = 0,
  kToLink = 1,  // the marker has left by the daemons; its answer has not come
  kLink = 2,
  kToDaemon = 3,  // the marker has left by the link
  kBroken = 5,    // the direct link is lost; the daemon has yet to part the two
};

// Per peer of the job: sends that wait, and the credits of messages to and from other nodes. The
// counts begin anew, at 0, when the two were cut off from each other.
struct PeerWords {
  uint32_t queue_first;  // chain of RequestLayout in state kQueued (0 = empty)
  uint32_t queue_last;
  uint32_t sent;      // remote messages sent to this peer (wraps)
  uint32_t credited;  // of those, given back by kCredit (wraps)
  uint32_t drained;   // remote messages drained from this peer (wraps)
  uint32_t returned;  // of those, given back by kCredit sent by us (wraps)
  uint32_t dead;      // ErrorCode: the peer is gone, or cut off (written by the daemon; see kLeft)
  uint32_t cut;       // CutState: whether this rank knows that the link to the peer was cut
  // Direct links (docs/protocol.md).
  uint32_t path;         // PeerPath of messages to this peer
  uint32_t path_epoch;   // the number of the last marker sent to it (wraps; never begins anew)
  uint32_t inward_path;  // PeerPath of messages from it, as its markers say: kDaemon or kLink
  uint32_t marker_owed;  // not 0: the number of a marker of it that has no answer yet
  // Data pushed behind RTSs, in bytes (all wrap).
  uint32_t pushed;           // to this peer
  uint32_t pushed_credited;  // of those, given back by kCredit
  uint32_t pushed_taken;     // from this peer, and matched
  uint32_t pushed_returned;  // of those, given back by kCredit sent by us
};
FERRY_ASSERT_LAYOUT(PeerWords, 64);
FERRY_ASSERT_OFFSET(PeerWords, queue_first, 0);
FERRY_ASSERT_OFFSET(PeerWords, sent, 8);
FERRY_ASSERT_OFFSET(PeerWords, drained, 16);
FERRY_ASSERT_OFFSET(PeerWords, dead, 24);
FERRY_ASSERT_OFFSET(PeerWords, cut, 28);
FERRY_ASSERT_OFFSET(PeerWords, path, 32);
FERRY_ASSERT_OFFSET(PeerWords, path_epoch, 36);
FERRY_ASSERT_OFFSET(PeerWords, inward_path, 40);
FERRY_ASSERT_OFFSET(PeerWords, marker_owed, 44);
FERRY_ASSERT_OFFSET(PeerWords, pushed, 48);
FERRY_ASSERT_OFFSET(PeerWords, pushed_credited, 52);
FERRY_ASSERT_OFFSET(PeerWords, pushed_taken, 56);
FERRY_ASSERT_OFFSET(PeerWords, pushed_returned, 60);

// The state of a rank's direct link to a peer, as the rank knows it.
enum class LinkState : uint32_t {
  kNone = 0,
  kToAsk = 1,    // the rank is to ask the daemon for one, once there is room
  kAsked = 2,    // it was
  kRefused = 3,  // the daemon refused: more traffic is needed to ask again
  kOpen = 4,     // the direction uses it, or is to
  kToTell = 5,   // it is lost: the rank is to tell the daemon, once there is room
  kTold = 6,     // it was
};

// Per peer of the job: its direct link, and the traffic by the daemons since a link was considered
// last. A kill may lose a count.
struct LinkWords {
  uint64_t bytes;
  uint32_t messages;
  uint32_t state;  // LinkState
};
FERRY_ASSERT_LAYOUT(LinkWords, 16);
FERRY_ASSERT_OFFSET(LinkWords, bytes, 0);
FERRY_ASSERT_OFFSET(LinkWords, messages, 8);
FERRY_ASSERT_OFFSET(LinkWords, state, 12);

// Counters of one rank (ids and labels: shm/counters.h). Written by the lease holder and the rank.
inline constexpr uint32_t kCounterWords = 48;

// A fault that a reader of the session found: no correct program leaves it there (shm/fault.h).
enum class FaultKind : uint32_t {
  kNone = 0,
  kMatchTable = 1,    // value: its capacity
  kMatchIndex = 2,    // where: an entry that is named; value: how many there are
  kMatchCycle = 3,    // where: an entry of the cycle
  kMatchState = 4,    // where: an entry; value: its state
  kMatchRequest = 5,  // where: an entry; value: the request that it names
  kRequestChain = 6,  // where: the request that a chain leads to
  kRequestPeer = 7,   // where: a request; value: its peer
  kJournal = 8,       // a dead holder's list leads out of the segments
  kStore = 9,         // a transaction would have
  kDaemonLane = 10,   // value: the kind of a descriptor
  kLinkLane = 11,     // value: the kind of a descriptor
};

struct FaultLayout {
  uint32_t kind;  // FaultKind; stored last, once
  uint32_t where;
  uint64_t value;
};
FERRY_ASSERT_LAYOUT(FaultLayout, 16);
FERRY_ASSERT_OFFSET(FaultLayout, kind, 0);
FERRY_ASSERT_OFFSET(FaultLayout, where, 4);
FERRY_ASSERT_OFFSET(FaultLayout, value, 8);

struct alignas(4096) SessionLayout {
  SegmentHeader header;
  LeaseLayout lease;
  JournalLayout journal;
  // Doorbell to the daemon: `daemon_wake.sleepers` != 0 means it sleeps in epoll and wants the
  // session's eventfd; bits of `daemon_wake.activity` name local lanes (ranks) that need the
  // worker; `daemon_wake.poison` tells it that a fault was found in this session.
  WakeLayout daemon_wake;
  alignas(128) uint64_t counters[kCounterWords];
  alignas(128) uint32_t request_fresh;  // slots [request_fresh, request_limit) were never used
  uint32_t queued_sends;                // requests in state kQueued, over all peers
  uint32_t control_first;  // chain of matched remote receives that wait for space in to_daemon
  uint32_t control_last;
  uint32_t credits_owed;  // peers with half a window or more drained and not yet returned
  // The push that a lease holder is about: `push_request`'s descriptor as number `push_number` of
  // the lane to its peer (0 = none). A successor learns from it if the push happened.
  uint32_t push_request;
  uint64_t push_number;
  FaultLayout fault;
  uint32_t deaths_applied;  // the last death_epoch (wake_layout.h) that this rank has acted on
  uint32_t withdrawals;     // not 0: some request is in RtrState::kToWithdraw
  // Grows after each change of PairLayout::armed of this rank's pairs (any of its threads).
  uint64_t pairs_armed;
  uint64_t rings_changed;  // grows after each change of `rings` by this rank (any of its threads)
  // The chain of control_first, for `to_link`.
  uint32_t link_control_first;
  uint32_t link_control_last;
  uint32_t link_duties;   // not 0: a marker, or words for the daemon, wait for room
  uint32_t linked_peers;  // peers with a path that is not kDaemon, to or from them
  // After so much traffic by the daemons the rank asks for a direct link. Written by the rank when
  // it has attached. 0: never.
  uint64_t link_after_bytes;
  uint32_t link_after_messages;
  // The number of the last question about the daemon's life (attach::Kind::kLifeQuestion) that its
  // control thread has read, and of the last one that its progress thread has answered, too.
  uint32_t life_read;
  uint32_t life_answered;
  uint32_t reserved0;
  uint64_t reserved[2];
  LaneLayout to_daemon;  // producer: the lease holder; consumer: the daemon's progress thread
  // Producer: the lease holder, if it is a thread of the rank; consumer: the rank's own core, which
  // serves its direct links.
  LaneLayout to_link;
  WakeLayout link_wake;  // of the link thread, as daemon_wake is of the daemon
  alignas(4096) RingWords rings[kMaxRings];
  AnswerLayout answers[kAnswers];
  alignas(128) OneSidedFailures failures[kOneSidedCores];
  alignas(4096) uint8_t answer_cells[kAnswers][kCellBytes];  // the bytes of gets
  alignas(4096) CallBoardLayout calls;                       // written by any thread of the rank
};
FERRY_ASSERT_LAYOUT(SessionLayout, 1691648);
FERRY_ASSERT_OFFSET(SessionLayout, lease, 128);
FERRY_ASSERT_OFFSET(SessionLayout, journal, 256);
FERRY_ASSERT_OFFSET(SessionLayout, daemon_wake, 1280);
FERRY_ASSERT_OFFSET(SessionLayout, counters, 1664);
FERRY_ASSERT_OFFSET(SessionLayout, request_fresh, 2048);
FERRY_ASSERT_OFFSET(SessionLayout, credits_owed, 2064);
FERRY_ASSERT_OFFSET(SessionLayout, push_request, 2068);
FERRY_ASSERT_OFFSET(SessionLayout, push_number, 2072);
FERRY_ASSERT_OFFSET(SessionLayout, fault, 2080);
FERRY_ASSERT_OFFSET(SessionLayout, deaths_applied, 2096);
FERRY_ASSERT_OFFSET(SessionLayout, withdrawals, 2100);
FERRY_ASSERT_OFFSET(SessionLayout, pairs_armed, 2104);
FERRY_ASSERT_OFFSET(SessionLayout, rings_changed, 2112);
FERRY_ASSERT_OFFSET(SessionLayout, link_control_first, 2120);
FERRY_ASSERT_OFFSET(SessionLayout, link_duties, 2128);
FERRY_ASSERT_OFFSET(SessionLayout, linked_peers, 2132);
FERRY_ASSERT_OFFSET(SessionLayout, link_after_bytes, 2136);
FERRY_ASSERT_OFFSET(SessionLayout, link_after_messages, 2144);
FERRY_ASSERT_OFFSET(SessionLayout, life_read, 2148);
FERRY_ASSERT_OFFSET(SessionLayout, life_answered, 2152);
FERRY_ASSERT_OFFSET(SessionLayout, to_daemon, 4096);
FERRY_ASSERT_OFFSET(SessionLayout, to_link, 548864);
FERRY_ASSERT_OFFSET(SessionLayout, link_wake, 1093632);
FERRY_ASSERT_OFFSET(SessionLayout, rings, 1097728);
FERRY_ASSERT_OFFSET(SessionLayout, answers, 1101824);
FERRY_ASSERT_OFFSET(SessionLayout, failures, 1102848);
FERRY_ASSERT_OFFSET(SessionLayout, answer_cells, 1155072);
FERRY_ASSERT_OFFSET(SessionLayout, calls, 1679360);

inline constexpr uint64_t RoundUpToPage(uint64_t size_bytes) {
  return (size_bytes + 4095) & ~uint64_t{4095};
}

inline constexpr uint64_t SessionRequestsOffset() { return sizeof(SessionLayout); }

// Where the parts behind the requests begin.
struct SessionPlaces {
  uint64_t peers;      // PeerWords[job_size]
  uint64_t rtrs;       // RtrBook[job_size]
  uint64_t links;      // LinkWords[job_size]
  uint64_t busy;       // a bit for each rank: see SessionByRank
  uint64_t one_sided;  // OneSidedWords[job_size]
  uint64_t gone;       // a bit for each rank: likewise
  uint64_t match;      // MatchTableLayout, MatchEntry[capacity]
};

// How many words of 64 bits a bit for each of `count` takes.
inline constexpr uint64_t BitWords(uint32_t count) { return (uint64_t{count} + 63) / 64; }

// Cannot overflow. The rank's arrays share no cache line with those of its daemon, `one_sided` and
// `gone`.
inline constexpr SessionPlaces PlacesOfSession(uint32_t job_size, uint32_t request_limit) {
  constexpr uint64_t kLine = 128;
  const auto next_line = [](uint64_t offset) { return (offset + kLine - 1) & ~(kLine - 1); };
  SessionPlaces at{};
  at.peers = next_line(SessionRequestsOffset() + uint64_t{request_limit} * sizeof(RequestLayout));
  at.rtrs = at.peers + uint64_t{job_size} * sizeof(PeerWords);
  at.links = at.rtrs + uint64_t{job_size} * sizeof(RtrBook);
  at.busy = at.links + uint64_t{job_size} * sizeof(LinkWords);
  at.one_sided = next_line(at.busy + BitWords(job_size) * sizeof(uint64_t));
  at.gone = at.one_sided + uint64_t{job_size} * sizeof(OneSidedWords);
  at.match = RoundUpToPage(at.gone + BitWords(job_size) * sizeof(uint64_t));
  return at;
}

inline constexpr uint64_t SessionSizeBytes(uint32_t job_size, uint32_t request_limit,
                                           uint32_t match_capacity) {
  return RoundUpToPage(PlacesOfSession(job_size, request_limit).match + sizeof(MatchTableLayout) +
                       uint64_t{match_capacity} * sizeof(MatchEntry));
}

}  // namespace ferry::shm
