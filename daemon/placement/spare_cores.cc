#include "daemon/placement/spare_cores.h"

#include <sched.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "common/topology/affinity.h"
#include "common/topology/claims.h"

namespace ferry::daemon {
namespace {

using topology::CpuSet;

constexpr char kSpawner[] = "ferry-spawner";  // worker/worker_spawn.cc

std::string NameOf(const std::filesystem::path& task) {
  std::string name;
  std::getline(std::ifstream(task / "comm"), name);
  return name;
}

}  // namespace

bool SpareCores::Add(const Rank& rank, const CpuSet& cpus) {
  const std::lock_guard lock(mutex_);
  if (cpus.Contains(allowed_)) {
    return false;
  }
  bound_[rank] = cpus;
  return !left_.Contains(cpus.Intersection(allowed_));
}

bool SpareCores::Remove(const Rank& rank) {
  const std::lock_guard lock(mutex_);
  return bound_.erase(rank) != 0 && bound_.empty();
}

SpareCores::Places SpareCores::Choose(const CpuSet& claimed) {
  const std::lock_guard lock(mutex_);
  left_ = {};
  if (!bound_.empty()) {  // else it has nothing to do
    left_ = claimed;
  }
  for (const auto& [rank, cpus] : bound_) {
    left_.Add(cpus);
  }
  const CpuSet spare = allowed_.Without(left_);
  if (spare.empty()) {
    return {progress_.empty() ? allowed_ : progress_, allowed_};
  }
  const CpuSet near = spare.Intersection(progress_);
  return {near.empty() ? spare : near, spare};
}

void SpareCores::Settle(pthread_t progress) {
  const Places places = Choose(topology::CpuClaims::Current());
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end;
       !error && task != end; task.increment(error)) {
    if (NameOf(task->path()) != kSpawner) {
      const pid_t thread = std::atoi(task->path().filename().c_str());
      (void)topology::PinThread(thread, places.others);  // it may have ended
    }
  }
  (void)topology::Pin(progress, places.progress);
}

}  // namespace ferry::daemon
