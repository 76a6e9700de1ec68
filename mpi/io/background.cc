#include "mpi/io/background.h"

#include <utility>

#include "coll/problem.h"
#include "mpi/base/connection.h"
#include "mpi/coll/helper.h"

namespace ferry::mpi {

BackgroundCalls* BackgroundCalls::Find(File& file) {
  return static_cast<BackgroundCalls*>(file.background().get());
}

BackgroundCalls& BackgroundCalls::Of(File& file) {
  if (!file.background()) {
    file.background() = MakeRef<BackgroundCalls>(file.comm());
  }
  return *Find(file);
}

// The calls keep the file, and so its communicator, while they are under way; nothing else uses the
// channel.
BackgroundCalls::BackgroundCalls(Comm& comm)
    : channel_(Channel::Of(comm)),
      number_(channel_.NextPersistentNumber()),
      fiber_([this] { Work(); }) {}

BackgroundCalls::~BackgroundCalls() = default;

uint64_t BackgroundCalls::Add(BackgroundCall* call, const char* function) {
  last_ = {channel_.CountCall(), function};
  const uint64_t number = last_.number;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(call);
    busy_.fetch_add(1, std::memory_order_relaxed);
  }
  // First: other threads are allowed from then on, and the call may need them at once.
  Watch(Ref<Object>::Share(this), this);
  Advance();
  return number;
}

void BackgroundCalls::Advance() {
  looks_.fetch_add(1, std::memory_order_relaxed);
  bool has_ended = false;
  {
    const std::lock_guard lock(mutex_);
    has_ended = AdvanceLocked();
  }
  if (has_ended) {
    front_end->peers->WakeThreads();  // another one may wait for just that
  }
}

// Returns true if a call has ended.
bool BackgroundCalls::AdvanceLocked() {
  const uint64_t before = ended_;
  if (!queue_.empty()) {
    fiber_.Resume();
  }
  return ended_ != before;
}

Failure BackgroundCalls::AwaitIdle() {
  const Ref<Object> keeps_this = Ref<Object>::Share(this);
  const Waiting waiting(this);
  if (IsMeeting()) {
    front_end->calls->NoteNumber(last_.number);  // it does not wait for the system
  }
  Await(
      last_,
      [](void* self) {
        auto& calls = *static_cast<BackgroundCalls*>(self);
        calls.Advance();
        return !calls.IsBusy();
      },
      this);
  return IsBusy() ? FailureOf(front_end->poison()) : Failure();
}

void BackgroundCalls::Await(const CallWatch::Call& call, bool (*done)(void*), void* argument) {
  struct Wait {
    const BackgroundCalls& calls;
    bool (*const done)(void*);
    void* const argument;
    bool is_meeting = false;
    bool is_over = false;
    static bool Look(void* self) {
      auto& wait = *static_cast<Wait*>(self);
      wait.is_over = wait.done(wait.argument);
      return wait.is_over || wait.calls.IsMeeting() != wait.is_meeting;
    }
  } wait{*this, done, argument};
  do {
    wait.is_meeting = IsMeeting();
    if (wait.is_meeting) {
      channel_.AwaitCall(call, &Wait::Look, &wait);
    } else {
      front_end->peers->WaitFor(&Wait::Look, &wait);
    }
    if (!wait.is_over) {
      front_end->calls->NoteChange();
    }
  } while (!wait.is_over && front_end->poison() == ErrorCode::kOk);
}

bool BackgroundCalls::IsLookedAfter() {
  const uint64_t looks = looks_.load(std::memory_order_relaxed);
  return std::exchange(seen_looks_, looks) != looks || waiting_ != 0;
}

Watched::Progress BackgroundCalls::AdvanceAll() {
  const std::lock_guard lock(mutex_);
  const bool has_ended = AdvanceLocked();
  return {.is_busy = IsBusy(), .has_ended = has_ended};
}

// ---- On the fiber -------------------------------------------------------------------------------

void BackgroundCalls::Work() {
  for (;;) {
    while (queue_.empty()) {
      fiber_.Suspend();
    }
    BackgroundCall* const call = queue_.front();
    call->CarryOut(*this);
    queue_.pop_front();
    ++ended_;
    busy_.fetch_sub(1, std::memory_order_release);  // Pairs with IsBusy: the file's memory is free.
    call->EndCall();
  }
}

// A rank whose link is cut off may go on later, and messages to it that are lost fail by
// themselves.
bool BackgroundCalls::IsDeathKnown() const {
  for (int peer = 0; peer < channel_.size(); ++peer) {
    const ErrorCode state =
        front_end->peers->PeerState(static_cast<uint32_t>(channel_.WorldRank(peer)));
    if (state != ErrorCode::kOk && state != ErrorCode::kNotFound && state != ErrorCode::kLinkDown) {
      return true;
    }
  }
  return false;
}

Failure BackgroundCalls::Gather(const void* own, size_t bytes, void* all) {
  collective::Problem problem;
  problem.collective = collective::Collective::kAllgather;
  problem.block_bytes = bytes;
  problem.rank = channel_.self();
  problem.size = channel_.size();
  collective::Binding binding;
  binding.input = own;
  binding.output = all;
  Channel::Taken taken = channel_.Take(problem);
  const collective::CollectiveRun& run = *taken.run();
  channel_.StartPersistent(taken.run(), binding, number_);
  is_meeting_.store(true, std::memory_order_relaxed);
  while (!channel_.Advance(run)) {
    if (front_end->poison() != ErrorCode::kOk) {  // messages that have not ended by now never do
      taken.Abandon();
      is_meeting_.store(false, std::memory_order_relaxed);
      return FailureOf(front_end->poison());
    }
    if (IsDeathKnown()) {
      channel_.GiveUp(taken.run());
    }
    if (!channel_.Advance(run)) {
      fiber_.Suspend();
    }
  }
  is_meeting_.store(false, std::memory_order_relaxed);
  collective::RunFailure failure = run.failure();
  channel_.GiveBack(std::move(taken));
  channel_.BlameEndedRank(&failure);
  return failure.code == ErrorCode::kOk ? Failure{} : DescribeFailedRun(failure);
}

namespace {

// Work of the thread's, for which the fiber waits.
class Errand : public IoWork {
 public:
  explicit Errand(IoWork* work) : work_(*work) {}

  bool is_done() const { return is_done_.load(std::memory_order_acquire); }

  State Work() override {
    const State state = work_.Work();
    if (state == State::kOver) {
      // Pairs with is_done: the fiber may go on, and this be gone.
      is_done_.store(true, std::memory_order_release);
      front_end->peers->WakeThreads();
    }
    return state;
  }

 private:
  IoWork& work_;
  std::atomic<bool> is_done_{false};
};

}  // namespace

void BackgroundCalls::Do(IoWork* work, IoLine line) {
  Errand errand(work);
  if (GiveToIoThread(&errand, line)) {
    while (!errand.is_done()) {
      fiber_.Suspend();
    }
    return;
  }
  while (work->Work() != IoWork::State::kOver) {
    fiber_.Suspend();
  }
}

}  // namespace ferry::mpi
