// The progress thread's own data: jobs, the ranks served here, and the ways to other nodes. Ranks
// and remote daemons can write to none of it; the core checks their descriptors and packets against
// it.
//
// Calling thread: the progress thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/zeroed_array.h"
#include "internode/delivery/attention.h"
#include "internode/delivery/delivery.h"
#include "internode/delivery/job_plan.h"
#include "internode/delivery/node_use.h"
#include "internode/delivery/one_sided_state.h"
#include "internode/delivery/reports.h"
#include "internode/registration/registrations.h"
#include "internode/session/served_segments.h"
#include "internode/staging/copier.h"
#include "internode/trace/tracer.h"
#include "internode/wire/wire.h"
#include "shm/lane.h"
#include "shm/layout/rtr_layout.h"
#include "shm/wake.h"
#include "transports/api/transport.h"

namespace ferry::progress {

// The way to one other daemon, in one life of it. It outlives the jobs that used it: the packets
// that it accepted last still have to arrive.
struct Link {
  uint64_t number = 0;  // NodeRoute::link
  uint64_t life = 0;    // NodeRoute::life
  transport::PeerId peer{};
  std::vector<std::byte> fabric_address;
  ErrorCode failure = ErrorCode::kOk;  // why nothing is sent to it any more
  bool broken = false;                 // the transport lost a message: held until it is judged
  bool reported = false;               // as broken
  std::string trouble;                 // why, if the transport has nothing to do with it
  uint32_t routes = 0;                 // of jobs
  uint32_t outstanding = 0;            // messages that the transport has not completed
  std::vector<std::byte> frame;        // packets taken in this turn, or without a slot so far
  size_t last_packet = 0;              // where in the frame the last one begins, unless it is empty
  struct Waiting {
    PacketHeader header;
    std::vector<std::byte> body;
    uint64_t bytes() const { return kAnswerBytes + body.size(); }
  };
  std::deque<Waiting> waiting;  // packets of ours that found no room in the frame
  uint64_t waiting_bytes = 0;   // of these
};

// A job's use of a link.
struct Route {
  Link* link = nullptr;  // null: not known yet, or this node
  uint64_t send_key = 0;
  uint64_t receive_key = 0;
  bool was_cut = false;
  // The link takes packets again after a cut, but it is not known yet if the node does
  // (NodeReturned).
  bool is_returning = false;
  bool is_opening = false;  // so is its first life, of NodeRoute::awaits_answer
  bool is_wanted = false;   // the home was asked for a way (CoreHooks::on_way_wanted)
  NodeTraffic traffic = {};

  bool IsOpen() const { return link != nullptr && !is_opening; }
};

// A region of a rank. Its parts are registered with the NIC when transfers need them; of a region
// that is staged by streams, none is.
struct ServedRegion {
  ClaimableRegion memory;
  uint32_t users = 0;      // rendezvous gets into it, staged sends and puts from it
  uint32_t announced = 0;  // RTSs of parts of it that the receivers have not answered
  uint64_t window = 0;     // by which peers write into it (rndv_rtr.h); 0: none
  bool closing = false;    // no new users
};

// A buffer that was announced to a remote rank, by send request. Copied here when the RTS passed:
// the rank cannot change it afterwards.
struct SentRts {
  enum class State { kNone, kHeap, kPrivate, kDevice };
  State state = State::kNone;
  uint32_t generation = 0;
  uint32_t destination = 0;
  ServedRegion* region = nullptr;    // kHeap, kDevice
  Claim claim;                       // kHeap: on its memory,
  PinnedMemory reached;              // or that itself, which is in no region
  uint64_t address = 0;              // kPrivate; kDevice: in the region
  ErrorCode error = ErrorCode::kOk;  // kNone: why it cannot be fetched
  uint64_t size_bytes = 0;
  uint64_t carried_bytes = 0;  // sent with it
  bool retracted = false;      // the receiver's daemon was asked for it back
  uint64_t begun_ns = 0;
  uint32_t lent = 0;  // not 0: its number, which ServedRank::TakeRts gave
  CountedUse use;     // of NodeUse::rts_lent

