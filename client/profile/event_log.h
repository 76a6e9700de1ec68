// The events of a measured rank, for the timeline of its job (ferryrun --trace): its calls and
// their waits, of which it hears as a CallWatcher, what its streams do, of which it hears as a
// StreamWatcher, and its messages and queues, of which it is told. Written into shared memory as
// they happen (shm/trace_ring.h), so that they outlive a rank that is killed.
//
// Nothing of this travels with a message. Both of its ends count the messages between them that
// have the same context and tag, and tools find out by the numbers which ends belong together
// (tools/profile/timeline.h).
//
// Calling thread: any of the rank. Threads take turns at a lock that is held for some 10 ns.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "client/api/calls.h"
#include "client/api/message.h"
#include "client/profile/short_calls.h"
#include "client/profile/spin_lock.h"
#include "gpu_backends/api/stream_watch.h"
#include "shm/trace_ring.h"

namespace ferry::client {

class EventLog final : public CallWatcher, public gpu::StreamWatcher {
 public:
  // `part`: zeroed memory, as TraceRingWriter wants it, which outlives it. `by_link`: returns true
  // if messages to that rank go by a direct link now; any thread. `shared`: as that of Calls.
  EventLog(std::span<std::byte> part, std::function<bool(int32_t rank)> by_link,
           const bool* shared);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void Begin(CallNote*, bool) override {}
  void WaitBegan(CallNote* note) override;
  void End(CallNote* note, bool inner) override;
  void NoteDone(uint32_t stream, gpu::StreamWork work, uint64_t bytes, uint64_t begin_ns) override;

  // Returns the time at which a call of the thread begins, for the functions below.
  static uint64_t Now();
  // A message was started by a call that began at `begin_ns`, and is over now.
  void NoteSent(const Message& message, uint64_t begin_ns);
  // That message will not come: from now on, messages of its kind are not counted.
  void NoteSendCancelled(int32_t peer, int32_t tag, uint32_t context);
  // A receive has begun; returns its number among the rank's receives.
  uint32_t BeginReceive() {
    if (shared_) {
      return 1 + receives_.fetch_add(1, std::memory_order_relaxed);
    }
    const uint32_t order = 1 + receives_.load(std::memory_order_relaxed);
    receives_.store(order, std::memory_order_relaxed);
    return order;
  }
  // A call that began at `begin_ns` has posted that receive, and does not wait for it.
  void NotePosted(const Message& pattern, uint32_t order, uint64_t begin_ns);
  // A call that began at `begin_ns` has found that the receive is over.
  void NoteReceived(const Completion& completion, uint32_t context, uint32_t order,
                    uint64_t begin_ns);
  // A short call has sent or received that message: the call and its message have the same times.
  // While no other thread calls.
  void NoteSendCall(const ShortCall& call, const Message& message, uint64_t begin_ns,
                    uint64_t end_ns);
  void NoteReceiveCall(const ShortCall& call, const Message& message, const Completion& completion,
                       uint32_t order, uint64_t begin_ns, uint64_t end_ns);
  // A call that began at `begin_ns` has put an operation into a queue, or has waited for it.
  // `position`: the operation's number in the queue, from 0.
  void NoteQueued(uint64_t queue, uint32_t position, uint64_t begin_ns);
  void NoteQueueWait(uint64_t queue, uint64_t begin_ns);

 private:
  // Messages with one other rank, of one context and tag, in one direction.
  struct Stream {
    uint32_t state;  // 0: the place is free
    int32_t peer;
    uint32_t context;
    int32_t tag;
    uint32_t is_send;
    uint32_t count;
  };

  void Add(const shm::TraceEvent& event) {
    ring_.Add(event, shared_ || has_streams_.load(std::memory_order_relaxed));
  }
  void AddSend(const Message& message, uint32_t thread, uint64_t begin_ns, uint64_t end_ns);
  void AddReceive(const Completion& completion, uint32_t context, uint32_t order, uint32_t thread,
                  uint64_t begin_ns, uint64_t end_ns);
  void AddShortCall(const ShortCall& call, const Message& message, uint32_t thread,
                    uint64_t begin_ns, uint64_t end_ns);
  uint32_t CountMessage(int32_t peer, uint32_t context, int32_t tag, bool is_send);
  Stream* Find(int32_t peer, uint32_t context, int32_t tag, bool is_send);

  shm::TraceRingWriter ring_;
  const std::function<bool(int32_t)> by_link_;
  const bool& shared_;
  std::atomic<uint32_t> receives_{0};
  // Streams of this process have carried out something, in threads of their own: from then on
  // events are added by several threads. The first such event may be lost.
  std::atomic<bool> has_streams_{false};
  SpinLock lock_;
  // Zeroed pages that are touched at first use.
  const std::unique_ptr<Stream[], void (*)(void*)> streams_;
  Stream* last_[2] = {};  // that of the last message received, and sent
};

}  // namespace ferry::client
