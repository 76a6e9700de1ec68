// One doorbell for several ends that are started together: ready sends and receives of ready sends
// of one call, and all neighbouring starts of a program. A stream stores into one word, and the
// NIC's one trigger for all of them fires ("Co-Design and Evaluation of a CPU-Free MPI GPU
// Communication Abstraction and Implementation", section V-A).
//
// Requests share from the first call that starts them together, for as long as each call starts all
// of them. A request that is started otherwise leaves; the others go on sharing. Each end's block
// says which starts the shared doorbell counts (PairLayout::shares); this changes to another
// doorbell only while nothing of the end is under way.
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

#include "client/triggered/pair.h"
#include "common/status.h"
#include "shm/layout/counter_layout.h"

namespace ferry::client {

// A doorbell that requests share. Its value only ever grows, whichever requests share it next.
struct SharedStart {
  shm::CounterLayout* word = nullptr;
  uint64_t offset = 0;  // in the rank's heap, where the ends of its requests are, too
  uint64_t rings = 0;   // rings that were enqueued
  uint32_t sharers = 0;
  uint32_t users = 0;    // ends whose blocks name it
  bool is_lost = false;  // a stream may still store into it for a request that failed
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

  // Returns true if the end may share starts. Where its stream reaches the NIC itself, that is
  // better than one store for all, which ferryd has to see.
  static bool MayShareInProgram(const Pair& pair) { return !pair.local && !pair.may_have_page(); }
  // Returns true if an end that is no step of a program may share starts: only the doorbell fires
  // it in the NIC then. Each end of a regular pair counts its own starts together with the other
  // end's.
  static bool MayShare(const Pair& pair) {
    return pair.mode == shm::SendMode::kReady && MayShareInProgram(pair);
  }
  // For pairs that may all share and that one call is about to start: returns the doorbell that
  // starts all of them, or null if each uses its own. Call Ring after all of them are enqueued.
  SharedStart* Join(std::span<Pair* const> pairs);
  // Returns the value to store into the word.
  static uint64_t Ring(SharedStart& shared) { return ++shared.rings; }
  // Makes the pair's next start use its own doorbell.
  void Leave(Pair& pair) {
    if (pair.shares) {
      const std::lock_guard lock(mutex_);
      LeaveLocked(pair);
    }
  }
  // Forgets a pair that the daemon no longer knows.
  void Forget(Pair& pair);

 private:
  void LeaveLocked(Pair& pair);
  void Drop(Pair& pair);
  SharedStart* Take();

  const Heap heap_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<SharedStart>> all_;
  std::vector<SharedStart*> free_;
};

}  // namespace ferry::client