  // Returns true if its memory belongs to no region, and peers reach it all the same.
  bool is_reached() const { return region == nullptr && (reached.is_pinned() || claim.held()); }
};

struct Job;

// A receive of a rank here that its source on another node may write into, or does (rndv_rtr.h).
struct RtrReceive {
  enum class State : uint8_t {
    kNone,
    kOut,      // the source may begin to
    kWritten,  // the source has announced that it does
  };
  State state = State::kNone;
  bool withdrawing = false;  // kOut: the other daemon was asked for it
  bool rank_waits = false;   // kOut: the rank wants that, and waits for the answer
  bool lost = false;         // the source will report no end any more: the window has to close
  uint32_t generation = 0;
  uint32_t source = 0;  // rank
  uint64_t window = 0;  // 0: its region is gone
  uint64_t size_bytes = 0;
  ErrorCode error = ErrorCode::kOk;  // lost
  uint64_t begun_ns = 0;             // kOut: asked for; kWritten: announced
};

// Memory that a rank of another node lets one of this node write into. This note is the daemon's
// own, so that the rank here can neither choose nor change the memory into which the NIC writes.
struct RtrNote {
  uint32_t receive = 0;  // 0: none
  uint32_t generation = 0;
  uint32_t context = 0;
  int32_t tag = 0;
  uint64_t size_bytes = 0;
  uint64_t key = 0;
  uint64_t address = 0;
};

// The notes of one peer; a new one takes the place of the oldest, whose message is then announced.
struct RtrNotes {
  std::array<RtrNote, size_t{2} * shm::kHeldRtrs> notes;
  uint32_t next = 0;
};

// The operations of a rank here on memory of ranks elsewhere (one_sided_state.h).
struct OneSidedState {
  ZeroedArray<OneSidedCounts> counts;  // by peer; empty: it has never had one
  std::vector<AwaitedAnswer> awaited;  // at most shm::kAnswers
  // RTSs of long operations: first those of the rank's own long puts, by answer, then those of
  // its rings, and those that answer long gets of ranks elsewhere. Their numbers are
  // kFirstOneSidedRts and above.
  std::vector<SentRts> sent_rts;
  std::vector<uint32_t> free_rts_numbers;       // unused numbers of the latter
  uint32_t lent_generation = 0;                 // of the last of these
  uint32_t rndv_gets = 0;                       // that serve no request of the rank
  uint64_t failures = 0;                        // told: Seat::failures
  std::map<uint32_t, RingStream> ring_streams;  // by peer
  std::vector<RingTransfer> ring_transfers;
  uint32_t ring_gets = 0;  // long ones so far
};

// A rank of this node.
struct ServedRank {
  ServedRank(std::shared_ptr<const ServedSegments> its_session, const Seat& its_seat, Job* its_job,
             uint64_t max_waiting, uint64_t max_held_bytes, std::shared_ptr<HoldBudget> hold_budget)
      : session(std::move(its_session)),
        by_rank(session->by_rank()),
        seat(its_seat),
        job(its_job),
        commands(seat.commands),
        core_wake(seat.wake),
        // Two answers for each request (one may be late), and of all peers credits, which are more
        // than it takes for their leave.
        delivery(session->inbox(), seat.lane, max_waiting,
                 2 * uint64_t{session->request_limit} + max_waiting, max_held_bytes,
                 std::move(hold_budget)) {}

  const std::shared_ptr<const ServedSegments> session;
  const shm::SessionByRank by_rank;  // of the session
  const Seat seat;
  Job* const job;
  uint32_t rank() const { return session->rank; }
  bool is_by_daemon() const { return seat.lane == shm::DaemonLane(session->local_size); }

