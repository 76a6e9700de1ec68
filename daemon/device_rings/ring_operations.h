// The operations of a device ring that are under way in the memory of other ranks
// (docs/device_ring.md).
//
// Operations with ranks of other nodes are passed on (ring_calls.h), those with
// ranks of this node carried out here: long copies piece by piece, so that no turn takes long. They
// end in any order. `over` tells up to which ticket all of them are over, so a device waits for one
// number.
//
// Short operations with one rank keep their order by themselves. An operation that must come after
// long ones is held until those are over, and with it all that follow for the same rank; so is an
// operation that cannot leave yet. An operation that must come after one that has failed unreported
// fails, too: one that asks for order itself, or that follows a fence in between.
//
// A request comes from a rank's memory: all of it is checked. The rank's own bytes and its peer's
// are looked up again whenever they are touched.
//
// Calling thread: the progress thread. Does not block; a call does a bounded amount of work.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "common/error_code.h"
#include "daemon/device_rings/ring_report.h"
#include "internode/delivery/directory.h"
#include "internode/rma/ring_calls.h"
#include "shm/layout/device_ring_layout.h"

namespace ferry::daemon {

class RingOperations {
 public:
  // How a request has ended, as it is reported to the ring's user.
  struct Ended {
    uint64_t ticket;
    uint32_t kind;
    shm::Location completion;  // region 0: no answer is wanted, or it has been given
    ErrorCode error;
    uint64_t value;
  };
  using Tell = std::function<void(const Ended&)>;

  // All references outlive this. `ring` names the ring in RingTokens. An operation that cannot
  // leave for `timeout_ns` fails. Any of the functions below may call `tell`.
  RingOperations(progress::RingCalls& one_sided, progress::ServedRank& rank, uint64_t ring,
                 uint64_t timeout_ns, Tell tell);

  // How many bytes the request moves.
  static uint64_t BytesOf(const shm::RingOperation& request);

  // Returns true if more requests may be taken out of the ring.
  bool has_room() const { return flights_.size() < kMostUnderWay; }
  size_t room() const { return kMostUnderWay - flights_.size(); }
  bool empty() const { return flights_.empty(); }
  // Returns true if operations wait whose progress no event announces, so that Advance has to be
  // called again.
  bool is_busy() const { return !copies_.empty() || !peers_with_held_.empty(); }
  // The first ticket that is not over; `head`: the first that was not taken.
  uint64_t over(uint64_t head) const { return flights_.empty() ? head : flights_.front().ticket; }
  // The first failure that no answer has reported.
  ErrorCode failed() const { return failed_; }

  // Begins a request of a kind for which IsOperation is true, a fence, or a signal, which waits for
  // the next request.
  void Begin(const shm::RingOperation& request, uint64_t ticket, uint64_t now_ns);
  // Ends an operation that was passed on to another node.
  void End(uint64_t sequence, ErrorCode error, uint64_t value);
  // Goes on with held operations and long copies. Returns how much was done.
  uint32_t Advance(uint64_t now_ns);
  // Ends the ring's operations with `error`, and reports all that are under way.
  void EndAll(ErrorCode error);
  // Adds what its operations wait for that are not over, of the first `most`. Returns true if there
  // are more.
  bool Report(size_t most, RingWaits* waits) const;
  // How often a peer was looked at, as a measure of what a turn costs.
  uint64_t looks() const { return looks_; }

 private:
  static constexpr size_t kMostUnderWay = 4096;

  enum class State : uint8_t { kHeld, kUnderWay, kOver };
  struct Flight {
    uint64_t ticket;
    uint32_t kind;
    uint32_t peer;
    shm::Location completion;
    uint64_t size_bytes;
    uint64_t since_ns;
    State state = State::kHeld;
    bool is_long = false;
    bool is_signalled = false;
  };
  struct Held {
    uint64_t sequence;
    shm::RingOperation request;
    progress::RingSignal signal;
    bool in_order;
    progress::Claim claim;
  };
  struct Peer {
    std::deque<Held> held;        // in order
    uint32_t longs = 0;           // under way
    uint64_t latest = 0;          // the last operation: those after a later fence are in order
    uint64_t stuck_since_ns = 0;  // not 0: the first of `held` could leave but for the network
    ErrorCode failed = ErrorCode::kOk;   // of an operation whose failure was not reported
    uint64_t first_failed = UINT64_MAX;  // of these: none may follow a later fence
  };
  // Between ranks of this node.
  struct Copy {
    uint64_t sequence;
    progress::RingCall call;
    uint64_t done_bytes = 0;
  };

  ErrorCode Check(const shm::RingOperation& request) const;
  bool TakeSignal(const shm::RingOperation& request, uint64_t ticket, progress::RingSignal* signal);
  progress::RingCall CallOf(const Held& operation) const;
  Flight& FlightOf(uint64_t sequence) { return flights_[sequence - first_]; }
  Peer* Find(uint32_t rank);
  Peer& PeerOf(uint32_t rank, uint64_t sequence);
  bool MayBeLong(const shm::RingOperation& request) const;
  const char* WantsOf(const Flight& flight, uint64_t sequence) const;
  ErrorCode Issue(Held& operation, uint64_t now_ns);
  ErrorCode IssueHere(const progress::RingCall& call, uint64_t now_ns);
  void OnIssued(uint64_t sequence, bool is_long);
  bool AdvanceCopy(Copy& copy, uint64_t* budget_bytes, uint64_t now_ns);
  uint32_t AdvanceHeld(uint64_t now_ns);
  uint32_t IssueHeld(Peer& peer, uint32_t most, uint64_t now_ns);
  bool IsStuck(Peer& peer, uint64_t now_ns) const;

  progress::RingCalls& one_sided_;
  progress::ServedRank& rank_;
  const uint64_t ring_;
  const uint64_t timeout_ns_;
  const Tell tell_;
  std::deque<Flight> flights_;
  uint64_t first_ = 1;  // sequence of the first of these
  uint64_t last_fence_ = 0;
  progress::RingSignal signal_;  // of the put of that ticket, and with that rank
  uint64_t signalled_ticket_ = 0;
  uint32_t signalled_rank_ = 0;
  ErrorCode failed_ = ErrorCode::kOk;
  std::map<uint32_t, Peer> peers_;        // those that have long, held or failed operations
  std::deque<uint32_t> peers_with_held_;  // in the order of their turns
  uint64_t looks_ = 0;
  uint32_t longs_ = 0;  // of all peers
  std::deque<Copy> copies_;
};

}  // namespace ferry::daemon
