#include "daemon/links/link_wishes.h"

#include <chrono>
#include <tuple>
#include <vector>

namespace ferry::daemon {

LinkWishes::LinkWishes(ControlLoop& loop, Handle handle)
    : loop_(loop), handle_(std::move(handle)), timer_(loop.context()) {}

void LinkWishes::Put(const std::string& job_id, uint32_t rank, uint32_t peer) {
  {
    const std::lock_guard lock(mutex_);
    peers_[{job_id, rank}].insert(peer);
    if (std::exchange(is_taken_care_of_, true)) {
      return;
    }
  }
  loop_.Post([this] { TakeBatch(); });
}

void LinkWishes::TakeBatch() {
  std::vector<std::tuple<std::string, uint32_t, uint32_t>> batch;
  {
    const std::lock_guard lock(mutex_);
    if (peers_.empty()) {
      is_taken_care_of_ = false;
      return;
    }
    for (auto next = peers_.begin(); next != peers_.end();) {
      auto& [name, peers] = *next;
      for (size_t taken = 0; taken < kMostOfRank && !peers.empty(); ++taken) {
        batch.emplace_back(name.first, name.second, *peers.begin());
        peers.erase(peers.begin());
      }
      next = peers.empty() ? peers_.erase(next) : std::next(next);
    }
  }
  for (const auto& [job_id, rank, peer] : batch) {
    handle_(job_id, rank, peer);
  }
  timer_.expires_after(std::chrono::microseconds(1'000'000 / kBatchesPerSecond));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      TakeBatch();
    }
  });
}

}  // namespace ferry::daemon
