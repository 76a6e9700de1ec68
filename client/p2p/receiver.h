// The receives of a rank: without a request, where a small message is there; else as a request,
// which may be held for a while before it is posted.
//
// Posting a receive, and taking it out of the match table again, costs several times as much as the
// rest of a small message; it buys the progress worker's help while the rank computes, which a
// small message hardly needs: its sender is done with it. So small receives are held here, in
// order, for the rank's next wait, which takes their messages straight from the lanes. Any other
// call that could match a message posts them first. A small synchronous send to a rank that
// computes pays for that: it ends when the rank comes back.
//
// Calling thread: any that the thread level allows. Blocks as Requests does.
#pragma once

#include <cstdint>
#include <deque>

#include "client/p2p/requests.h"

namespace ferry::client {

class Receiver {
 public:
  // All outlive it. `is_crowded`: ranks of the node share cores.
  Receiver(Progress* progress, Requests* requests, Memory* memory, PeerMemory* peer_memory,
           shm::Statistics statistics, bool is_crowded)
      : progress_(*progress),
        engine_(progress->engine()),
        receives_(progress->engine().receives()),
        requests_(*requests),
        memory_(*memory),
        peer_memory_(*peer_memory),
        statistics_(statistics),
        first_looks_(is_crowded ? 1 : kFirstLooks),
        daemon_lane_(shm::DaemonLane(progress->view().inbox.local_size)) {}
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // Receives a small message of the node that is there, without a request. False: nothing happened.
  bool ReceiveNow(const Message& message, Completion* completion);
  // Receives a small message that may come in a moment, while the caller waits; also a message of
  // one chunk that its sender announces, which is copied at once. False: nothing was received.
  bool AwaitAtOnce(const Message& message, Completion* completion);
  // Returns true if a blocking receive must be posted at once: else a long message by a direct link
  // would come before it, and be kept elsewhere.
  bool IsToBePosted(const Message& message) const {
    return message.size_bytes > shm::kCellBytes && progress_.ReceivesByLink(message.peer);
  }
  // Starts a receive. Errors: see Messaging::StartReceive.
  ErrorCode Start(const Message& message, uint32_t* request);
  // Takes a slot for a receive that the caller then polls for with TryMatch, or starts.
  ErrorCode Take(const Message& message, uint32_t* request);
  // Runs one round of the engine, in which a message may match the request although it is not
  // posted. False: no message matched.
  bool TryMatch(uint32_t request);
  // Starts a receive of just the message that a probe found. kWouldBlock: it is not the first
  // message that matches any more.
  ErrorCode TakeProbed(uint32_t request, const Message& pattern, const Completion& envelope);

  // ---- Held receives ---------------------------------------------------------------------------
  bool has_held() const { return !held_.empty(); }
  static bool IsHeld(const shm::RequestLayout& slot) { return (slot.flags & kRequestHeld) != 0; }
  // Posts the held receives, so that later steps see everything the application has started.
  void PostHeld() {
    if (has_held()) [[unlikely]] {
      PostAllHeld();
    }
  }
  // Takes the messages that have come for the first held receives. True: this request is still
  // held.
  bool IsHeldUp(uint32_t request);
  // Waits for the messages of held receives, while `done` waits for those and the rank has nothing
  // else to do. False: no receive is held any more, and done() is not true yet.
  template <typename Done>
  bool AwaitHeld(Done&& done, const shm::WaitPolicy& policy);

 private:
  // A bit of RequestLayout::flags that the rank alone looks at: the request, in state kInactive, is
  // one of held_.
  static constexpr uint32_t kRequestHeld = uint32_t{1} << 31;
  // A blocking receive's first looks at its lane. Only one is made where ranks share cores: each
  // pause would take time from the rank waited for.
  static constexpr uint32_t kFirstLooks = 32;
  static constexpr uint32_t kFirstLooksForLong = 128;  // which take longer to come
  // Idle looks (pauses, then yields) for the messages of held receives, before those are posted.
  static constexpr uint32_t kIdleLooks = 16;

  bool TakeEager(const Message& message, uint32_t lane, bool waits, Completion* completion,
                 uint64_t* message_bytes);
  bool EndByEager(const Message& message, uint32_t lane, bool waits, Completion* completion);
  bool TakeAnnounced(const Message& message, uint32_t lane, Completion* completion);
  bool ReceiveAtOnce(uint32_t request, const Message& message, uint32_t lane);
  bool MayHold(const shm::RequestLayout& slot) const;
  void TakeHeld();
  void PostAllHeld();
  void PostOne(uint32_t request);

  Progress& progress_;
  engine::RankEngine& engine_;
  engine::ReceiveEngine& receives_;
  Requests& requests_;
  Memory& memory_;
  PeerMemory& peer_memory_;
  shm::Statistics statistics_;
  const uint32_t first_looks_;
  const uint32_t daemon_lane_;
  std::deque<uint32_t> held_;  // in order; only while one thread calls at a time
  bool is_held_up_ = false;    // the last IsHeldUp said so
};

template <typename Done>
bool Receiver::AwaitHeld(Done&& done, const shm::WaitPolicy& policy) {
  shm::Waiter waiter(policy);
  size_t left = held_.size();
  for (uint32_t idle = 0; idle < kIdleLooks;) {
    is_held_up_ = false;
    if (done()) {
      return true;
    }
    if (!is_held_up_ || engine_.WaitsForRoom() || receives_.HasUnexpected()) {
      break;
    }
    idle = held_.size() < left ? 0 : idle + 1;
    left = held_.size();
    (void)waiter.Idle();
  }
  PostHeld();
  return done();
}

}  // namespace ferry::client
