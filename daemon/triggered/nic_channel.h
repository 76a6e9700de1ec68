// One end of a matched pair of persistent requests whose messages the NIC moves by itself, started
// by a doorbell that a stream rings ("Co-Design and Evaluation of a CPU-Free MPI GPU Communication
// Abstraction and Implementation", sections V-A and V-B).
//
//   sender                                        receiver
//   start ──► trigger ◄──────── increment ◄────── start          clear to send (not if ready)
//                │ = n (ready) or 2n
//                ▼
//              write ──────────────────────────► window
//                │ done                             │ each write counts
//                ▼                                  ▼
//              sent ──► increment ──► done word   arrived ──► increment ──► done word
//
// Messages of more than kNicPartBytes are several writes of one trigger. As sends and starts take
// turns, 2n is reached only when the n-th start and the n-th clear-to-send have both come. Ready
// sends that start together have one trigger (shared_trigger.h), else each its own.
//
// This class itself does the operations for which the NIC has no entry (DeferredPool), one by one,
// by the same counters: the other end, and the other operations, do not notice. A round is armed
// once it is wanted, up to `ahead` rounds before the last one is over.
//
// Failure. An operation that fails, or does not end within `timeout_ns` of the moment at which its
// trigger was seen reached, fails the channel: the done word grows by 2^62 (shm/counter.h), and
// nothing moves any more; match anew. How the other end learns of it is its owner's business.
//
// Words that both the NIC and this class write: never at the same time, as rounds follow each
// other, but for a failure, which is therefore written again for `timeout_ns`.
//
// Calling thread: the progress thread, but for PrepareTarget. Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "common/status.h"
#include "daemon/triggered/deferred_pool.h"
#include "daemon/triggered/shared_trigger.h"
#include "daemon/triggered/starts.h"
#include "shm/layout/counter_layout.h"
#include "transports/api/deferred_work.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

// The longest write: no transport cuts it (TransportOptions::fragment_bytes), so that both ends
// count alike.
inline constexpr uint64_t kNicPartBytes = 4ULL << 20;

// A place to which a NIC writes.
struct NicPlace {
  uint64_t address = 0;
  uint64_t key = 0;
};

// All of it outlives the channel.
struct NicResources {
  transport::Transport& transport;
  transport::DeferredWork& deferred;
  DeferredPool& pool;
  transport::PeerId self{};  // this node, as a peer
  // 8 bytes for local use, whatever they hold: what clears to send in software.
  const void* scratch = nullptr;
  transport::RegionHandle scratch_region{};
};

struct NicChannelSpec {
  uint64_t name = 0;  // of the channel: 1 to kMostNicChannelName
  DeferredPool::Job job{};
  bool is_send = false;
  bool is_ready = false;  // no clear-to-send
  transport::PeerId peer{};
  uint64_t bytes = 0;                // of each message; 0 is a message, too
  std::byte* memory = nullptr;       // that is sent, or the window
  transport::RegionHandle region{};  // of `memory`, of a send
  shm::CounterLayout* done = nullptr;
  NicPlace done_place;  // of done->value, for this node's NIC
  uint32_t ahead = 1;   // 1 or more
  uint64_t timeout_ns = 0;
  // Whether a GPU rings the doorbell (doorbell()); else RingTo does.
  bool gpu_rings = false;
};
inline constexpr uint64_t kMostNicChannelName = (uint64_t{1} << 55) - 1;
// A bit in the context of every operation of a channel, of the NIC's and of the transport's, which
// may be one of several NICs; addresses of objects do not have it.
inline constexpr uint64_t kNicContext = transport::kDirectContext;

class NicChannel {
 public:
  // Errors: kInvalidArgument (the spec), those of DeferredWork::OpenCounter.
  static StatusOr<std::unique_ptr<NicChannel>> Open(const NicResources& resources,
                                                    const NicChannelSpec& spec);
  ~NicChannel();  // as Close
  NicChannel(const NicChannel&) = delete;
  NicChannel& operator=(const NicChannel&) = delete;

  // ---- Setting up. The target is what the other end's NIC writes to, if anything: a receive's
  // window, or the word that clears a send. PrepareTarget may pin memory, which takes long: any
  // thread.
  bool has_target() const { return !spec_.is_send || !spec_.is_ready; }
  StatusOr<std::unique_ptr<transport::Registration>> PrepareTarget();
  Status AdoptTarget(std::unique_ptr<transport::Registration> registration);
  // For the other end, which must not be told before this end has adopted its target.
  NicPlace target() const { return target_; }
  // `other` is the other end's target (nothing, for a ready receive). Rounds are armed from now on.
  void Connect(NicPlace other);

