#include "mpi/io/io_thread.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "common/clock.h"
#include "common/thread.h"
#include "mpi/io/file.h"

namespace ferry::mpi {
namespace {

using std::chrono::nanoseconds;

// A thread waits so long for more: programs that overlap start one transfer after the other.
constexpr std::chrono::milliseconds kPatience(100);
// Other ranks mostly go on soon. A thread lets others have its core for so many rounds; then it
// sleeps for an eighth of the time that it has waited, within these limits.
constexpr int kYields = 30;
constexpr uint64_t kLeastSleepNs = 20'000;
constexpr uint64_t kMostSleepNs = 2'000'000;

class IoThreads {
 public:
  bool Take(IoWork* work, const IoLine& key) {
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = lines_.try_emplace(key);
    Line* const line = &found->second;
    if (is_new) {
      StatusOr<std::thread> thread = StartThread("MPI files", "that reads and writes files",
                                                 [this, key, line] { Run(key, line); });
      if (!thread.ok()) {
        lines_.erase(found);
        return false;
      }
      thread->detach();
    }
    line->works.push_back(work);
    line->has_new = true;
    line->has_changed.notify_all();
    ++under_way_;
    return true;
  }

  void AwaitEnd() {
    std::unique_lock lock(mutex_);
    have_ended_.wait(lock, [this] { return under_way_ == 0; });
  }

 private:
  // It is there as long as its thread.
  struct Line {
    std::condition_variable has_changed;
    std::deque<IoWork*> works;  // only the thread takes any away
    bool has_new = false;       // since the last round began
  };

  void Run(const IoLine& key, Line* line) {
    std::unique_lock lock(mutex_);
    uint64_t idle_since_ns = 0;
    int idle_rounds = 0;
    while (line->has_changed.wait_for(lock, kPatience, [line] { return !line->works.empty(); })) {
      line->has_new = false;
      if (Round(line, &lock)) {
        idle_rounds = 0;
      } else if (++idle_rounds <= kYields) {
        idle_since_ns = MonotonicNs();
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
      } else {
        const uint64_t pause_ns =
            std::clamp((MonotonicNs() - idle_since_ns) / 8, kLeastSleepNs, kMostSleepNs);
        line->has_changed.wait_for(lock, nanoseconds(pause_ns), [line] { return line->has_new; });
      }
    }
    lines_.erase(key);
  }

  // Works once at each piece. Returns true if any has gone on.
  bool Round(Line* line, std::unique_lock<std::mutex>* lock) {
    bool any = false;
    std::deque<IoWork*>& works = line->works;
    for (size_t i = 0; i < works.size();) {
      IoWork* const work = works[i];
      lock->unlock();
      const IoWork::State state = work->Work();  // and is gone, perhaps
      lock->lock();
      any = any || state != IoWork::State::kWaits;
      if (state == IoWork::State::kOver) {
        works.erase(works.begin() + static_cast<std::ptrdiff_t>(i));
        if (--under_way_ == 0) {
          have_ended_.notify_all();
        }
      } else {
        ++i;
      }
    }
    return any;
  }

  std::mutex mutex_;  // guards what follows, and the lines
  std::condition_variable have_ended_;
  std::map<IoLine, Line> lines_;
  int64_t under_way_ = 0;
};

// Is never destroyed: the threads may run until the process has ended.
IoThreads& io_threads = *new IoThreads();

}  // namespace

IoLine LineOf(File& file, bool is_write) {
  if (file.posix().is_stream()) {
    return {&file, is_write};
  }
  return {file.is_local() ? nullptr : &file, false};
}

bool GiveToIoThread(IoWork* work, IoLine line) { return io_threads.Take(work, line); }

void AwaitIoThreads() { io_threads.AwaitEnd(); }

}  // namespace ferry::mpi
