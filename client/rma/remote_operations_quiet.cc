// RemoteOperations: ends and failures of operations. See remote_operations.h.
#include "client/rma/remote_operations.h"
#include "shm/atomic.h"

namespace ferry::client {

// The caller of this function, and of the next, holds the lock.
bool RemoteOperations::HasLong(const OneSidedContext& context, std::optional<uint32_t> with) const {
  return answers_.Any([&](const Expected& expected) {
    return expected.is_long && expected.context == &context && (!with || *with == expected.rank);
  });
}

// Returns true if no operation with that rank is under way, or about to be.
bool RemoteOperations::IsQuietWith(uint32_t rank) {
  const auto is_with = [rank](const Expected& expected) {
    return expected.is_long && expected.rank == rank;
  };
  if (ways_.IsEntered(rank) || answers_.LastOver(rank) < issued_[rank]) {
    return false;
  }
  if (answers_.Any(is_with)) {
    answers_.Harvest();
  }
  return !answers_.Any(is_with);
}

// Waits until the daemon has judged a lost link: the rank hears of the loss first, and then from
// its daemon whether the other rank has died. The caller does not hold the lock.
ErrorCode RemoteOperations::Judged(uint32_t rank, ErrorCode error) {
  if (error != ErrorCode::kLinkDown || !progress_.MayHaveLinks()) {
    return error;
  }
  auto is_judged = [&] {
    // A turn that ends operations tells the engine before it gives the lease back.
    (void)progress_.UnderLease([](engine::Effects&) { return ErrorCode::kOk; });
    return progress_.PeerState(rank) != ErrorCode::kOk ||
           progress_.paths().PathTo(rank) != shm::PeerPath::kBroken;
  };
  if (!is_judged()) {
    Wait(rank, is_judged);
  }
  const ErrorCode state = progress_.PeerState(rank);
  return state != ErrorCode::kOk ? state : error;
}

void RemoteOperations::Fence(OneSidedContext& context) {
  auto is_over = [&] {
    const auto lock = Lock();
    if (HasLong(context, std::nullopt)) {
      answers_.Harvest();
    }
    return !HasLong(context, std::nullopt);
  };
  if (!is_over()) {
    Wait(progress_.view().rank, is_over);
  }
}

// Waits for the operations begun so far, not for those that other threads begin meanwhile.
ErrorCode RemoteOperations::Quiet(OneSidedContext& context, std::optional<uint32_t> with,
                                  uint32_t* failed_rank) {
  std::vector<OneSidedLog::Begun> begun;
  {
    const auto lock = Lock();
    log_.List(&context, with, &begun);
    if (begun.empty() && !context.has_failures() && !HasLong(context, with)) {
      return ErrorCode::kOk;
    }
  }
  size_t next = 0;  // all before it are over
  auto is_over = [&] {
    while (next < begun.size() && answers_.LastOver(begun[next].rank) >= begun[next].number) {
      ++next;
    }
    if (next != begun.size()) {
      return false;
    }
    const auto lock = Lock();
    answers_.Harvest();
    return !HasLong(context, with);
  };
  while (!is_over()) {
    Wait(next < begun.size() ? begun[next].rank : with.value_or(progress_.view().rank), is_over);
    if (progress_.poison() != ErrorCode::kOk) {
      *failed_rank = progress_.view().rank;
      return progress_.poison();
    }
  }
  ErrorCode error = ErrorCode::kOk;
  {
    const auto lock = Lock();
    TakeFailures();
    error = context.TakeFailures(with, failed_rank);
  }
  return error == ErrorCode::kOk ? error : Judged(*failed_rank, error);
}

// The operation that was under way at the last call mostly still is, so asking again costs one
// load.
bool RemoteOperations::IsQuiet(OneSidedContext& context) {
  if (progress_.poison() != ErrorCode::kOk) {
    return true;
  }
  const auto lock = Lock();
  OneSidedContext::Awaited& awaited = context.awaited;
  if (answers_.LastOver(awaited.rank) < awaited.number) {
    return false;
  }
  if (const auto found =
          log_.FindUnderWay(&context, [this](uint32_t rank) { return answers_.LastOver(rank); })) {
    awaited = {found->rank, found->number};
    return false;
  }
  return !answers_.AwaitsLong(context);
}

// Tells the contexts which operations have failed, then forgets those that are over. Before that it
// takes their answers, of all contexts, since a quiet does not look for a forgotten operation. The
// caller holds the lock.
void RemoteOperations::TakeFailures() {
  log_.Look([this](uint32_t rank) { return answers_.LastOver(rank); });
  answers_.Harvest();
  for (uint32_t core = 0; core < shm::kOneSidedCores; ++core) {
    TakeFailures(progress_.view().layout->failures[core], &failures_taken_[core]);
  }
  log_.ForgetOver();
}

void RemoteOperations::TakeFailures(const shm::OneSidedFailures& failures, uint64_t* taken) {
  const uint64_t count = shm::LoadAcquire(failures.count);  // Pairs with OneSided::End.
  for (; *taken != count; ++*taken) {
    const shm::OneSidedFailure& failure = failures.entries[*taken % shm::kFailures];
    log_.ForEachSilent(failure.peer, failure.first, failure.last, [&](OneSidedContext& context) {
      context.NoteFailure(failure.peer, static_cast<ErrorCode>(failure.error));
    });
  }
}

void RemoteOperations::AwaitAll() {
  for (uint32_t rank = 0; rank < issued_.size(); ++rank) {
    if (issued_[rank] == 0) {
      continue;  // of most ranks, and their words are to stay untouched
    }
    auto is_over = [&] { return answers_.LastOver(rank) >= issued_[rank]; };
    if (!is_over()) {
      Wait(rank, is_over);
    }
  }
  auto is_silent = [&] {  // the long ones, too
    const auto lock = Lock();
    answers_.Harvest();
    return answers_.is_empty();
  };
  if (!is_silent()) {
    Wait(progress_.view().rank, is_silent);
  }
}

}  // namespace ferry::client