  // ---- Running.
  // Rounds up to `round` will be started: the rank has made, or enqueued, their starts.
  void Want(uint64_t round);
  // For a ready send, before it wants the rounds that `doorbell` counts: they are fired by its
  // trigger, which its owner rings. Another doorbell only while is_idle().
  void Share(std::shared_ptr<SharedTrigger> trigger, const SharedDoorbell& doorbell);
  bool may_share() const { return spec_.is_send && spec_.is_ready && !spec_.gpu_rings; }
  // The doorbell has reached `round`. Rounds follow each other: kInvalidRequest fails a channel
  // whose next round is started before the last one is done.
  void RingTo(uint64_t round);
  // Where the GPU adds 1 for each start (gpu_rings); empty where the NIC has no such place.
  transport::CounterDoorbell doorbell();
  // For DeferredSink and CompletionSink, for contexts whose NicChannelOf is our name.
  void OnDeferredEnd(uint64_t context, ErrorCode code);
  void OnWriteEnd(uint64_t context, ErrorCode code);
  // Does what is due, while is_active(). Returns how much that was.
  uint32_t Poll(uint64_t now_ns);
  // Whether something may be due that nothing else tells of.
  bool is_active() const;
  // The soonest deadline of an operation that is due; UINT64_MAX without one.
  uint64_t next_deadline_ns() const { return next_deadline_ns_; }

  uint64_t rounds_done() const { return rounds_done_; }
  uint64_t rounds_wanted() const { return wanted_; }
  // No round that was wanted is under way.
  bool is_idle() const { return wanted_ <= rounds_done_; }
  // kOk until the channel has failed.
  ErrorCode error() const { return error_; }
  void Fail(ErrorCode error);
  // Nothing is armed any more. Operations that the NIC has begun may still read the message of a
  // send (ReleaseMemory says so), and add to the done word.
  void Close();

 private:
  enum class Kind : uint8_t { kMove, kClear, kStore };
  enum class Phase : uint8_t { kWaiting, kPosted, kDone };
  struct Operation {
    Kind kind{};
    uint32_t part = 0;  // of a move
    uint64_t round = 0;
    bool is_shared = false;  // SharedTrigger fires it
    DeferredPool::Place place{};
    Phase phase = Phase::kWaiting;
    uint64_t due_ns = 0;  // its trigger was seen reached then; 0: not yet
  };
  struct Part {
    std::byte* local = nullptr;
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  NicChannel(const NicResources& resources, const NicChannelSpec& spec);
  Status OpenCounters();
  Status OpenCounter(std::optional<transport::NicCounter>* counter);
  Status OpenOwnTrigger();

  uint32_t parts() const;
  Part PartAt(uint32_t index) const;
  uint64_t ContextOf(Kind kind) const;
  bool IsShared(uint64_t round) const { return shared_ != nullptr && doorbell_.Counts(round); }
  StatusOr<transport::DeferredTrigger> TriggerOf(const Operation& operation);
  transport::NicCounter DoneCounterOf(Kind kind) const;
  bool IsReached(const Operation& operation);

  void ArmWanted();
  void Arm(Kind kind, uint32_t part, uint64_t round);
  ErrorCode ArmOnNic(const Operation& operation);
  void TakeRing(uint64_t now_ns);
  uint32_t Perform(Operation* operation, uint64_t now_ns);
  ErrorCode PostWrite(const Operation& operation, uint64_t now_ns);
  static ErrorCode MeaningOf(Kind kind, ErrorCode code);
  void EndOperation(Operation* operation);
  Operation* FindFirst(uint64_t context, DeferredPool::Place place);
  void Retire();
  void HoldFailure(uint64_t now_ns);

  const NicResources resources_;
  const NicChannelSpec spec_;
  // A send's: reached by starts and clear-to-sends; of a ready one, once a round needs it. A
  // receive's: by starts; it clears.
  std::optional<transport::NicCounter> trigger_;
  std::optional<transport::NicCounter> moved_;    // a send's parts sent, a receive's arrived
  std::optional<transport::NicCounter> cleared_;  // a receive's clear-to-sends sent
  std::optional<transport::NicCounter> stored_;   // additions to the done word by the NIC
  std::shared_ptr<SharedTrigger> shared_;
  SharedDoorbell doorbell_;  // of shared_
  uint64_t word_ = 0;        // the target of what has no bytes
  NicPlace target_;
  transport::RegionHandle target_region_{};
  bool has_adopted_ = false;
  NicPlace other_;
  bool is_connected_ = false;
  bool is_closed_ = false;

  uint64_t wanted_ = 0;
  uint64_t armed_ = 0;
  uint64_t rung_ = 0;
  uint64_t trigger_rung_ = 0;   // of rung_, what trigger_ knows
  uint64_t ring_waits_ = 0;     // a round that was rung too early, as far as the counters say
  uint64_t ring_waits_ns_ = 0;  // since then
  uint64_t rounds_done_ = 0;
  uint64_t next_deadline_ns_ = UINT64_MAX;
  std::deque<Operation> operations_;  // of the rounds armed, and not done
  ErrorCode error_ = ErrorCode::kOk;
  bool has_held_ = false;  // the failure stays
};

// The name of the channel that an operation of that context is of.
constexpr uint64_t NicChannelOf(uint64_t context) { return (context & ~kNicContext) >> 8; }

}  // namespace ferry::daemon
