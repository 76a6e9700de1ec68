// How a misuse of OpenSHMEM ends the program: the standard gives most calls no way to fail, so
// Ferry reports a mistake that it sees in a sentence, and ends the job (OpenSHMEM 1.5, section 6:
// "the behavior is undefined"). Other failures, such as the death of a PE, end the program in the
// same way, but for calls that a queue makes: those end with an error, which ferry_queue_wait
// returns.
//
// Calling thread: any.
#pragma once

#include <atomic>
#include <string>

#include "common/status.h"

namespace ferry::shmem {

// Prints "libferry: rank 1: shmem_putmem: SENTENCE" on the standard error output, and ends the job
// with exit code 1. Say what is wrong, with PE and argument, and what to do.
[[noreturn]] void Fail(const char* call, const std::string& sentence);
// Ends a call that cannot be carried out for a reason, `error`, that is not the program's fault. It
// does what Fail does; on a thread with a QueueTurn it throws GivenUp instead, so callers hold no
// lock, and leave nothing that must be undone.
[[noreturn]] void GiveUp(const char* call, ErrorCode error, const std::string& sentence);
struct GivenUp {
  Status status;
};
// Ends the call as GiveUp does if it is a queue's call that was cancelled.
void LookForCancellation(const char* call);

// Marks this thread, for the life of the object, as carrying out a call of a queue
// (client/api/host_call.h).
class QueueTurn {
 public:
  explicit QueueTurn(const std::atomic<bool>& is_cancelled);
  ~QueueTurn();
  QueueTurn(const QueueTurn&) = delete;
  QueueTurn& operator=(const QueueTurn&) = delete;
};

// Prints a line of the form of Fail's, after which the program goes on.
void Warn(const char* call, const std::string& sentence);

// Returns "0x7f..." for messages.
std::string AddressText(const void* address);

}  // namespace ferry::shmem
