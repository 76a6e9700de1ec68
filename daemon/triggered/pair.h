// One end of a matched pair of persistent requests whose other end is on another node
// (docs/stream_triggered.md).
//
// A Pair holds the state that does not depend on its mover. The mover moves its messages: by
// packets and writes of this daemon (SoftwareMover), or by deferred work of a NIC (NicMover). The
// mover tells the keeper of their ends; only the keeper ends a pair.
//
// Calling thread: the progress thread. Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/error_code.h"
#include "daemon/plane/data_plane.h"
#include "internode/delivery/directory.h"
#include "internode/delivery/outbound.h"
#include "shm/counter.h"
#include "shm/layout/counter_layout.h"
#include "shm/layout/pair_layout.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

// A doorbell that several ends share.
struct SharedDoorbell {
  const shm::CounterLayout* word = nullptr;  // null: there is none
  uint64_t base = 0;                         // added to it (modulo 2^64): the end's starts
  uint64_t until = 0;                        // the last start that it counts

  bool Counts(uint64_t start) const { return word != nullptr && start <= until; }
  bool operator==(const SharedDoorbell& other) const {
    return word == other.word && base == other.base;
  }
};

// The starts of one end of a matched pair, as its rank or a stream has told them: by the end's own
// doorbell, or by one that several ends share, so that one store of a stream starts all of them
// (PairLayout::shares).
//
// The rank changes the doorbell while none of the end's starts is under way, or for starts that it
// makes later, and says so before `armed` grows. So a doorbell that is read after `armed` has grown
// holds for all starts up to that one.
//
// Calling thread: the progress thread. Nothing blocks or allocates.
class Starts {
 public:
  // `region`: the memory in which `end` and the shared doorbell lie. Both arguments outlive this
  // object.
  Starts(const shm::PairLayout* end, std::span<const std::byte> region)
      : end_(end), region_(region) {}

  // Takes over starts and doorbells that the rank has announced since the last call; those that may
  // not count yet stay for a later call. `is_idle`: none of the starts that the caller has seen is
  // under way. kCorrupt: the shared doorbell is none.
  ErrorCode Refresh(bool is_idle);
  // Returns the number of starts that the rank has made, or enqueued, as of the last Refresh.
  uint64_t announced() const { return announced_; }
  // Returns the number of starts that have been made. A failure of the doorbell shows in it, too.
  uint64_t Made() const;
  const SharedDoorbell& shared() const { return shared_; }

  // Returns true if the rank has announced more starts than `done`. An announced start may not have
  // been made yet.
  bool IsArmed(uint64_t done) const;

 private:
  ErrorCode ReadShared(SharedDoorbell* shared) const;

  const shm::PairLayout* end_;
  std::span<const std::byte> region_;
  uint64_t announced_ = 0;
  SharedDoorbell shared_;
};

// The longest message that one packet takes along.
inline constexpr uint64_t kPacketDataBytes = shm::kCellBytes;

// The context of an operation for a pair: kPairContext and the pair's number in bits 8 to 62. Bits
// 2 to 7 are its mover's. Operations that are a NIC's own have kDirectContext, too.
constexpr uint64_t PairContextOf(uint64_t number) { return number << 8 | progress::kPairContext; }
constexpr uint64_t PairOf(uint64_t context) { return (context & ~transport::kDirectContext) >> 8; }

class PairMover {
 public:
  virtual ~PairMover() = default;
  virtual bool is_nic() const = 0;

  // Takes up the starts that the doorbell tells of, and moves what can move. Returns how much was
  // done.
  virtual uint32_t Advance(uint64_t now_ns) = 0;
  // Returns true if the next turn has to look at the pair again, even if nothing happens.
  virtual bool IsDue() const = 0;
  // Tells the mover that an operation with that context, one of the pair's, has ended.
  virtual void OnEnd(uint64_t context, ErrorCode code) = 0;
  // Returns true if the other end may hear of the end of a message before this one does.
  virtual bool may_lag() const = 0;
  // Tells the mover that the pair has failed: it moves nothing any more.
  virtual void OnFailed() = 0;
  // Tells the mover that the pair goes (it has failed), or gets another mover: it does not touch
  // the pair any more.
  virtual void Leave() = 0;
  // Call it after Leave. Returns true once the NIC uses none of the pair's memory, and never will
  // again.
  virtual bool TryEnd() = 0;
};

