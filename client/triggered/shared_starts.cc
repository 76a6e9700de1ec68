#include "client/triggered/shared_starts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "shm/atomic.h"

namespace ferry::client {
namespace {

constexpr size_t kWordsAtATime = 16;  // 1 KiB of the heap

}  // namespace

SharedStart* SharedStarts::Join(std::span<Pair* const> pairs) {
  if (pairs.empty() || (pairs.size() == 1 && !pairs[0]->shares)) {
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  SharedStart* const first = pairs[0]->shared;
  const bool all_share = first != nullptr && first->sharers == pairs.size() &&
                         std::all_of(pairs.begin(), pairs.end(), [first](const Pair* pair) {
                           return pair->shares && pair->shared == first;
                         });
  if (all_share && pairs.size() > 1) {
    return first;
  }
  for (Pair* pair : pairs) {
    LeaveLocked(*pair);
  }
  if (pairs.size() == 1 ||
      std::any_of(pairs.begin(), pairs.end(), [](const Pair* c) { return c->IsUnderWay(); })) {
    return nullptr;
  }
  SharedStart* const shared = Take();
  if (shared == nullptr) {
    return nullptr;
  }
  for (Pair* pair : pairs) {
    Drop(*pair);
    pair->shared = shared;
    pair->shares = true;
    shm::PairLayout& end = *pair->end;
    shm::StoreRelaxed(end.shared_start, shared->offset);
    shm::StoreRelaxed(end.shared_base, pair->starts - shared->rings);
    shm::StoreRelaxed(end.shared_until, UINT64_MAX);
    shm::StoreRelaxed(end.shares, uint32_t{1});
  }
  shared->sharers = static_cast<uint32_t>(pairs.size());
  shared->users = shared->sharers;
  return shared;
}

void SharedStarts::LeaveLocked(Pair& pair) {
  if (std::exchange(pair.shares, false)) {
    --pair.shared->sharers;
    shm::StoreRelaxed(pair.end->shared_until, pair.starts);
  }
}

void SharedStarts::Forget(Pair& pair) {
  if (pair.shared != nullptr) {
    const std::lock_guard lock(mutex_);
    LeaveLocked(pair);
    Drop(pair);
  }
}

void SharedStarts::Drop(Pair& pair) {
  SharedStart* const shared = std::exchange(pair.shared, nullptr);
  if (shared == nullptr) {
    return;
  }
  shared->is_lost |= pair.IsUnderWay();
  if (--shared->users == 0 && !shared->is_lost) {
    free_.push_back(shared);
  }
}

SharedStart* SharedStarts::Take() {
  if (free_.empty()) {
    const StatusOr<void*> made = heap_.allocate(sizeof(shm::CounterLayout) * kWordsAtATime);
    if (!made.ok()) {
      return nullptr;
    }
    std::memset(*made, 0, sizeof(shm::CounterLayout) * kWordsAtATime);
    auto* const words = static_cast<shm::CounterLayout*>(*made);
    for (size_t i = kWordsAtATime; i-- > 0;) {
      all_.push_back(std::make_unique<SharedStart>());
      all_.back()->word = &words[i];
      all_.back()->offset = heap_.offset_of(&words[i]);
      free_.push_back(all_.back().get());
    }
  }
  SharedStart* const shared = free_.back();
  free_.pop_back();
  return shared;
}

}  // namespace ferry::client
