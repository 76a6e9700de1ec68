#include "gpu_backends/driver/stream_state.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "common/sleep.h"
#include "shm/atomic.h"
#include "shm/wait_policy.h"

namespace ferry::gpu {
namespace {

constexpr size_t kTrimFrom = 64;  // waits and points remembered before one looks which are over

Status CancelledStatus() { return {ErrorCode::kCancelled, "the stream was destroyed"}; }

}  // namespace

bool WordMeets(const uint64_t* word, uint64_t value, WaitCondition condition) {
  // Pairs with the release store of whoever writes the word.
  const uint64_t current = shm::LoadAcquire(*word);
  return condition == WaitCondition::kEqual ? current == value : current >= value;
}

// ---- Points ----

Point::Point(std::shared_ptr<StreamState> stream, NativeEvent event, uint64_t place)
    : stream_(std::move(stream)), event_(event), place_(place) {}

// The last step of a stream may release it, and steps must not call the vendor.
Point::~Point() { stream_->Bury(event_); }

Status Point::Decide(const Status& status) {
  status_ = status;
  decided_.store(true, std::memory_order_release);
  return status;
}

Status Point::Query() {
  std::lock_guard lock(mutex_);
  if (decided_.load(std::memory_order_relaxed)) {
    return status_;
  }
  if (Status failure = stream_->FailureBefore(place_); !failure.ok()) {
    return Decide(failure);
  }
  Status native = stream_->driver().QueryEvent(stream_->device(), event_);
  if (native.code() == ErrorCode::kWouldBlock) {
    return native;
  }
  // A step before it may have failed meanwhile.
  const Status failure = stream_->FailureBefore(place_);
  return Decide(failure.ok() ? native : failure);
}

void Point::Cancel() {
  std::lock_guard lock(mutex_);
  if (!decided_.load(std::memory_order_relaxed)) {
    const Status native = stream_->driver().QueryEvent(stream_->device(), event_);
    const Status failure = stream_->FailureBefore(place_);
    (void)Decide(!failure.ok()                             ? failure
                 : native.code() == ErrorCode::kWouldBlock ? CancelledStatus()
                                                           : native);
  }
}

StreamState::~StreamState() {
  if (mark_ != nullptr) {
    driver_->DestroyEvent(device_, mark_);
  }
  DestroyBuried();
}

// ---- Failures ----

Status StreamState::FailureBefore(uint64_t place) {
  std::lock_guard lock(mutex_);
  return failed_place_ <= place ? failure_ : Status();
}

std::vector<StreamState::Told> StreamState::Note(uint64_t place, const Status& status) {
  std::lock_guard lock(mutex_);
  std::vector<Told> told;
  if (failed_place_ <= place) {
    return told;
  }
  failed_place_ = place;
  failure_ = status;
  for (const Waiter& waiter : waiters_) {
    const std::shared_ptr<Point> point = waiter.point.lock();
    std::shared_ptr<StreamState> stream = waiter.stream.lock();
    if (point != nullptr && stream != nullptr && point->place() > place && !point->decided()) {
      told.push_back({std::move(stream), waiter.place, status});
    }
  }
  return told;
}

// Chains of streams may wait for each other, so this uses a list instead of recursion, and holds
// one lock at a time.
void StreamState::Fail(uint64_t place, const Status& status) {
  std::vector<Told> told = Note(place, status);
  while (!told.empty()) {
    const Told next = std::move(told.back());
    told.pop_back();
    for (Told& further : next.stream->Note(next.place, next.status)) {
      told.push_back(std::move(further));
    }
  }
}

Status StreamState::Query() {
  if (Status failure = Failure(); !failure.ok()) {
    return failure;
  }
  DestroyBuried();
  const uint64_t place = last_place_.load(std::memory_order_acquire);  // Pairs with Advance.
  {
    // Vendors may take a moment longer to say so.
    std::lock_guard lock(mutex_);
    if (passed_place_ == place) {
      return {};
    }
  }
  Status native = driver_->QueryStream(device_, native_);
  if (native.code() == ErrorCode::kWouldBlock) {
    return native;
  }
  std::unique_lock lock(mutex_);
  if (!native.ok()) {
    // Somewhere behind what is known to have run.
    const uint64_t from = passed_place_ + 1;
    lock.unlock();
    Fail(from, native);
    return Failure();
  }
  passed_place_ = std::max(passed_place_, place);
  TrimLocked();
  return failed_place_ == UINT64_MAX ? Status() : failure_;
}

void StreamState::NotePassed(uint64_t place) {
  std::lock_guard lock(mutex_);
  passed_place_ = std::max(passed_place_, place);
  TrimLocked();
}

// ---- Waits ----

void StreamState::AddWaiter(const std::shared_ptr<Point>& point,
                            const std::shared_ptr<StreamState>& waiter, uint64_t place) {
  {
    std::lock_guard lock(mutex_);
    if (waiters_.size() >= kTrimFrom) {
      std::erase_if(waiters_, [](const Waiter& known) {
        const std::shared_ptr<Point> its_point = known.point.lock();
        return its_point == nullptr || its_point->decided();
      });
    }
    waiters_.push_back({point, waiter, place});
  }
  // The point may have failed before this stream was in its list.
  if (const Status status = point->Query();
      !status.ok() && status.code() != ErrorCode::kWouldBlock) {
    waiter->Fail(place, status);
  }
}

void StreamState::AddPoint(const std::shared_ptr<Point>& point) {
  std::lock_guard lock(mutex_);
  if (points_.size() >= kTrimFrom) {
    std::erase_if(points_, [](const std::weak_ptr<Point>& known) {
      const std::shared_ptr<Point> its_point = known.lock();
      return its_point == nullptr || its_point->decided();
    });
  }
  points_.push_back(point);
}

void StreamState::AwaitPoint(uint64_t place, std::shared_ptr<Point> point) {
  std::lock_guard lock(mutex_);
  LookAtMarkLocked();
  awaited_.push_back({place, std::move(point), nullptr, 0, WaitCondition::kEqual, false});
}

void StreamState::AwaitWord(uint64_t place, const uint64_t* word, uint64_t value,
                            WaitCondition condition, bool by_kernel) {
  std::lock_guard lock(mutex_);
  LookAtMarkLocked();
  awaited_.push_back({place, nullptr, word, value, condition, by_kernel});
}

void StreamState::Abandon() {
  std::lock_guard lock(mutex_);
  abandoned_ = true;
}

bool StreamState::MetLocked(const Awaited& awaited) const {
  if (abandoned_ && awaited.by_kernel) {
    return true;
  }
  if (awaited.point != nullptr) {
    return awaited.point->stream()
               .driver()
               .QueryEvent(awaited.point->stream().device(), awaited.point->event())
               .code() != ErrorCode::kWouldBlock;
  }
  return awaited.word != nullptr && WordMeets(awaited.word, awaited.value, awaited.condition);
}

bool StreamState::MayBeBlocked() {
  std::lock_guard lock(mutex_);
  return !std::all_of(awaited_.begin(), awaited_.end(),
                      [this](const Awaited& awaited) { return MetLocked(awaited); });
}

void StreamState::TrimLocked() {
  while (!awaited_.empty() && awaited_.front().place <= passed_place_) {
    awaited_.pop_front();
  }
}

bool StreamState::NeedsMark() {
  std::lock_guard lock(mutex_);
  return mark_ == nullptr && awaited_.size() >= kTrimFrom;
}

void StreamState::SetMark(NativeEvent event, uint64_t place) {
  std::lock_guard lock(mutex_);
  mark_ = event;
  mark_place_ = place;
}

void StreamState::LookAtMarkLocked() {
  if (mark_ == nullptr || driver_->QueryEvent(device_, mark_).code() == ErrorCode::kWouldBlock) {
    return;
  }
  Bury(std::exchange(mark_, nullptr));
  passed_place_ = std::max(passed_place_, mark_place_);
  TrimLocked();
}

void StreamState::Drained() {
  std::deque<Awaited> awaited;  // points of streams that may wait for points of this one
  {
    std::lock_guard lock(mutex_);
    awaited.swap(awaited_);
  }
  awaited.clear();
  DestroyBuried();
}

void StreamState::Bury(NativeEvent event) {
  std::lock_guard lock(buried_mutex_);
  buried_.push_back(event);
}

void StreamState::DestroyBuried() {
  std::vector<NativeEvent> buried;
  {
    std::lock_guard lock(buried_mutex_);
    buried.swap(buried_);
  }
  for (const NativeEvent event : buried) {
    driver_->DestroyEvent(device_, event);
  }
}

// ---- Steps ----

void StreamState::RunStep(uint64_t place, const std::function<Status()>& step) {
  {
    std::lock_guard lock(mutex_);
    if (closed() || failed_place_ <= place) {
      return;
    }
    step_runs_ = true;
  }
  const Status status = step();
  if (!status.ok()) {
    Fail(place, status);
  }
  std::lock_guard lock(mutex_);
  step_runs_ = false;
  step_ended_.notify_all();
}

bool StreamState::WaitForWord(const uint64_t* word, uint64_t value, WaitCondition condition) {
  shm::Waiter waiter{shm::WaitPolicy{}};
  while (!waiter.Idle()) {
    if (WordMeets(word, value, condition)) {
      return true;
    }
    if (closed()) {
      return false;
    }
  }
  std::unique_lock lock(mutex_);
  for (GrowingSleep sleep; !WordMeets(word, value, condition);) {
    if (step_ended_.wait_for(lock, sleep.Next(), [this] { return closed(); })) {
      return false;
    }
  }
  return true;
}

void StreamState::Close() {
  std::lock_guard lock(mutex_);
  closed_.store(true, std::memory_order_relaxed);
  step_ended_.notify_all();
}

void StreamState::JoinStep() {
  std::unique_lock lock(mutex_);
  step_ended_.wait(lock, [this] { return !step_runs_; });
}

void StreamState::CancelRest() {
  std::vector<std::shared_ptr<Point>> points;
  std::vector<Waiter> waiters;
  {
    std::lock_guard lock(mutex_);
    for (const std::weak_ptr<Point>& known : points_) {
      if (std::shared_ptr<Point> point = known.lock(); point != nullptr) {
        points.push_back(std::move(point));
      }
    }
    waiters.swap(waiters_);
  }
  for (const std::shared_ptr<Point>& point : points) {
    point->Cancel();
  }
  for (const Waiter& waiter : waiters) {
    const std::shared_ptr<Point> point = waiter.point.lock();
    const std::shared_ptr<StreamState> stream = waiter.stream.lock();
    if (point == nullptr || stream == nullptr) {
      continue;
    }
    if (const Status status = point->Query(); !status.ok()) {
      stream->Fail(waiter.place, status);
    }
  }
}

}  // namespace ferry::gpu
