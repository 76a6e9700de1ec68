// What a context (client/core/one_sided.h) remembers: of each rank of another node that it has had
// to do with since the last Quiet, which of the operations with it are the context's.
//
// Operations inside the node are over when their call returns, so they leave nothing here, and a
// context that has only such ones is as good as empty.
//
// Calling thread: one at a time (RemoteOperations locks, where several may call).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/error_code.h"

namespace ferry::client {

class OneSidedContext {
 public:
  // Operations begun with one rank, by their numbers. Those between the first and the last need not
  // all be this context's.
  struct Begun {
    uint32_t rank = 0;
    uint64_t last = 0;
    // Of those that have no answer, so that only OneSidedWords tells whether they failed. 0: none.
    uint64_t first_silent = 0;
    uint64_t last_silent = 0;
  };
  // An answer that was an error, and that no call waited for.
  struct Failure {
    uint32_t rank;
    ErrorCode error;
  };

  // An operation has begun. Numbers of one rank grow.
  void Note(uint32_t rank, uint64_t number, bool has_answer) {
    Begun& begun = With(rank);
    begun.last = number;
    if (!has_answer) {
      begun.first_silent = begun.first_silent == 0 ? number : begun.first_silent;
      begun.last_silent = number;
    }
  }
  void NoteFailure(uint32_t rank, ErrorCode error) { failures_.push_back({rank, error}); }

  // By rank.
  const std::vector<Begun>& begun() const { return begun_; }
  std::vector<Failure>& failures() { return failures_; }

  // Null: there are none.
  Begun* Find(uint32_t rank) {
    const auto place = PlaceOf(rank);
    return place != begun_.end() && place->rank == rank ? &*place : nullptr;
  }
  // Forgets the operations with that rank up to this one.
  void Forget(uint32_t rank, uint64_t number) {
    const auto place = PlaceOf(rank);
    if (place == begun_.end() || place->rank != rank) {
      return;
    }
    if (place->last <= number) {
      begun_.erase(place);
    } else if (place->last_silent <= number) {
      place->first_silent = place->last_silent = 0;
    } else {
      place->first_silent = std::max(place->first_silent, number + 1);
    }
  }

 private:
  std::vector<Begun>::iterator PlaceOf(uint32_t rank) {
    return std::lower_bound(
        begun_.begin(), begun_.end(), rank,
        [](const Begun& other, uint32_t wanted) { return other.rank < wanted; });
  }
  Begun& With(uint32_t rank) {
    // Mostly the same one as the last time.
    if (latest_ < begun_.size() && begun_[latest_].rank == rank) {
      return begun_[latest_];
    }
    auto place = PlaceOf(rank);
    if (place == begun_.end() || place->rank != rank) {
      place = begun_.insert(place, {.rank = rank});
    }
    latest_ = static_cast<size_t>(place - begun_.begin());
    return *place;
  }

  std::vector<Begun> begun_;
  size_t latest_ = 0;
  std::vector<Failure> failures_;
};

}  // namespace ferry::client
