#include "gpu_backends/driver/page_registrations.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>

namespace ferry::gpu {
namespace {

// The run around `begin`, or else the next one behind it.
template <typename Runs>
auto RunFrom(Runs& runs, uintptr_t begin) {
  const auto next = runs.upper_bound(begin);
  const bool is_around = next != runs.begin() && std::prev(next)->second.end > begin;
  return is_around ? std::prev(next) : next;
}

}  // namespace

PageRegistrations::PageRegistrations(Driver& driver)
    : driver_(driver), page_bytes_(static_cast<uintptr_t>(sysconf(_SC_PAGESIZE))) {}

PageRegistrations::Range PageRegistrations::PagesOf(const void* pointer,
                                                    uint64_t size_bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  return {begin & ~(page_bytes_ - 1), (begin + size_bytes + page_bytes_ - 1) & ~(page_bytes_ - 1)};
}

template <typename Visit>
void PageRegistrations::ForEachRun(Range pages, Visit&& visit) {
  auto run = RunFrom(runs_, pages.begin);
  while (run != runs_.end() && run->first < pages.end) {
    const auto next = std::next(run);
    visit(run);
    run = next;
  }
}

std::vector<PageRegistrations::Range> PageRegistrations::GapsIn(Range pages) const {
  std::vector<Range> gaps;
  uintptr_t at = pages.begin;
  for (auto run = RunFrom(runs_, pages.begin); run != runs_.end() && run->first < pages.end;
       ++run) {
    if (run->first > at) {
      gaps.push_back({at, run->first});
    }
    at = run->second.end;
  }
  if (at < pages.end) {
    gaps.push_back({at, pages.end});
  }
  return gaps;
}

Status PageRegistrations::Add(void* pointer, uint64_t size_bytes, Kind kind) {
  const Range pages = PagesOf(pointer, size_bytes);
  std::unique_lock lock(mutex_);
  const std::vector<Range> gaps = GapsIn(pages);
  for (size_t i = 0; i < gaps.size(); ++i) {
    void* const begin = reinterpret_cast<void*>(gaps[i].begin);
    const uint64_t bytes = gaps[i].end - gaps[i].begin;
    const Status status =
        kind == Kind::kIo ? driver_.RegisterIo(begin, bytes) : driver_.Register(begin, bytes);
    if (!status.ok()) {
      while (i-- > 0) {
        (void)driver_.Unregister(reinterpret_cast<void*>(gaps[i].begin));
      }
      return status;
    }
  }
  for (const Range& gap : gaps) {
    runs_.emplace(gap.begin, Run{gap.end, 0});
  }
  ForEachRun(pages, [](auto run) { ++run->second.users; });
  return {};
}

Status PageRegistrations::Remove(void* pointer, uint64_t size_bytes) {
  std::unique_lock lock(mutex_);
  Status first;
  ForEachRun(PagesOf(pointer, size_bytes), [&](auto run) {
    if (--run->second.users == 0) {
      const Status status = driver_.Unregister(reinterpret_cast<void*>(run->first));
      if (first.ok()) {
        first = status;
      }
      runs_.erase(run);
    }
  });
  return first;
}

uint64_t PageRegistrations::UniformBytes(const void* pointer, uint64_t size_bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  std::shared_lock lock(mutex_);
  const auto run = RunFrom(runs_, begin);
  if (run == runs_.end()) {
    return size_bytes;
  }
  const uintptr_t edge = run->first <= begin ? run->second.end : run->first;
  return std::min<uint64_t>(size_bytes, edge - begin);
}

}  // namespace ferry::gpu
