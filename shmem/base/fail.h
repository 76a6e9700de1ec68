// How a misuse of OpenSHMEM ends the program: the standard gives most calls no way to fail, so a
// mistake that Ferry sees is told in a sentence, and the job ends (OpenSHMEM 1.5, section 6: "the
// behavior is undefined"). What is no mistake, such as a PE that has died, ends the program in the
// same way, but for calls that a queue makes: those end with an error, which ferry_queue_wait
// returns.
//
// Calling thread: any.
#pragma once

#include <atomic>
#include <string>

#include "common/status.h"

namespace ferry::shmem {

// "libferry: rank 1: shmem_putmem: SENTENCE" on the standard error output; then the job ends with
// exit code 1. Say what is wrong, with PE and argument, and what to do.
[[noreturn]] void Fail(const char* call, const std::string& sentence);
// The call cannot be carried out, and the program is not to blame: `error` is why. As Fail; on a
// thread with a QueueTurn it throws GivenUp instead, so nothing that must be undone is left to the
// caller, and no lock is held.
[[noreturn]] void GiveUp(const char* call, ErrorCode error, const std::string& sentence);
struct GivenUp {
  Status status;
};
// Ends the call, in the same way, if it is a queue's and nobody waits for it any more.
void LookForCancellation(const char* call);

// This thread carries a call of a queue out for as long as it lives (client/api/host_call.h).
class QueueTurn {
 public:
  explicit QueueTurn(const std::atomic<bool>& is_cancelled);
  ~QueueTurn();
  QueueTurn(const QueueTurn&) = delete;
  QueueTurn& operator=(const QueueTurn&) = delete;
};

// A line of the form of Fail's, after which the program goes on.
void Warn(const char* call, const std::string& sentence);

// "0x7f..." for messages.
std::string AddressText(const void* address);

}  // namespace ferry::shmem
