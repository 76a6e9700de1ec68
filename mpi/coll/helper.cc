#include "mpi/coll/helper.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/thread.h"
#include "mpi/coll/table.h"
#include "mpi/comm/creation.h"
#include "mpi/init/process.h"

namespace ferry::mpi {
namespace {

// While collectives are under way, the time between the thread's checks that the program carries
// them on; and the number of checks that find none under way after which it goes to rest. So a
// program that starts one and soon waits for it does not pay for the waking of a thread, nor for
// its company.
constexpr std::chrono::microseconds kLookEvery(200);
constexpr uint32_t kIdleLooks = 20;
// The time between looks while threads of the program wait in all operations that there are: each
// time that this thread wakes takes tens of microseconds from their core.
constexpr std::chrono::microseconds kLookAtAttendedEvery(1600);
// The time between looks at operations whose events do not wake WaitFor, while it waits for others.
constexpr uint64_t kUnannouncedEveryNs = 200'000;

class Helper {
 public:
  bool waits() const { return waits_; }

  void Watch(Ref<Object> owner, mpi::Watched* watched) {
    Threads::Allow();
    std::lock_guard lock(mutex_);
    if (is_stopping_) {  // what is under way now stays so
      return;
    }
    Threads::SetHelperAtRest(false);
    const auto is_same = [&](const Entry& entry) { return entry.watched == watched; };
    if (std::none_of(watched_.begin(), watched_.end(), is_same)) {
      watched_.push_back({std::move(owner), watched});
      has_new_ = true;
      if (!watched->IsAnnounced() && !std::exchange(is_unannounced_new_, true) && waits_) {
        front_end->peers->WakeThreads();  // it may be waiting for what is announced alone
      }
    }
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { RunThread("MPI helper", [this] { Work(); }); });
    }
    if (is_at_rest_ || (naps_ && has_new_)) {
      has_work_.notify_one();
    }
  }

  Failure Stop() {
    {
      std::lock_guard lock(mutex_);
      is_stopping_ = true;
      has_work_.notify_one();
    }
    if (thread_.joinable()) {
      front_end->peers->WakeThreads();
      thread_.join();
    }
    for (const Entry& entry : watched_) {
      entry.watched->Abandon();
    }
    watched_.clear();
    return {};
  }

