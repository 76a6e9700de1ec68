#include "client/triggered/program.h"

#include <algorithm>

namespace ferry::client {

using Kind = ProgramStep::Kind;

namespace {

// Returns true if `failure` says more than `known`: that a partner has given up is no cause.
bool SaysMore(ErrorCode failure, ErrorCode known) {
  return known == ErrorCode::kOk ||
         (known == ErrorCode::kInvalidRequest && failure != ErrorCode::kOk);
}

}  // namespace

Program::Program(std::string name, std::vector<uint32_t> requests, std::vector<ProgramStep> steps,
                 shm::CounterLayout* over, Pairs* pairs)
    : name_(std::move(name)),
      requests_(std::move(requests)),
      over_(over),
      pairs_(*pairs),
      by_rank_(this, pairs) {
  std::vector<uint32_t> to_check;
  for (ProgramStep& step : steps) {
    if (step.kind == Kind::kStart && !to_check.empty()) {
      Step look;
      look.kind = Kind::kCall;
      look.to_check = std::exchange(to_check, {});
      steps_.push_back(std::move(look));
    }
    Step own;
    static_cast<ProgramStep&>(own) = std::move(step);
    if (own.kind == Kind::kWait) {
      to_check.push_back(own.request);
    } else if (own.kind == Kind::kCall) {
      own.to_check = std::exchange(to_check, {});
    }
    steps_.push_back(std::move(own));
  }
  Step last;
  last.kind = Kind::kCall;
  last.to_check = std::move(to_check);
  last.is_last = true;
  steps_.push_back(std::move(last));
  const auto tail = std::find_if(steps_.begin(), steps_.end(), [](const Step& step) {
    return step.kind == Kind::kWait || step.kind == Kind::kCall;
  });
  opening_ = static_cast<size_t>(tail - steps_.begin());
  is_aside_ =
      std::any_of(tail, steps_.end(), [](const Step& step) { return step.kind == Kind::kStart; });
  for (Step& step : steps_) {
    step.program = this;
  }
}

size_t Program::EndOfStarts(size_t first, size_t end) const {
  const auto begin = steps_.begin();
  return static_cast<size_t>(
      std::find_if(begin + static_cast<ptrdiff_t>(first), begin + static_cast<ptrdiff_t>(end),
                   [](const Step& step) { return step.kind != Kind::kStart; }) -
      begin);
}

Status Program::CheckStart() {
  if (error() != ErrorCode::kOk) {
    return {error(), "the " + name_ + " has failed (" + ErrorCodeText(error()) +
                         "): free it, make it and match it anew"};
  }
  if (wants_wait || by_rank_.is_under_way()) {
    return {ErrorCode::kInvalidRequest,
            by_rank_.is_under_way()
                ? "the rank has started the " + name_ + " itself: wait for it first"
                : "a start of the " + name_ + " was enqueued before and has no wait yet"};
  }
  if (members_.empty()) {
    FERRY_RETURN_IF_ERROR(FindMembers());
  }
  const Pair* failed = nullptr;
  ErrorCode failure = ErrorCode::kOk;
  for (const Pair* const pair : members_) {
    if (const ErrorCode its = pair->FailureOfNext();
        its != ErrorCode::kOk && SaysMore(its, failure)) {
      failed = pair;
      failure = its;
    }
  }
  if (failed == nullptr) {
    return {};
  }
  FailAfterThis(failure);
  return {failure, "the " + name_ + " has failed, together with that of rank " +
                       std::to_string(failed->peer) + " (" + ErrorCodeText(failure) +
                       "): free it, make it and match it anew"};
}

Status Program::Prepare(gpu::GpuBackend* backend, int device) {
  if (passed_ == nullptr) {
    auto passed = backend->CreateEvent(device);
    FERRY_RETURN_IF_ERROR(passed.status());
    passed_ = std::move(*passed);
  }
  if (is_aside_ && aside_ == nullptr) {
    auto begins = backend->CreateEvent(device);
    FERRY_RETURN_IF_ERROR(begins.status());
    auto aside = backend->CreateStream(device);
    FERRY_RETURN_IF_ERROR(aside.status());
    begins_ = std::move(*begins);
    aside_ = std::move(*aside);
  }
  return {};
}

// Fills the members, once: streams look at them from then on.
Status Program::FindMembers() {
  std::vector<Pair*> members;
  for (const uint32_t request : requests_) {
    Pair* const pair = pairs_.Find(request);
    if (pair == nullptr || pairs_.Settle(*pair) == ErrorCode::kWouldBlock) {
      return {ErrorCode::kInvalidRequest,
              "the " + name_ + " is not matched yet: complete its match first"};
    }
    members.push_back(pair);
  }
  members_ = std::move(members);
  for (const Step& step : steps_) {
    if (!step.follows.empty()) {
      FERRY_RETURN_IF_ERROR(Follow(step));
    }
  }
  for (const Pair* const pair : members_) {
    // Steps work on whole messages.
    if (const uint64_t expected = pairs_.OwnBytes(*pair);
        pair->stage == Pair::Stage::kMatched && pair->size_bytes != expected) {
      Part(ErrorCode::kTruncated);
      return {ErrorCode::kTruncated, "rank " + std::to_string(pair->peer) + " called the " + name_ +
                                         " with another count or datatype: a message has " +
                                         std::to_string(pair->size_bytes) + " bytes in place of " +
                                         std::to_string(expected)};
    }
  }
  return {};
}

Status Program::Follow(const Step& step) {
  std::vector<Pair*> followed;
  bool has_failed = PairOf(step).Failure() != ErrorCode::kOk;
  for (const uint32_t request : step.follows) {
    followed.push_back(members_[request]);
    has_failed |= followed.back()->Failure() != ErrorCode::kOk;
  }
  if (has_failed) {
    return {};  // CheckStart says so
  }
  if (const ErrorCode error = pairs_.Follow(PairOf(step), followed); error != ErrorCode::kOk) {
    Part(error);
    return {error, "the " + name_ + " cannot chain its messages"};
  }
  return {};
}

bool Program::IsEnqueued() const {
  return wants_wait || (passed_ != nullptr && passed_->Query().code() == ErrorCode::kWouldBlock);
}

void Program::Fail(ErrorCode error) {
  wants_wait = false;
  StopAside();
  Part(error);
}

// A partner has gone. The start under way may still succeed, but there is no next start. The other
// partners may have enqueued theirs, so they have to learn of it.
void Program::FailAfterThis(ErrorCode error) {
  // Pairs with Run: it sees this, or has counted the last start.
  fails_next_.exchange(static_cast<int32_t>(error), std::memory_order_acq_rel);
  if (shm::Counter(over_).Value() >= starts) {  // else the last step sees what was stored
    StopAside();
    Part(error);
  }
}

void Program::Part(ErrorCode error) {
  for (Pair* const pair : members_) {
    pairs_.Abandon(*pair, error);
  }
  shm::Counter(over_).Fail(error);  // last: the program may be freed from now on
}

Status Program::Run(const Step& step, uint64_t round) {
  // Ends the stream aside; a program's stream has to go on.
  const Status stop =
      is_aside_ ? Status(ErrorCode::kCancelled, "the " + name_ + " has failed") : Status();
  if (error() != ErrorCode::kOk) {
    return stop;
  }
  ErrorCode result = ErrorCode::kOk;
  for (const uint32_t request : step.to_check) {
    const Pair& pair = *members_[request];
    if (pair.Done() < round) {
      const ErrorCode failure = pair.Failure();
      if (SaysMore(failure, result)) {
        result = failure != ErrorCode::kOk ? failure : ErrorCode::kInternal;
      }
    }
  }
  if (result == ErrorCode::kOk && step.call) {
    result = step.call();
  }
  if (result != ErrorCode::kOk) {
    Part(result);
    return stop;
  }
  if (step.is_last) {
    shm::Counter(over_).Add(1);  // Pairs with the wait of the queue's stream.
    // Pairs with FailAfterThis.
    if (const int32_t next = fails_next_.fetch_add(0, std::memory_order_acq_rel); next != 0) {
      Part(static_cast<ErrorCode>(next));
    }
  }
  return {};
}

}  // namespace ferry::client
