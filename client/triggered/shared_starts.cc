#include "client/triggered/shared_starts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "shm/atomic.h"

namespace ferry::client {
namespace {

constexpr size_t kWordsAtATime = 16;  // 1 KiB of the heap

}  // namespace

SharedStart* SharedStarts::Join(std::span<Channel* const> channels) {
  if (channels.empty() || (channels.size() == 1 && !channels[0]->shares)) {
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  SharedStart* const first = channels[0]->shared;
  const bool all_share =
      first != nullptr && first->sharers == channels.size() &&
      std::all_of(channels.begin(), channels.end(), [first](const Channel* channel) {
        return channel->shares && channel->shared == first;
      });
  if (all_share && channels.size() > 1) {
    return first;
  }
  for (Channel* channel : channels) {
    LeaveLocked(*channel);
  }
  if (channels.size() == 1 || std::any_of(channels.begin(), channels.end(),
                                          [](const Channel* c) { return c->IsUnderWay(); })) {
    return nullptr;
  }
  SharedStart* const shared = Take();
  if (shared == nullptr) {
    return nullptr;
  }
  for (Channel* channel : channels) {
    Drop(*channel);
    channel->shared = shared;
    channel->shares = true;
    shm::ChannelLayout& end = *channel->end;
    shm::StoreRelaxed(end.shared_start, shared->offset);
    shm::StoreRelaxed(end.shared_base, channel->starts - shared->rings);
    shm::StoreRelaxed(end.shared_until, UINT64_MAX);
    shm::StoreRelaxed(end.shares, uint32_t{1});
  }
  shared->sharers = static_cast<uint32_t>(channels.size());
  shared->users = shared->sharers;
  return shared;
}

void SharedStarts::LeaveLocked(Channel& channel) {
  if (std::exchange(channel.shares, false)) {
    --channel.shared->sharers;
    shm::StoreRelaxed(channel.end->shared_until, channel.starts);
  }
}

void SharedStarts::Forget(Channel& channel) {
  if (channel.shared != nullptr) {
    const std::lock_guard lock(mutex_);
    LeaveLocked(channel);
    Drop(channel);
  }
}

void SharedStarts::Drop(Channel& channel) {
  SharedStart* const shared = std::exchange(channel.shared, nullptr);
  if (shared == nullptr) {
    return;
  }
  shared->is_lost |= channel.IsUnderWay();
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
