// The thread that moves the messages of matched pairs for one stream whose device has no kernel for
// it: the stream tells it where it has got to, and goes on; who waits, waits for the pair's words.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "common/status.h"
#include "gpu_backends/api/copy_streams.h"
#include "gpu_backends/api/stream.h"

namespace ferry::gpu {

// Thread-safe. The thread starts with the first message and sleeps when idle.
class MoveHelper {
 public:
  // `copies` outlives this.
  explicit MoveHelper(CopyStreams& copies) : copies_(copies) {}
  ~MoveHelper();
  MoveHelper(const MoveHelper&) = delete;
  MoveHelper& operator=(const MoveHelper&) = delete;

  // Before messages are begun: kSystem if the thread cannot start.
  Status Start();
  // The stream is at the start of a round (shm::BeginMove). Does not block.
  void Begin(const MatchedMove& move);
  // Finishes the message that it is at, drops the others, and ends the thread.
  void Stop();

 private:
  void Main();
  void Move(const MatchedMove& move);

  CopyStreams& copies_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<MatchedMove> begun_;
  bool stopped_ = false;
  std::thread thread_;
};

// What a stream does when it has passed the wait for a round: closes a pair that has failed, so
// that nobody touches its memory any more.
void CloseFailedPair(const MatchedMove& move);

}  // namespace ferry::gpu
