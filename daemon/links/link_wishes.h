// The wishes of ranks for direct links, on their way from the data plane to the control thread.
//
// A rank can wish as fast as it writes. So a pair's wish is not taken again while it waits, and
// wishes are handled in batches: at most kBatchesPerSecond, each with at most kMostOfRank wishes of
// a rank. A wish that comes alone is handled at once.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "daemon/plane/control_loop.h"

namespace ferry::daemon {

class LinkWishes {
 public:
  static constexpr uint32_t kBatchesPerSecond = 100;
  static constexpr size_t kMostOfRank = 16;
  // On the control thread.
  using Handle = std::function<void(const std::string& job_id, uint32_t rank, uint32_t peer)>;

  // `loop` outlives it, and has stopped when it ends.
  LinkWishes(ControlLoop& loop, Handle handle);

  // Any thread; does not block.
  void Put(const std::string& job_id, uint32_t rank, uint32_t peer);

 private:
  using Name = std::pair<std::string, uint32_t>;  // job, rank

  void TakeBatch();

  ControlLoop& loop_;
  const Handle handle_;
  boost::asio::steady_timer timer_;  // of the next batch
  std::mutex mutex_;
  std::map<Name, std::set<uint32_t>> peers_;  // that are wished for
  bool is_taken_care_of_ = false;             // TakeBatch will be called
};

}  // namespace ferry::daemon
