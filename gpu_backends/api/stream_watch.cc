#include "gpu_backends/api/stream_watch.h"

#include <sched.h>

namespace ferry::gpu {
namespace {

std::atomic<StreamWatcher*> watcher_now{nullptr};
std::atomic<uint32_t> tellers{0};  // threads that may be in a call of it
std::atomic<uint32_t> streams{0};

}  // namespace

std::atomic<bool> StreamWorkScope::watched_{false};

// A teller counts itself before it looks for the watcher, and the watcher is taken away before the
// tellers are counted: both in one order for all threads, so one of the two sees the other.
void SetStreamWatcher(StreamWatcher* watcher) {
  StreamWorkScope::watched_.store(watcher != nullptr, std::memory_order_relaxed);
  watcher_now.store(watcher, std::memory_order_seq_cst);
  while (tellers.load(std::memory_order_seq_cst) != 0) {
    sched_yield();
  }
}

uint32_t NextStreamNumber() { return streams.fetch_add(1, std::memory_order_relaxed); }

void StreamWorkScope::Tell() const {
  tellers.fetch_add(1, std::memory_order_seq_cst);
  if (StreamWatcher* const watcher = watcher_now.load(std::memory_order_seq_cst);
      watcher != nullptr) {
    watcher->NoteDone(stream_, work_, bytes_, begin_ns_);
  }
  tellers.fetch_sub(1, std::memory_order_release);
}

}  // namespace ferry::gpu