  // The region of [where, where + bytes). Null: there is no such memory, or it is about to go.
  ServedRegion* FindRegion(const shm::Location& where, uint64_t bytes);
  // The RTS of that number (of a request, or kFirstOneSidedRts and above), null: there was none.
  SentRts* FindRts(uint32_t number);
  SentRts& RtsAt(uint32_t number);  // a new one, if need be
  // A number for an RTS that no answer of the rank's stands for. It goes back with the RTS's
  // end, or if there is to be none.
  uint32_t TakeRts();
  void GiveRts(uint32_t number) { one_sided.free_rts_numbers.push_back(number); }
  template <typename Visitor>
  void ForEachRts(Visitor&& visit) {
    std::for_each(sent_rts.begin(), sent_rts.end(), visit);
    std::for_each(one_sided.sent_rts.begin(), one_sided.sent_rts.end(), visit);
  }
  // Has the progress worker match for the rank, if there is one.
  void Attend() {
    if (attention != nullptr) {
      attention->Raise();
    }
  }
  // Tells the rank how the operation with `peer` that its request began has ended. `flags`:
  // Descriptor::flags.
  void Answer(shm::DescriptorKind kind, uint32_t peer, uint32_t request, uint32_t generation,
              ErrorCode error, uint8_t flags = 0);

  shm::LaneConsumer commands;
  shm::Wake core_wake;  // of this core
  Delivery delivery;
  std::map<uint32_t, ServedRegion> regions;
  std::vector<SentRts> sent_rts;         // by request
  std::vector<RtrReceive> rtr_receives;  // by request
  std::map<uint32_t, RtrNotes> notes;    // by the rank that receives
  uint64_t carried_bytes = 0;            // with RTSs that have no answer yet
  uint32_t reached_rts = 0;              // of memory of no region, without an answer
  OneSidedState one_sided;
  AttentionPtr attention;     // null: no worker matches while it computes
  uint32_t nearest_rail = 0;  // transport::RmaRequest::rail

  bool ended = false;          // its lane is not read any more: it broke the rules
  bool held = false;           // the next command waits for a slot, a route or its memory
  uint64_t held_since_ns = 0;  // valid while held
  bool asks_too_much = false;  // held until answers come to its own and others' requests
  Claim claim;                 // the next command's
  // Commands with lower numbers that are no messages have been carried out: they need not wait for
  // a message that is held.
  uint64_t ahead = 0;
  uint32_t operations = 0;  // rendezvous gets, staged sends and puts that touch its memory

  // How far the rank is parted from ranks of other nodes (CoreEnds::PartRanks), by rank.
  struct Parting {
    bool is_here = false;   // this rank is parted from that one
    bool is_told = false;   // and has sent its last packet from before
    bool is_there = false;  // that one has sent its last packet from before
  };
  std::map<uint32_t, Parting> partings;
  bool IsPartedFrom(uint32_t peer) const {
    const auto found = partings.find(peer);
    return found != partings.end() && found->second.is_here;
  }
  // Returns true if packets that now come from `source` are still from before the two parted.
  bool IsStaleFrom(uint32_t source) const {
    const auto found = partings.find(source);
    return found != partings.end() && found->second.is_here && !found->second.is_there;
  }
  // Returns why nothing passes between the rank and `peer`; kOk: messages pass.
  ErrorCode StateOf(uint32_t peer) const;

  // After a cut: the death_epoch by which the rank has noticed it, and the last of the commands
  // that it may have written before.
  uint32_t cut_epoch = 0;
  std::optional<uint64_t> last_stale_command;
};

struct Job {
  explicit Job(const JobPlan& its_plan);

  const JobPlan plan;
  std::deque<NodeUse> uses;         // of nodes: outlive the operations that are counted there
  alignas(64) TraceTap trace;       // in one cache line with what every message needs
  ZeroedArray<NodeUse*> use_of;     // by node; null: there was none yet
  ZeroedArray<Route> routes;        // by node
  ZeroedArray<ServedRank*> served;  // by rank; null: elsewhere, not here yet, or gone
  ZeroedArray<ErrorCode> ended;     // by rank: not kOk once the rank is gone (kNotFound: it left)
  // By rank: its daemon says that it has left. kLeft, which says so in the order of messages, may
  // be lost with a link.
  std::vector<bool> left;
  bool has_untold_leaves = false;
  std::map<uint32_t, std::deque<Message>> early;  // by rank: arrivals before its session
  uint64_t early_bytes = 0;                       // with their data, that have come so far
  const std::shared_ptr<HoldBudget> hold_budget = std::make_shared<HoldBudget>();
  std::vector<uint32_t> rank_of_local;  // by local index, for this node
  std::vector<uint32_t> any_rank_of;    // by node: a rank there; size() if there is none
  uint32_t remote_ranks = 0;
  Stage private_stage;  // for private memory of its ranks
  Stage device_stage;   // for device memory that only streams reach

