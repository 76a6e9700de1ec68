// The sends of a rank: without a request, where the message is small or a bounce buffer of it will
// do; else as a request.
//
// Inside the node a private buffer is announced *in place*: its receiver copies straight from it.
// If the receiver does not come for it while the application waits, a message of middle size moves
// into a *bounce buffer*, a copy in the heap, from which the receiver takes it later, and the send
// is over. Small messages from device memory that the receiver's streams may reach move in the same
// way. To another node such a message is sent from a bounce buffer at once: the sender does not
// wait for the daemon's answer. By a direct link only blocking sends for which the receiver has no
// room are sent so.
//
// Calling thread: any that the thread level allows. Blocks as Requests does.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "client/p2p/requests.h"
#include "common/zeroed_array.h"

namespace ferry::client {

class Sender {
 public:
  // All outlive it.
  Sender(Progress* progress, Requests* requests, Memory* memory, uint64_t eager_max_bytes,
         uint64_t heap_bytes);
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // Sends a small message that can leave at once. False: nothing happened.
  bool SendNow(const Message& message) {
    return requests_.IsPlainSend(message) && SendEager(message);
  }
  // Starts a message that SendNow did not send. *request is 0 if the send is over already. Errors:
  // see Messaging::StartSend. A caller that goes on to wait passes `later` (Progress::Perform).
  ErrorCode Start(const Message& message, uint32_t* request, engine::LaneSet* later = nullptr);
  // Starts a persistent send, which may be over at once.
  ErrorCode Restart(uint32_t request);
  // Notes that the rank looks for what comes: the sends before and after that are no window.
  void EndWindow() { window_messages_.store(0, std::memory_order_relaxed); }

  // For a wait that takes long: moves messages that are announced in place, and that their
  // receivers have not come for, into bounce buffers, so that those sends are over. `patient`: only
  // where the receiver computes. True: there is a change, since receivers have come, or messages
  // have moved. Moves all such messages where one thread calls at a time; else none: another thread
  // may be copying for the request that this one would move.
  bool MoveLate(bool patient);
  // Moves the message of one request, for which the calling thread waits, as MoveLate(patient)
  // does.
  bool MoveLate(uint32_t request, bool patient);
  // After that wait, before the request is collected: remembers if its receiver came late.
  void NotePunctuality(uint32_t request);

  // The number of sends from bounce buffers that have not arrived yet, of which the application
  // knows nothing any more.
  size_t on_the_way() const { return on_the_way_.size(); }
  // Returns true if all of these have arrived, or their receivers are dead.
  bool HaveArrived();

 private:
  // When a message is sent from a bounce buffer. kUnlessPushed: only if it would wait for its
  // receive.
  enum class BounceBuffer { kNone, kAtOnce, kUnlessPushed };
  struct InPlace {
    uint32_t request;
    uint32_t generation;
  };

  void NoteDeviceSend(const Message& message);
  bool SendEager(const Message& message);
  bool IsForOneCopy(const Message& message, bool blocking);
  bool SendEagerByStream(const Message& message);
  // The rest of SendEager, where CPUs reach the buffer and the lane is open.
  bool SendEagerFromHost(const Message& message);
  bool MayMove(const shm::RequestLayout& slot) const;
  bool IsUntaken(const InPlace& sent) const;
  void NoteInPlace(uint32_t request);
  void CallReceivers();
  bool HasLooked(uint32_t peer) const;
  bool CopySource(void* bounce_buffer, const shm::RequestLayout& slot);
  bool Move(uint32_t request, bool patient);
  bool IsLate(uint32_t rank);
  BounceBuffer BounceBufferFor(const Message& message, bool blocking);
  bool SendFromBounceBuffer(const Message& message);
  void* TakeBounceBuffer(uint64_t size_bytes);
  void GiveBounceBuffer(void* bounce_buffer, uint64_t size_bytes);
  bool HasArrived(uint32_t request);

  Progress& progress_;
  engine::SendEngine& sends_;
  const engine::PeerTable& peers_;
  Requests& requests_;
  Memory& memory_;
  const uint64_t eager_max_bytes_;
  const uint32_t limit_;
  std::vector<InPlace> in_place_;  // that may move; with threads, under the lock
  ZeroedArray<uint8_t> late_;      // by rank: how many blocking sends in a row had to move
  uint32_t samples_ = 0;
  // Messages of device memory that were sent to this rank in a row. Hints: threads may interfere.
  std::atomic<int> window_peer_{-1};
  std::atomic<uint32_t> window_messages_{0};
  std::mutex mutex_;  // guards what follows
  std::deque<uint32_t> on_the_way_;
  uint64_t bytes_left_;  // how much more bounce buffers may take
};

}  // namespace ferry::client