struct Pair {
  Pair(PairPlan its_plan, progress::ServedRank* its_rank)
      : plan(std::move(its_plan)),
        rank(its_rank),
        layout(plan.layout()),
        done(&layout->done),
        starts(layout, {plan.end.region->mapping.base(), plan.end.region->mapping.size_bytes()}) {}

  const PairPlan plan;
  progress::ServedRank* const rank;  // whose end it is; movers by NIC do without
  shm::PairLayout* const layout;
  shm::Counter done;
  Starts starts;        // its doorbell
  uint64_t seen = 0;    // starts that its mover has taken up; by NIC, those whose messages are over
  uint64_t rounds = 0;  // messages that are over
  uint64_t deadline_ns = UINT64_MAX;  // then it fails with `late_error`
  ErrorCode late_error = ErrorCode::kTimeout;
  ErrorCode error = ErrorCode::kOk;
  // Its other end, or a receive that it follows, has gone: after `last_round` messages it fails
  // with `last_error`. `tells_end`: the other end does not know of it.
  uint64_t last_round = UINT64_MAX;
  ErrorCode last_error = ErrorCode::kOk;
  bool tells_end = false;
  progress::ServedRegion* region = nullptr;  // the window's, of long messages
  std::unique_ptr<PairMover> mover;          // null: the daemons have not agreed on one yet
  // Of a send, the receives of the same rank that it follows (shm::FollowWords), once it has been
  // started; of a receive, the sends that follow it.
  std::vector<Pair*> follows;
  std::vector<Pair*> followers;
  bool knows_follows = false;
  bool watched = false;  // it may have to do something in this turn

  uint64_t number() const { return plan.name.number; }
  bool is_send() const { return plan.is_send; }
  bool is_ready() const { return plan.mode == shm::SendMode::kReady; }
  bool is_short() const { return plan.size_bytes <= kPacketDataBytes; }
  bool has_cells() const { return plan.cell_count > 1 && plan.mode == shm::SendMode::kStandard; }
  // The address of the pair's message in this process, and the memory in which it lies. A short one
  // that comes to device memory lands in the cell, and goes on by a stream.
  std::byte* message() const {
    return region != nullptr ? region->memory.begin() + plan.window.offset : landing().address();
  }
  const std::shared_ptr<const Region>& memory() const {
    return region != nullptr ? plan.window.region : landing().region;
  }
  // Returns true if only the NIC reaches the message, in device memory that it is told of.
  bool is_device() const { return region != nullptr && region->memory.by_stream; }
  std::optional<transport::DeviceMemory> device() const {
    return is_device() ? std::optional(region->memory.for_nic) : std::nullopt;
  }
  // Returns how many messages each of the receives that this send follows has at least; as many of
  // its own may move.
  uint64_t followed_rounds() const;
  // Returns true if the pair's rank has announced a start that the mover has not taken up yet.
  bool is_armed() const { return error == ErrorCode::kOk && starts.IsArmed(seen); }

 private:
  // Returns where a message lies that a CPU copies.
  const RegionPlace& landing() const { return plan.is_by_stream() ? plan.cells : plan.window; }
};

// A place to which a NIC writes.
struct NicPlace {
  uint64_t address = 0;
  uint64_t key = 0;
};

// The keeper of pairs, as their movers see it: hears what has become of the messages.
class PairKeeper {
 public:
  virtual ~PairKeeper() = default;
  // Has the pair looked at in this turn, or the next, because something has happened.
  virtual void Watch(Pair& pair) = 0;
  // Fails the pair with `error` at `deadline_ns`, unless another time is set before.
  virtual void SetDeadline(Pair& pair, uint64_t deadline_ns, ErrorCode error) = 0;
  // Tells the keeper that `rounds` messages are over, and that the done word says so.
  virtual void OnRounds(Pair& pair, uint64_t rounds) = 0;
  // Ends a pair that cannot go on, at both ends. Calls OnFailed of the mover.
  virtual void OnBroken(Pair& pair, ErrorCode error) = 0;
  // Tells the keeper that the pair's NIC is ready, and that the other end's NIC is to write to
  // `place` (a ready send has none).
  virtual void OnNicOpen(Pair& pair, NicPlace place) = 0;
  // Gives the pair another mover, because its NIC cannot move the messages. None has moved yet.
  virtual void OnNicRefused(Pair& pair) = 0;
};

}  // namespace ferry::daemon
