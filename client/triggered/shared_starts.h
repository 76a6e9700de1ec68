// One doorbell for several ready sends, or receives of such, that are started together: a stream
// stores into one word, and the NIC's one trigger for all of them fires ("Co-Design and Evaluation
// of a CPU-Free MPI GPU Communication Abstraction and Implementation", section V-A). Of other pairs
// each end counts its own starts, together with the other end's.
//
// Requests share from the first call that starts them together, for as long as each call starts all
// of them. One that is started otherwise leaves; the others go on. Which starts the shared doorbell
// counts is said in each end's block (ChannelLayout::shares), and changes to another doorbell only
// while nothing of the end is under way.
//
// Calling thread: any; a lock is held for the length of a call. Blocks only to make the rank's
// heap.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "client/triggered/channel.h"
#include "common/status.h"
#include "shm/layout/counter_layout.h"

namespace ferry::client {

// The doorbell of some requests. It only ever grows, whoever shares it next.
struct SharedStart {
  shm::CounterLayout* word = nullptr;
  uint64_t offset = 0;  // in the rank's heap, where the ends of its requests are, too
  uint64_t rings = 0;   // that were enqueued
  uint32_t sharers = 0;
  uint32_t users = 0;    // ends whose blocks name it
  bool is_lost = false;  // a stream may still store into it: of a request that failed before
};

class SharedStarts {
 public:
  struct Heap {
    std::function<StatusOr<void*>(uint64_t bytes)> allocate;
    std::function<uint64_t(const void*)> offset_of;
  };
  explicit SharedStarts(Heap heap) : heap_(std::move(heap)) {}
  SharedStarts(const SharedStarts&) = delete;
  SharedStarts& operator=(const SharedStarts&) = delete;

  // Whether starts of the end may be shared: the NIC fires it by nothing else.
  static bool MayShare(const Channel& channel) {
    return !channel.local && channel.mode == shm::SendMode::kReady;
  }
  // The channels, all of which may share, are about to be started by one call: the doorbell that
  // starts all of them, or null: each has its own. After all of them are enqueued: Ring.
  SharedStart* Join(std::span<Channel* const> channels);
  // What to store into the word.
  static uint64_t Ring(SharedStart& shared) { return ++shared.rings; }
  // The next start is by the channel's own doorbell.
  void Leave(Channel& channel) {
    if (channel.shares) {
      const std::lock_guard lock(mutex_);
      LeaveLocked(channel);
    }
  }
  // The daemon knows the channel no more.
  void Forget(Channel& channel);

 private:
  void LeaveLocked(Channel& channel);
  void Drop(Channel& channel);
  SharedStart* Take();

  const Heap heap_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<SharedStart>> all_;
  std::vector<SharedStart*> free_;
};

}  // namespace ferry::client
