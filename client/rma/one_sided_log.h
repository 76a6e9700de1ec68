// The numbered operations of a rank that are under way with ranks of other nodes
// (shm/layout/one_sided_layout.h), and which context has begun each: so a quiet knows which
// operations it waits for, and a failure finds its context, since the daemon tells only the
// operation's number.
//
// Neighbouring operations of one context with one rank are one *run*. There are at most kMost
// operations, since the session has room for so many failures.
//
// Calling thread: one at a time (RemoteOperations locks, where several may call).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "client/rma/one_sided_context.h"
#include "shm/layout/one_sided_layout.h"

namespace ferry::client {

class OneSidedLog {
 public:
  static constexpr uint64_t kMost = shm::kFailures;

  // An operation that a context has begun.
  struct Begun {
    uint32_t rank;
    uint64_t number;
  };

  // True: there is no room for another operation until some are over and forgotten.
  bool is_full() const { return count_ >= kMost; }

  // Adds an operation that has begun. Numbers of one rank grow by one. `is_silent`: it has no
  // answer, so that only OneSidedFailure tells of its failure.
  void Add(OneSidedContext* context, uint32_t rank, uint64_t number, bool is_silent) {
    ++count_;
    if (!runs_.empty()) {
      Run& last = runs_.back();
      if (last.rank == rank && last.context == context && last.is_silent == is_silent) {
        last.last = number;
        return;
      }
    }
    runs_.push_back({context, number, number, 0, rank, is_silent});
  }

  // Appends the last operation of each of the context's runs, with one rank or with all. Once these
  // are over, all operations of the context are.
  void List(const OneSidedContext* context, std::optional<uint32_t> with,
            std::vector<Begun>* begun) const {
    for (const Run& run : runs_) {
      if (run.context == context && (!with || *with == run.rank)) {
        begun->push_back({run.rank, run.last});
      }
    }
  }

  // Returns the newest of the context's operations that is not over. `done(rank)`: the number of
  // the last operation with that rank that is over.
  template <typename Done>
  std::optional<Begun> FindUnderWay(const OneSidedContext* context, Done&& done) const {
    const auto run = std::find_if(runs_.rbegin(), runs_.rend(), [&](const Run& candidate) {
      return candidate.context == context && candidate.last > done(candidate.rank);
    });
    return run == runs_.rend() ? std::nullopt : std::optional(Begun{run->rank, run->last});
  }

  // Calls visit(context) for each run that has silent operations with `rank` from `first` to
  // `last`.
  template <typename Visitor>
  void ForEachSilent(uint32_t rank, uint64_t first, uint64_t last, Visitor&& visit) const {
    for (const Run& run : runs_) {
      if (run.rank == rank && run.is_silent && run.context != nullptr && run.first <= last &&
          run.last >= first) {
        visit(*run.context);
      }
    }
  }

  // Look and ForgetOver forget, in two steps, the operations that are over. In between the caller
  // reads the failures: those of all operations that Look has found over are there by then.
  // `done(rank)`: the number of the last operation with that rank that is over.
  template <typename Done>
  void Look(Done&& done) {
    for (Run& run : runs_) {
      run.done = done(run.rank);
    }
  }
  void ForgetOver() {
    count_ = 0;
    size_t kept = 0;
    for (Run run : runs_) {
      run.first = std::max(run.first, run.done + 1);
      if (run.first <= run.last) {
        count_ += run.last - run.first + 1;
        runs_[kept++] = run;
      }
    }
    runs_.resize(kept);
  }

  // Call it before the context is freed: failures of its operations are reported to no context any
  // more.
  void Leave(const OneSidedContext* context) {
    for (Run& run : runs_) {
      run.context = run.context == context ? nullptr : run.context;
    }
  }

 private:
  struct Run {
    OneSidedContext* context;  // null: it has gone
    uint64_t first;
    uint64_t last;
    uint64_t done;  // what done(rank) returned to Look
    uint32_t rank;
    bool is_silent;
  };
  std::vector<Run> runs_;  // in the order in which they were begun
  uint64_t count_ = 0;     // of their operations
};

}  // namespace ferry::client
