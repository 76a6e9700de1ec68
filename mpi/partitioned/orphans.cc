#include "mpi/partitioned/orphans.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "mpi/coll/helper.h"
#include "mpi/partitioned/side.h"

namespace ferry::mpi {
namespace {

// The list of orphans. The library's thread looks after those for which other ranks may wait.
class Orphans final : public Object, public Watched {
 public:
  Orphans() : Object(ForAnyThread()) {}

  void Add(Side* side) {
    bool is_awaited = false;
    {
      std::lock_guard lock(mutex_);
      sides_.push_back(side);
      count_.store(sides_.size(), std::memory_order_relaxed);
      is_awaited = side->IsAwaited();  // without the lock, another thread may end it
    }
    if (is_awaited) {
      Watch(Ref<Object>::Share(this), this);
    }
  }
  void End() {
    if (count_.load(std::memory_order_relaxed) == 0) {
      return;
    }
    std::lock_guard lock(mutex_);
    EndLocked();
  }
  void Drop() {
    End();
    std::lock_guard lock(mutex_);
    for (Side* const side : sides_) {
      side->GiveUp();
      if (!side->IsNamed()) {
        delete side;
      }
    }
    sides_.clear();
    count_.store(0, std::memory_order_relaxed);
  }

  bool IsBusy() override {
    std::lock_guard lock(mutex_);
    return std::any_of(sides_.begin(), sides_.end(), [](Side* side) { return side->IsAwaited(); });
  }
  bool IsLookedAfter() override { return false; }
  bool IsAnnounced() const override { return false; }
  Progress AdvanceAll() override {
    End();
    return {};
  }
  void Abandon() override {}

 private:
  void EndLocked() {
    std::erase_if(sides_, [](Side* side) {
      const bool is_over = side->TryLeave();
      if (is_over) {
        delete side;
      }
      return is_over;
    });
    count_.store(sides_.size(), std::memory_order_relaxed);
  }

  std::mutex mutex_;
  std::vector<Side*> sides_;
  std::atomic<size_t> count_{0};
};

// Not destroyed at exit: a program may leave without MPI_Finalize.
Orphans& orphans = *new Orphans();

}  // namespace

void AddOrphan(Side* side) { orphans.Add(side); }
void EndOrphans() { orphans.End(); }
void DropOrphans() { orphans.Drop(); }

}  // namespace ferry::mpi
