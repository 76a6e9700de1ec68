// The state that a driver's stream shares with its events, with its steps on the host and with
// streams that wait for it. It may outlive the stream.
//
// A vendor's stream knows nothing of failures of host functions, and goes on behind them. So each
// operation has a place (1 for the first), and a failure is noted with the place that it happened
// at: all operations enqueued behind it count as failed, events and the streams that wait for them
// included. These learn of failures at once, so that no stream waits for what never comes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "common/status.h"
#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

class StreamState;

// One point in a stream that an event stands for. Thread-safe.
class Point {
 public:
  // `event` is recorded there; the point owns it.
  Point(std::shared_ptr<StreamState> stream, NativeEvent event, uint64_t place);
  ~Point();
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;

  // As for Event::Query.
  Status Query();
  // Marks the point as never reached, since the stream was destroyed. Does nothing if it was
  // reached before.
  void Cancel();

  NativeEvent event() const { return event_; }
  uint64_t place() const { return place_; }
  StreamState& stream() const { return *stream_; }
  bool decided() const { return decided_.load(std::memory_order_acquire); }  // Pairs with Decide.

 private:
  Status Decide(const Status& status);

  const std::shared_ptr<StreamState> stream_;
  const NativeEvent event_;
  const uint64_t place_;
  std::mutex mutex_;
  std::atomic<bool> decided_{false};  // set under mutex_; `status_` is for good
  Status status_;
};

// Thread-safe.
class StreamState : public std::enable_shared_from_this<StreamState> {
 public:
  StreamState(std::shared_ptr<Driver> driver, int device, NativeStream native)
      : driver_(std::move(driver)), device_(device), native_(native) {}
  ~StreamState();

  Driver& driver() const { return *driver_; }
  int device() const { return device_; }
  NativeStream native() const { return native_; }

  // The next operation's place. Called by the stream, which enqueues one at a time.
  uint64_t NextPlace() const { return last_place_.load(std::memory_order_relaxed) + 1; }
  // Call it once the vendor has that operation.
  void Advance() {
    last_place_.store(NextPlace(), std::memory_order_release);
  }  // Pairs with Query.

  // ---- Failures ----

  // The first failure at or before `place`.
  Status FailureBefore(uint64_t place);
  Status Failure() { return FailureBefore(UINT64_MAX); }
  // Notes a failure, unless there is an earlier one, and fails the streams that wait for a later
  // place.
  void Fail(uint64_t place, const Status& status);
  // kWouldBlock while the stream has work; the failure, if there is one, at once.
  Status Query();
  // Notes that everything up to `place` has run, as a point there says.
  void NotePassed(uint64_t place);

  // ---- Waits, in the order of their places ----

  // Notes that another stream waits for a point of this one, by its operation at `place`.
  void AddWaiter(const std::shared_ptr<Point>& point, const std::shared_ptr<StreamState>& waiter,
                 uint64_t place);
  void AddPoint(const std::shared_ptr<Point>& point);
  // Notes that this stream waits at `place`. `word` is null if CPUs do not reach it.
  void AwaitPoint(uint64_t place, std::shared_ptr<Point> point);
  // `by_kernel`: by a kernel that Abandon ends.
  void AwaitWord(uint64_t place, const uint64_t* word, uint64_t value, WaitCondition condition,
                 bool by_kernel);
  // Notes that the kernels that wait for words have been told to end.
  void Abandon();
  // Returns true if the stream may still be waiting for a point or a word.
  bool MayBeBlocked();
  // Returns true if the stream should record an event now and pass it to SetMark, so that its
  // progress is noticed even if it is never queried.
  bool NeedsMark();
  void SetMark(NativeEvent event, uint64_t place);
  // Notes that nothing runs on the stream any more, for good.
  void Drained();
  // Destroys an event later; for use where the vendor must not be called.
  void Bury(NativeEvent event);

  // ---- Steps on the host ----

  // Runs `step` unless the stream failed before `place` or is closed; notes its failure.
  void RunStep(uint64_t place, const std::function<Status()>& step);
  // Waits in a step until the word meets the condition. False: the stream was closed first.
  bool WaitForWord(const uint64_t* word, uint64_t value, WaitCondition condition);
  // Closes the state of a stream that is destroyed: steps that have not begun are not taken.
  void Close();
  bool closed() const { return closed_.load(std::memory_order_relaxed); }
  // Waits for the step that runs, if any does.
  void JoinStep();
  // Cancels everything that is not complete.
  void CancelRest();
  // Keeps `kept` for as long as the stream may have work.
  void Keep(std::shared_ptr<void> kept) { kept_ = std::move(kept); }

 private:
  struct Waiter {
    std::weak_ptr<Point> point;
    std::weak_ptr<StreamState> stream;
    uint64_t place;
  };
  struct Awaited {
    uint64_t place;
    std::shared_ptr<Point> point;  // or a word
    const uint64_t* word;
    uint64_t value;
    WaitCondition condition;
    bool by_kernel;
  };
  struct Told {  // a stream that must be told of a failure
    std::shared_ptr<StreamState> stream;
    uint64_t place;
    Status status;
  };

  // Notes a failure; returns the streams to tell.
  std::vector<Told> Note(uint64_t place, const Status& status);
  bool MetLocked(const Awaited& awaited) const;
  // Forgets waits that the stream has certainly passed.
  void TrimLocked();
  void LookAtMarkLocked();
  void DestroyBuried();

  const std::shared_ptr<Driver> driver_;
  const int device_;
  const NativeStream native_;
  std::atomic<uint64_t> last_place_{0};
  std::atomic<bool> closed_{false};  // set under mutex_

  std::mutex mutex_;
  std::condition_variable step_ended_;
  bool step_runs_ = false;
  uint64_t failed_place_ = UINT64_MAX;
  Status failure_;
  uint64_t passed_place_ = 0;  // the stream has run everything up to here
  std::vector<std::weak_ptr<Point>> points_;
  std::vector<Waiter> waiters_;
  std::deque<Awaited> awaited_;
  bool abandoned_ = false;
  std::shared_ptr<void> kept_;
  NativeEvent mark_ = nullptr;
  uint64_t mark_place_ = 0;

  std::mutex buried_mutex_;
  std::vector<NativeEvent> buried_;
};

// Returns true if a word that CPUs reach meets the condition.
bool WordMeets(const uint64_t* word, uint64_t value, WaitCondition condition);

}  // namespace ferry::gpu
