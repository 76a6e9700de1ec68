#include "shmem/coll/active_sets.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "common/counted.h"
#include "shm/atomic.h"
#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/message_contexts.h"
#include "shmem/base/patience.h"

namespace ferry::shmem {
namespace {

using Key = std::tuple<int, int, int>;

struct ActiveSets {
  std::mutex mutex;
  std::map<Key, std::unique_ptr<Assembly>> all;
};
ActiveSets& sets = *new ActiveSets();

void Check(const char* call, int start, int stride, int count) {
  const int64_t last = start + int64_t{stride} * (count - 1);
  if (start < 0 || count < 1 || (stride < 1 && count > 1) || last >= job.size) {
    Fail(call, "the active set of " + Counted(count, "PE") + " from " + std::to_string(start) +
                   " on, with stride " + std::to_string(stride) + ", is not among the " +
                   Counted(job.size, "PE") + " of the job");
  }
  const int offset = job.self - start;
  if (offset < 0 || job.self > last || (count > 1 && offset % stride != 0)) {
    Fail(call, "this PE is not in the active set of " + Counted(count, "PE") + " from " +
                   std::to_string(start) + " on, with stride " + std::to_string(stride));
  }
}

// The offset of the board that PE `start` has published for the set; 0: it has not yet.
uint64_t FindBoard(const Key& key) {
  const int first = std::get<0>(key);
  // Pairs with PublishBoard.
  uint64_t at = shm::LoadAcquire(job.region->place_of(first).active_sets);
  while (at != 0) {
    const auto& set = *reinterpret_cast<const ActiveSetLayout*>(job.region->base_of(first) + at);
    if (Key(set.start, set.stride, set.count) == key) {
      return at + sizeof(ActiveSetLayout);
    }
    at = set.next;
  }
  return 0;
}

Assembly* FindKnown(const Key& key) {
  std::lock_guard lock(sets.mutex);
  const auto known = sets.all.find(key);
  return known == sets.all.end() ? nullptr : known->second.get();
}

uint64_t PublishBoard(const char* call, const Key& key) {
  const auto [start, stride, count] = key;
  const uint64_t at =
      job.region->AllocateSystem(sizeof(ActiveSetLayout) + Assembly::BoardBytes(count));
  if (at == 0) {
    Fail(call,
         "there is no room for the collectives of another active set: use fewer different "
         "ones, or teams, which can be destroyed");
  }
  PlaceLayout& place = job.region->place();
  auto& set = *reinterpret_cast<ActiveSetLayout*>(job.region->base() + at);
  set.start = start;
  set.stride = stride;
  set.count = count;
  set.next = shm::LoadRelaxed(place.active_sets);
  shm::StoreRelease(place.active_sets, at);  // Pairs with FindBoard.
  return at + sizeof(ActiveSetLayout);
}

}  // namespace

Assembly& ActiveSet(const char* call, int start, int stride, int count) {
  CheckRunning(call);
  const Key key(start, count == 1 ? 1 : stride, count);
  if (Assembly* const known = FindKnown(key); known != nullptr) {
    return *known;
  }
  Check(call, start, stride, count);
  std::vector<int> pes;
  pes.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    pes.push_back(start + i * stride);
  }
  MeetingPlace where;
  if (!job.AreLocal(pes)) {
    where.context = ActiveSetContext(start, std::get<1>(key), count);
  } else if (start == job.self) {
    where.board_offset = PublishBoard(call, key);
  } else {
    Await(call, [&] { return (where.board_offset = FindBoard(key)) != 0; });
  }
  const int self = count == 1 ? 0 : (job.self - start) / stride;
  std::lock_guard lock(sets.mutex);
  return *(sets.all[key] = std::make_unique<Assembly>(pes, self, where));
}

void ForgetActiveSets() {
  std::lock_guard lock(sets.mutex);
  sets.all.clear();
}

}  // namespace ferry::shmem
