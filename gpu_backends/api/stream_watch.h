// Tells a measured rank (client/profile) what the streams of its process have done: those whose
// work the process does itself, which are the streams of the host backend. Devices do theirs
// unseen.
//
// Calling thread: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/clock.h"

namespace ferry::gpu {

enum class StreamWork : uint8_t {
  kNone,  // takes no time, and is not told
  kCopy,
  kReduction,
  kMove,       // a message of matched ends
  kMoveWait,   // for such a message
  kEventWait,  // for an event of another stream
  kValueWait,  // for a value in memory
  kHostCall,   // a function of the host
};

class StreamWatcher {
 public:
  // The stream that the process numbers so has done that, from `begin_ns` (CLOCK_MONOTONIC) until
  // now; also where it has failed. Called by the stream's thread. Must not block.
  virtual void NoteDone(uint32_t stream, StreamWork work, uint64_t bytes, uint64_t begin_ns) = 0;

 protected:
  ~StreamWatcher() = default;
};

// One for the process; null: none. Returns once no thread is in a call of the one before, which
// may go then.
void SetStreamWatcher(StreamWatcher* watcher);

// Returns a number for a stream, from 0 on.
uint32_t NextStreamNumber();

// While it exists, a stream does some work.
class StreamWorkScope {
 public:
  StreamWorkScope(uint32_t stream, StreamWork work, uint64_t bytes)
      : stream_(stream), work_(work), bytes_(bytes) {
    if (work_ != StreamWork::kNone && watched_.load(std::memory_order_relaxed)) [[unlikely]] {
      begin_ns_ = MonotonicNs();
    }
  }
  ~StreamWorkScope() {
    if (begin_ns_ != 0) [[unlikely]] {
      Tell();
    }
  }
  StreamWorkScope(const StreamWorkScope&) = delete;
  StreamWorkScope& operator=(const StreamWorkScope&) = delete;

 private:
  friend void SetStreamWatcher(StreamWatcher* watcher);

  void Tell() const;

  static std::atomic<bool> watched_;

  const uint32_t stream_;
  const StreamWork work_;
  const uint64_t bytes_;
  uint64_t begin_ns_ = 0;
};

}  // namespace ferry::gpu
