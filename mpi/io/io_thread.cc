#include "mpi/io/io_thread.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "common/clock.h"
#include "common/thread.h"

namespace ferry::mpi {
namespace {

using std::chrono::nanoseconds;

// The thread waits so long for more: programs that overlap start one transfer after the other.
constexpr std::chrono::milliseconds kPatience(100);
// Other ranks mostly go on soon. The thread lets others have its core for so many rounds; then it
// sleeps for an eighth of the time that it has waited, within these limits.
constexpr int kYields = 30;
constexpr uint64_t kLeastSleepNs = 20'000;
constexpr uint64_t kMostSleepNs = 2'000'000;

class IoThread {
 public:
  bool Take(IoWork* work) {
    const std::lock_guard lock(mutex_);
    if (!is_running_) {
      StatusOr<std::thread> thread =
          StartThread("MPI files", "that reads and writes files", [this] { Run(); });
      if (!thread.ok()) {
        return false;
      }
      thread->detach();
      is_running_ = true;
    }
    works_.push_back(work);
    has_new_ = true;
    has_changed_.notify_all();
    return true;
  }

  void AwaitEnd() {
    std::unique_lock lock(mutex_);
    has_changed_.wait(lock, [this] { return works_.empty(); });
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    uint64_t idle_since_ns = 0;
    int idle_rounds = 0;
    while (has_changed_.wait_for(lock, kPatience, [this] { return !works_.empty(); })) {
      has_new_ = false;
      if (Round(&lock)) {
        idle_rounds = 0;
      } else if (++idle_rounds <= kYields) {
        idle_since_ns = MonotonicNs();
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
      } else {
        const uint64_t pause_ns =
            std::clamp((MonotonicNs() - idle_since_ns) / 8, kLeastSleepNs, kMostSleepNs);
        has_changed_.wait_for(lock, nanoseconds(pause_ns), [this] { return has_new_; });
      }
    }
    is_running_ = false;
  }

  // Works once at each piece. Returns true if any has gone on.
  bool Round(std::unique_lock<std::mutex>* lock) {
    bool any = false;
    for (size_t i = 0; i < works_.size();) {
      IoWork* const work = works_[i];
      lock->unlock();
      const IoWork::State state = work->Work();  // and is gone, perhaps
      lock->lock();
      any = any || state != IoWork::State::kWaits;
      if (state == IoWork::State::kOver) {
        works_.erase(works_.begin() + static_cast<std::ptrdiff_t>(i));
        has_changed_.notify_all();
      } else {
        ++i;
      }
    }
    return any;
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable has_changed_;
  std::deque<IoWork*> works_;  // only the thread takes any away
  bool has_new_ = false;       // since the last round began
  bool is_running_ = false;
};

// Is never destroyed: the thread may run until the process has ended.
IoThread& io_thread = *new IoThread();

}  // namespace

bool GiveToIoThread(IoWork* work) { return io_thread.Take(work); }

void AwaitIoThread() { io_thread.AwaitEnd(); }

}  // namespace ferry::mpi
