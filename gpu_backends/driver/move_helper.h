// The thread that moves the messages of matched pairs for one stream whose device has no kernel for
// it. In a step on the host the stream says that it has started a round. If it is then the end that
// moves the message, the thread copies while the stream goes on; waits look at the pair's words.
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

  // Starts the thread; call it before messages are begun. kSystem if it cannot start.
  Status Start();
  // Begins a round that the stream has reached. Does not block.
  void Begin(const MatchedMove& move);
  // Finishes the current message, fails the others, and ends the thread.
  void Stop();

 private:
  void Main();
  void Move(const MatchedMove& move);
  static void Fail(const MatchedMove& move, ErrorCode error);

  CopyStreams& copies_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<MatchedMove> begun_;  // this end is inside the gates of their pairs
  bool stopped_ = false;
  std::thread thread_;
};

// Closes a pair whose round has failed, so that neither end touches the other's memory any more. A
// stream calls it after the wait for the round.
void CloseFailedPair(const MatchedMove& move);

}  // namespace ferry::gpu
