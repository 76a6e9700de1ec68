// A context (client/api/one_sided.h) remembers between two quiets which of its operations with
// ranks of other nodes have failed. The rank's OneSidedLog holds those that are under way.
//
// Operations inside the node are over when their call returns, so they leave nothing here.
//
// Calling thread: one at a time (RemoteOperations locks, where several may call).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/error_code.h"

namespace ferry::client {

class OneSidedContext {
 public:
  // The operation, with that rank, that kept the context from being quiet when IsQuiet was called
  // last. Number 0: none.
  struct Awaited {
    uint32_t rank = 0;
    uint64_t number = 0;
  };
  Awaited awaited;

  // Notes that an operation has failed that no call waited for. Keeps the first failure of each
  // rank.
  void NoteFailure(uint32_t rank, ErrorCode error) {
    const bool is_known = std::any_of(failures_.begin(), failures_.end(),
                                      [rank](const Failure& other) { return other.rank == rank; });
    if (!is_known) {
      failures_.push_back({rank, error});
    }
  }
  bool has_failures() const { return !failures_.empty(); }

  // Forgets the failures, or only those with that rank. Returns the first of them, and which rank
  // it was with; kOk: there were none.
  ErrorCode TakeFailures(std::optional<uint32_t> with, uint32_t* rank) {
    ErrorCode first = ErrorCode::kOk;
    std::erase_if(failures_, [&](const Failure& failure) {
      const bool is_asked_for = !with || *with == failure.rank;
      if (is_asked_for && first == ErrorCode::kOk) {
        first = failure.error;
        *rank = failure.rank;
      }
      return is_asked_for;
    });
    return first;
  }

 private:
  struct Failure {
    uint32_t rank;
    ErrorCode error;
  };
  std::vector<Failure> failures_;  // in the order in which they were found
};

}  // namespace ferry::client
