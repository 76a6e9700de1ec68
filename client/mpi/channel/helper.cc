#include "client/mpi/channel/helper.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <thread>
#include <vector>

#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

// While collectives are under way it looks so often whether the program leaves them alone, and goes
// to rest after so many looks at nothing. So a program that starts one and soon waits for it does
// not pay for the waking of a thread, nor for its company.
constexpr std::chrono::microseconds kLookEvery(200);
constexpr uint32_t kIdleLooks = 20;

class Helper {
 public:
  bool waits() const { return waits_; }

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
    if (is_at_rest_) {
      has_work_.notify_one();
    }
  }

 private:
  struct Watched {
    Ref<Comm> comm;
    Channel* channel;
  };

  void Work() {
    std::unique_lock lock(mutex_);
    while (!is_stopping_) {
      is_at_rest_ = true;
      Threads::SetHelperAtRest(watched_.empty());
      has_work_.wait(lock, [this] { return is_stopping_ || !watched_.empty(); });
      is_at_rest_ = false;
      LookNowAndThen(&lock);
    }
  }

  // Until there has been nothing for a while.
  void LookNowAndThen(std::unique_lock<std::mutex>* lock) {
    for (uint32_t idle = 0; idle < kIdleLooks;) {
      if (has_work_.wait_for(*lock, kLookEvery, [this] { return is_stopping_; })) {
        return;
      }
      LetGoOfIdle(lock);
      idle = watched_.empty() ? idle + 1 : 0;
      if (std::all_of(watched_.begin(), watched_.end(),
                      [](const Watched& watched) { return watched.channel->IsLookedAfter(); })) {
        continue;
      }
      lock->unlock();
      waits_ = true;  // before it looks: a channel that others advance later sees it
      front_end->WaitFor([](void* self) { return static_cast<Helper*>(self)->LookRound(); }, this);
      waits_ = false;
      lock->lock();
      if (front_end->poison() != ErrorCode::kOk) {
        // Nothing can be waited for any more. Threads that wait find the errors by themselves.
        watched_.clear();
      }
    }
  }

  // A communicator may end with that, which is done without the lock.
  void LetGoOfIdle(std::unique_lock<std::mutex>* lock) {
    const auto idle =
        std::stable_partition(watched_.begin(), watched_.end(),
                              [](const Watched& watched) { return watched.channel->IsBusy(); });
    std::vector<Watched> gone(std::make_move_iterator(idle),
                              std::make_move_iterator(watched_.end()));
    watched_.erase(idle, watched_.end());
    lock->unlock();
    gone.clear();
    lock->lock();
  }

  // Looks once at all channels. Returns whether the program leaves none alone that has something
  // under way.
  bool LookRound() {
    bool has_ended = false;
    bool is_over = true;
    {
      std::lock_guard lock(mutex_);
      for (const Watched& watched : watched_) {
        // All of them advance: this may be the last look before the thread sleeps.
        const bool is_left_alone = !watched.channel->IsLookedAfter();
        const Channel::Progress progress = watched.channel->AdvanceAll();
        has_ended = has_ended || progress.has_ended;
        is_over = is_over && !(is_left_alone && progress.is_busy);
      }
      is_over = is_over || is_stopping_;
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
    for (const Watched& watched : watched_) {
      watched.channel->Abandon();
    }
    watched_.clear();
    return {};
  }

  std::mutex mutex_;  // guards what follows, but for the thread's own use of it
  std::condition_variable has_work_;
  std::vector<Watched> watched_;
  std::thread thread_;
  std::atomic<bool> waits_{false};
  bool is_at_rest_ = false;  // Watch has to wake it
  bool is_stopping_ = false;
};

// Not destroyed at exit: a program may leave without MPI_Finalize.
Helper& helper = *new Helper();

}  // namespace

void WatchChannel(Comm& comm, Channel& channel) { helper.Watch(comm, channel); }

bool HelperWaits() { return helper.waits(); }

}  // namespace ferry::mpi
