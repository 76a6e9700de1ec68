// The sends of a rank: at once, where the message is small or a shadow of it will do; else as a
// request.
//
// A private buffer of middle size is sent from a shadow in the heap. The send is over as soon as
// the copy is made. Inside the node the receiver copies from memory that it maps. That makes two
// copies, each on its own core; a single copy that walks the sender's page tables would leave the
// other core idle. To another node the daemon sends from the shadow, and the sender does not wait
// for its answer.
//
// Calling thread: any that the thread level allows. Blocks as Requests does.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

#include "client/rank/requests.h"

namespace ferry::client {

class Sender {
 public:
  // All outlive it.
  Sender(Progress* progress, Requests* requests, Memory* memory, uint64_t eager_max_bytes,
         uint64_t heap_bytes);
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // A small message that can leave at once. False: nothing happened.
  bool SendNow(const Message& message) {
    return requests_.AreAllBuffersPlain() && SendEager(message);
  }
  // Starts a message that could not leave so. *request is 0 if it is over already. Errors: see
  // FrontEnd::StartSend. A caller that goes on to wait passes `later` (Progress::Perform).
  ErrorCode Start(const Message& message, uint32_t* request, engine::LaneSet* later = nullptr);
  // Starts a persistent one, which may be over at once.
  ErrorCode Restart(uint32_t request);

  // Sends from shadows that have not arrived yet, of which their senders know nothing any more.
  size_t on_the_way() const { return on_the_way_.size(); }
  // Whether all have arrived, or their receivers are dead.
  bool HaveArrived();

 private:
  bool SendEager(const Message& message);
  bool SendEagerByStream(const Message& message);
  bool IsOfShadowSize(const Message& message) const;
  shm::Location LocateSource(const Message& message);
  bool SendFromShadow(const Message& message);
  void* TakeShadow(uint64_t size_bytes);
  void GiveShadow(void* shadow, uint64_t size_bytes);
  bool HasArrived(uint32_t request);

  Progress& progress_;
  engine::RankEngine& engine_;
  const engine::PeerTable& peers_;
  Requests& requests_;
  Memory& memory_;
  const uint64_t eager_max_bytes_;
  const uint32_t limit_;
  std::mutex mutex_;
  std::deque<uint32_t> on_the_way_;
  uint64_t bytes_left_;  // that more shadows may take
};

}  // namespace ferry::client
