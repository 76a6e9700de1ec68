// Tells the user that a call in which all ranks meet, at the start of a job or at its end, takes
// long: after mpi_warn_after_ms, then after twice as long, and so on.
//
// Calling thread: the one that makes the call, for as long as that takes. Nothing blocks, but for
// the end, which waits for a question that is under way.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "common/status.h"

namespace ferry::client {

class MeetingWatch {
 public:
  // `call`: its name, a literal. `patience_ms` 0: nothing is ever told.
  MeetingWatch(const char* call, uint32_t rank, uint64_t patience_ms);
  ~MeetingWatch();
  MeetingWatch(const MeetingWatch&) = delete;
  MeetingWatch& operator=(const MeetingWatch&) = delete;

  // The time at which to tell next (MonotonicNs); UINT64_MAX: never.
  uint64_t due_ns() const { return due_ns_; }
  bool IsDue() const;
  // Tells the user "MPI_Init has waited for 10 s" and `words`, and doubles the time until the next
  // such warning.
  void Tell(const std::string& words);
  // Doubles it and tells nothing, because another rank does.
  void Skip() { (void)Postpone(); }
  // Tells the user how long the call has waited, and what `ask` answers. A new thread calls `ask`,
  // which may take its time: meanwhile this thread goes on waiting, and shows up as one that waits.
  // Blocks while an earlier `ask` has not returned.
  void TellAnswer(std::function<StatusOr<std::string>()> ask);

 private:
  std::string Postpone();
  void Say(const std::string& begin, const std::string& words) const;

  const char* const call_;
  const uint32_t rank_;
  const uint64_t begin_ns_;
  uint64_t patience_ns_;
  uint64_t due_ns_;
  std::thread asking_;
};

}  // namespace ferry::client
