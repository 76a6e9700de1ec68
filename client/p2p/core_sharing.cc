#include "client/p2p/core_sharing.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "common/clock.h"
#include "common/process_stat.h"
#include "common/topology/affinity.h"
#include "common/topology/cpu_set.h"
#include "shm/wait_policy.h"

namespace ferry::client {
namespace {

// Between two looks, for each other rank: a hundred times as long as it takes.
constexpr uint64_t kPauseNs = 1'000'000;

// The CPU on which the process's first thread runs, or waits to run; nothing if it does neither.
std::optional<uint32_t> RunsOn(pid_t process) {
  const ProcessStat stat = ReadProcessStat(process);
  const auto cpu = static_cast<uint32_t>(stat.cpu);
  return stat.state == 'R' && cpu < topology::kMaxCpus ? std::optional(cpu) : std::nullopt;
}

// Held while a thread of the process looks and moves, too: so the one that lives ends only
// afterwards.
std::mutex mutex;
CoreSharing* active = nullptr;

}  // namespace

CoreSharing::CoreSharing(std::vector<pid_t> others) : others_(std::move(others)) {
  const std::lock_guard lock(mutex);
  if (!others_.empty() && active == nullptr) {
    active = this;
    shm::SetCrowdedHook(OnCrowded);
  }
}

CoreSharing::~CoreSharing() {
  const std::lock_guard lock(mutex);
  if (active == this) {
    active = nullptr;
    shm::SetCrowdedHook(nullptr);
  }
}

void CoreSharing::OnCrowded() {
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (lock.owns_lock() && active != nullptr) {
    (void)active->MoveAway();
  }
}

bool CoreSharing::MoveAway() {
  const uint64_t now_ns = MonotonicNs();
  if (now_ns < next_ns_) {
    return false;
  }
  next_ns_ = now_ns + kPauseNs * others_.size();
  return TryMove();
}

bool CoreSharing::TryMove() const {
  const int here = sched_getcpu();
  if (here < 0) {
    return false;
  }
  topology::CpuSet busy;
  for (const pid_t other : others_) {
    if (const std::optional<uint32_t> cpu = RunsOn(other)) {
      busy.Add(*cpu);
    }
  }
  if (!busy.Contains(static_cast<uint32_t>(here))) {
    return false;
  }
  const StatusOr<topology::CpuSet> mask = topology::AffinityOf(0);
  const std::vector<uint32_t> free =
      mask.ok() ? mask->Without(busy).Cpus() : std::vector<uint32_t>();
  if (free.empty()) {
    return false;
  }
  // The next one of them: those with close numbers mostly share a cache.
  const auto next = std::upper_bound(free.begin(), free.end(), static_cast<uint32_t>(here));
  const topology::CpuSet target = {next == free.end() ? free.front() : *next};
  if (!topology::Pin(pthread_self(), target).ok()) {
    return false;
  }
  (void)topology::Pin(pthread_self(), *mask);
  return true;
}

bool OutnumberCpus(const std::vector<pid_t>& processes) {
  topology::CpuSet cpus;
  for (const pid_t process : processes) {
    const StatusOr<topology::CpuSet> mask = topology::AffinityOf(process);
    if (process == 0 || !mask.ok()) {  // this pid namespace does not show it
      return processes.size() > std::max(1U, std::thread::hardware_concurrency());
    }
    cpus.Add(*mask);
  }
  return processes.size() > cpus.size();
}

}  // namespace ferry::client
