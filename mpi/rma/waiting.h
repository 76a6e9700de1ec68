// Waits for words that other ranks change (client/api/word_wait.h), which a death ends.
//
// Calling thread: that of the call. Blocks.
#pragma once

#include "client/api/word_wait.h"
#include "mpi/base/connection.h"
#include "mpi/base/failure.h"

namespace ferry::mpi {

inline constexpr uint64_t kLongestRestNs = 2'000'000;

// Returns once look() is true, or once it is still false after deaths(), called in long waits, has
// returned an error: so a word that a rank stored before it died counts.
template <typename Look, typename Deaths>
Failure AwaitWords(client::WordWait::From from, Look&& look, Deaths&& deaths) {
  if (look()) {
    return {};
  }
  client::WordWait wait(*front_end, from, kLongestRestNs);
  ErrorCode death = ErrorCode::kOk;
  for (;;) {
    if (!wait.Pause()) {
      const ErrorCode own = front_end->poison();
      if (own != ErrorCode::kOk) {
        return FailureOf(own);
      }
      death = deaths();
      if (death == ErrorCode::kOk) {
        wait.Rest();
      }
    }
    if (look()) {
      return {};
    }
    if (death != ErrorCode::kOk) {
      return FailureOf(death);
    }
  }
}

}  // namespace ferry::mpi