 private:
  struct Entry {
    Ref<Object> owner;
    mpi::Watched* watched;
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
      Pause(lock);
      if (is_stopping_) {
        return;
      }
      LetGoOfIdle(lock);
      idle = watched_.empty() ? idle + 1 : 0;
      const bool has_unannounced = AdvanceUnannounced();
      if (std::all_of(watched_.begin(), watched_.end(), [](const Entry& entry) {
            return !entry.watched->IsAnnounced() || entry.watched->IsLookedAfter();
          })) {
        continue;
      }
      lock->unlock();
      waits_ = true;  // before it looks: a channel that others advance later sees it
      front_end->peers->WaitFor([](void* self) { return static_cast<Helper*>(self)->LookRound(); },
                                this, client::kAny,
                                has_unannounced ? MonotonicNs() + kUnannouncedEveryNs : UINT64_MAX);
      waits_ = false;
      lock->lock();
      if (front_end->poison() != ErrorCode::kOk) {
        // Nothing can be waited for any more. Threads that wait find the errors by themselves; not
        // so kernels: what is not announced is looked at until it has failed, and has told them.
        LetGo(lock, [](const Entry& entry) { return entry.watched->IsAnnounced(); });
      }
    }
  }

  // Returns true if a thread of the program waits for the operation. It is left to that thread
  // alone: two threads would contend for the lock, the links and the core.
  static bool IsAttended(const Entry& entry) {
    return !entry.watched->IsAnnounced() && entry.watched->IsLookedAfter();
  }

  // Waits until the next look is due.
  void Pause(std::unique_lock<std::mutex>* lock) {
    has_new_ = false;
    naps_ = !watched_.empty() && std::all_of(watched_.begin(), watched_.end(), IsAttended);
    const bool is_over = naps_ && !has_work_.wait_for(*lock, kLookAtAttendedEvery,
                                                      [this] { return is_stopping_ || has_new_; });
    naps_ = false;
    if (!is_over) {
      has_work_.wait_for(*lock, kLookEvery, [this] { return is_stopping_; });
    }
  }

  // Returns whether there is any.
  bool AdvanceUnannounced() {
    bool any = false;
    bool has_polled = false;
    is_unannounced_new_ = false;
    for (const Entry& entry : watched_) {
      if (entry.watched->IsAnnounced()) {
        continue;
      }
      any = true;
      if (!IsAttended(entry)) {
        if (!std::exchange(has_polled, true)) {
          (void)front_end->peers->Poll();
        }
        (void)entry.watched->AdvanceAll();
      }
    }
    return any;
  }

  void LetGoOfIdle(std::unique_lock<std::mutex>* lock) {
    LetGo(lock, [](const Entry& entry) { return !IsAttended(entry) && !entry.watched->IsBusy(); });
  }

  // An object may end with that, which is done without the lock.
  template <typename Goes>
  void LetGo(std::unique_lock<std::mutex>* lock, Goes&& goes) {
    const auto first = std::stable_partition(watched_.begin(), watched_.end(),
                                             [&](const Entry& entry) { return !goes(entry); });
    std::vector<Entry> gone(std::make_move_iterator(first),
                            std::make_move_iterator(watched_.end()));
    watched_.erase(first, watched_.end());
    lock->unlock();
    gone.clear();
    lock->lock();
  }

  // Looks once at all that are announced. Returns whether the program leaves none alone that has
  // something under way.
  bool LookRound() {
    bool has_ended = false;
    bool is_over = true;
    {
      std::lock_guard lock(mutex_);
      for (const Entry& entry : watched_) {
        if (!entry.watched->IsAnnounced()) {
          continue;
        }
        // All of them advance: this may be the last look before the thread sleeps.
        const bool is_left_alone = !entry.watched->IsLookedAfter();
        const mpi::Watched::Progress progress = entry.watched->AdvanceAll();
        has_ended = has_ended || progress.has_ended;
        is_over = is_over && !(is_left_alone && progress.is_busy);
      }
      is_over = is_over || is_unannounced_new_ || is_stopping_;
    }
    if (has_ended) {
      front_end->peers->WakeThreads();  // a thread may wait for just that
    }
    return is_over;
  }

  std::mutex mutex_;  // guards what follows, but for the thread's own use of it
  std::condition_variable has_work_;
  std::vector<Entry> watched_;
  std::thread thread_;
  std::atomic<bool> waits_{false};
  bool is_at_rest_ = false;          // Watch has to wake it
  bool naps_ = false;                // likewise for new operations
  bool has_new_ = false;             // since it began to
  bool is_unannounced_new_ = false;  // since the last look at these
  bool is_stopping_ = false;
};

// Not destroyed at exit: a program may leave without MPI_Finalize.
Helper& helper = *new Helper();

}  // namespace

void Watch(Ref<Object> owner, Watched* watched) { helper.Watch(std::move(owner), watched); }

void WatchChannel(Comm& comm, Channel& channel) { helper.Watch(Ref<Comm>::Share(&comm), &channel); }

void StopHelperAtLeave() {
  Process::AtLeave([] { return helper.Stop(); });
  if (ComparesCalls()) {
    // A rank whose call has failed leaves the comparison with the others' to the helper. They may
    // be waiting for it until they have come here, too.
    Process::AtLeave([] {
      (void)SynchroniseAll(Process::world());  // it fails if a rank has died
      return Failure();
    });
  }
}

bool HelperWaits() { return helper.waits(); }

}  // namespace ferry::mpi