  // Calls `visit` with each rank of this node that is served: the rest of the job costs nothing.
  template <typename Visitor>
  void ForEachServed(Visitor&& visit) const {
    for (const uint32_t rank : rank_of_local) {
      if (served[rank] != nullptr) {
        visit(*served[rank]);
      }
    }
  }
  bool IsRank(uint32_t rank) const { return rank < plan.size(); }
  bool IsLocal(uint32_t rank) const { return plan.node_of_rank[rank] == plan.node; }
  Route& RouteTo(uint32_t rank) { return routes[plan.node_of_rank[rank]]; }
  NodeUse& UseOf(uint32_t rank) {
    NodeUse*& use = use_of[plan.node_of_rank[rank]];
    if (use == nullptr) [[unlikely]] {
      use = &uses.emplace_back();
    }
    return *use;
  }
  // Returns why the rank is gone; kOk: it is not. One of this node that has died looks as if it had
  // left until its end is announced (Directory::RemoveServed).
  ErrorCode EndOf(uint32_t rank) const {
    const bool has_died = ended[rank] == ErrorCode::kNotFound && IsLocal(rank) && !left[rank];
    return has_died ? ErrorCode::kPeerDied : ended[rank];
  }
};

inline ErrorCode ServedRank::StateOf(uint32_t peer) const {
  const ErrorCode ended = job->EndOf(peer);
  return ended == ErrorCode::kOk && IsPartedFrom(peer) ? ErrorCode::kLinkDown : ended;
}

// Makes a record for the trace of an act of `rank` of this node with remote rank `peer`: it stands
// for a moment, until it is given an end. Only while job.trace.on().
TraceRecord RecordOf(const Job& job, TraceKind kind, uint32_t rank, uint32_t peer,
                     uint64_t begin_ns);

class Directory {
 public:
  // kAlreadyExists, kInvalidArgument (the plan contradicts itself).
  Status AddJob(const JobPlan& plan);
  void RemoveJob(const std::string& job_id);
  Job* FindJob(const std::string& job_id);
  Job* FindJobByKey(uint64_t key);

  // kNotFound (job), kInvalidArgument (not a rank of this node, or other sizes than the plan's),
  // kAlreadyExists.
  Status CheckSession(const ServedSegments& session);
  ServedRank* AddServed(std::unique_ptr<ServedRank> served);
  void RemoveServed(ServedRank* served);
  ServedRank* FindServed(const std::string& job_id, uint32_t rank);
  const std::vector<std::unique_ptr<ServedRank>>& served() const { return served_; }
  const std::map<std::string, std::unique_ptr<Job>>& jobs() const { return jobs_; }

  Link* FindLink(uint64_t number);
  // Adds a link in place of an earlier life of it, which is kept until it is idle.
  Link* AddLink(const NodeRoute& route, transport::PeerId peer);
  // Forgets links that have failed, are idle, and are used by no job. `forget` gets each peer.
  template <typename Forget>
  void SweepLinks(Forget&& forget);
  const std::map<uint64_t, std::unique_ptr<Link>>& links() const { return links_; }

 private:
  std::map<std::string, std::unique_ptr<Job>> jobs_;
  std::unordered_map<uint64_t, Job*> by_key_;
  std::vector<std::unique_ptr<ServedRank>> served_;
  std::map<uint64_t, std::unique_ptr<Link>> links_;  // by number
  std::vector<std::unique_ptr<Link>> past_links_;
};

template <typename Forget>
void Directory::SweepLinks(Forget&& forget) {
  const auto may_go = [&](const Link& link) {
    if (link.failure == ErrorCode::kOk || link.routes != 0 || link.outstanding != 0) {
      return false;
    }
    forget(link.peer);
    return true;
  };
  std::erase_if(links_, [&](const auto& entry) { return may_go(*entry.second); });
  std::erase_if(past_links_, [&](const auto& link) { return may_go(*link); });
}

}  // namespace ferry::progress
