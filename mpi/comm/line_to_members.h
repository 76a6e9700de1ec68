// A line by libferry: messages between processes of a list, in a context of their own.
//
// Calling thread: any, one at a time for one context and tag. Blocks, unless SetPause has set a
// pause.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "client/api/front_end.h"
#include "mpi/comm/agree.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/rank_set.h"

namespace ferry::mpi {

// Learns of long waits.
class LongWait {
 public:
  virtual ~LongWait() = default;
  // Returns when Look has something to do (MonotonicNs); UINT64_MAX: never.
  virtual uint64_t end_ns() const = 0;
  virtual void Look() = 0;
  // Called while waiting. Does not block.
  virtual void Listen() = 0;
};

class LineToMembers : public Line {
 public:
  // Rank r of the line is the process that `members` has at (first + r) modulo their number.
  LineToMembers(uint32_t context, RankSet members, int tag = 0, int first = 0)
      : context_(context), tag_(tag), first_(first), members_(std::move(members)) {}

  // Receives tell `wait` of their waiting. It outlives the line.
  void SetWait(LongWait* wait) { wait_ = wait; }
  // Sends and receives call `pause` again and again in place of blocking.
  void SetPause(std::function<void()> pause) { pause_ = std::move(pause); }

  Failure Send(int rank, const void* data, size_t size_bytes) override;
  Failure Receive(int rank, void* data, size_t size_bytes) override;

 private:
  client::Message MessageTo(int rank, const void* data, size_t size_bytes) const;

  const uint32_t context_;
  const int tag_;
  const int first_;
  const RankSet members_;
  LongWait* wait_ = nullptr;
  std::function<void()> pause_;
};

}  // namespace ferry::mpi
