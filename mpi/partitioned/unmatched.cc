#include "mpi/partitioned/unmatched.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "mpi/coll/helper.h"
#include "mpi/partitioned/receive.h"

namespace ferry::mpi {
namespace {

class Unmatched final : public Watched {
 public:
  void Add(PartitionedReceive* receive) {
    std::lock_guard lock(mutex_);
    all_.push_back(receive);
  }
  void Remove(PartitionedReceive* receive) {
    std::lock_guard lock(mutex_);
    std::erase(all_, receive);
  }

  bool IsBusy() override {
    std::lock_guard lock(mutex_);
    return !all_.empty();
  }
  bool IsLookedAfter() override { return false; }
  bool IsAnnounced() const override { return false; }
  Progress AdvanceAll() override {
    std::lock_guard lock(mutex_);
    std::erase_if(all_, [](PartitionedReceive* receive) { return receive->TryMatch(); });
    return {};
  }
  void Abandon() override {}

 private:
  std::mutex mutex_;
  std::vector<PartitionedReceive*> all_;
};
Unmatched& unmatched = *new Unmatched();

}  // namespace

void WatchUnmatched(PartitionedReceive* receive) {
  unmatched.Add(receive);
  Watch(Ref<Object>(), &unmatched);
}

void ForgetUnmatched(PartitionedReceive* receive) { unmatched.Remove(receive); }

void AnswerUnmatched() { (void)unmatched.AdvanceAll(); }

}  // namespace ferry::mpi
