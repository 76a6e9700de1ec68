#include "client/mpi/channel/helper.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

class Helper {
 public:
  void Watch(Comm& comm, Channel& channel) {
    Threads::Allow();
    std::lock_guard lock(mutex_);
    Threads::SetHelperAtRest(false);
    const auto is_same = [&](const Watched& watched) { return watched.channel == &channel; };
    if (std::none_of(watched_.begin(), watched_.end(), is_same)) {
      watched_.push_back({Ref<Comm>::Share(&comm), &channel});
    }
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { Work(); });
      Process::AtFinalize([this] { return Stop(); });
    }
    has_work_.notify_one();
  }

 private:
  struct Watched {
    Ref<Comm> comm;
    Channel* channel;
  };

  void Work() {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        Threads::SetHelperAtRest(watched_.empty());
        has_work_.wait(lock, [this] { return is_stopping_ || !watched_.empty(); });
        if (is_stopping_) {
          return;
        }
      }
      front_end->WaitFor([](void* self) { return static_cast<Helper*>(self)->LookRound(); }, this);
      if (front_end->poison() != ErrorCode::kOk) {
        // Nothing can be waited for any more. Threads that wait find the errors by themselves.
        std::lock_guard lock(mutex_);
        watched_.clear();
      }
    }
  }

  // Looks once at all channels. Returns whether there is nothing left to wait for.
  bool LookRound() {
    bool has_ended = false;
    std::vector<Watched> idle;  // let go of without the lock
    bool is_over = false;
    {
      std::lock_guard lock(mutex_);
      for (size_t i = 0; i < watched_.size();) {
        const Channel::Progress progress = watched_[i].channel->AdvanceAll();
        has_ended = has_ended || progress.has_ended;
        if (progress.is_busy) {
          ++i;
          continue;
        }
        idle.push_back(std::move(watched_[i]));
        watched_.erase(watched_.begin() + static_cast<ptrdiff_t>(i));
      }
      is_over = watched_.empty() || is_stopping_;
    }
    if (has_ended) {
      front_end->WakeThreads();  // somebody may be waiting for just that
    }
    return is_over;
  }

  Failure Stop() {
    {
      std::lock_guard lock(mutex_);
      is_stopping_ = true;
      has_work_.notify_one();
    }
    front_end->WakeThreads();
    thread_.join();
    return {};
  }

  std::mutex mutex_;  // guards what follows, but for the thread's own use of it
  std::condition_variable has_work_;
  std::vector<Watched> watched_;
  std::thread thread_;
  bool is_stopping_ = false;
};

// Not destroyed at exit: a program may leave without MPI_Finalize.
Helper& helper = *new Helper();

}  // namespace

void WatchChannel(Comm& comm, Channel& channel) { helper.Watch(comm, channel); }

}  // namespace ferry::mpi
