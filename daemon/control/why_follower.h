// Follows chains of waiting ranks from node to node: what `why` cannot see here, it asks the
// daemon of the rank's node, which answers for its own ranks (service Peer, Why).
//
// Calling thread: a gRPC handler's; blocks until those daemons have answered, or one has not in
// time: from then on nobody is asked any more. The control thread goes on meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "common/status.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// Asks about one rank of a job, wherever it is; any thread but the control thread. Blocks.
class WhyAsker {
 public:
  virtual ~WhyAsker() = default;
  // kTimeout: its daemon did not answer in time.
  virtual StatusOr<control::RankWait> Ask(const std::string& job_id, uint32_t rank) = 0;
};

class WhyFollower {
 public:
  explicit WhyFollower(WhyAsker* asker) : asker_(*asker) {}

  // Lengthens the chain of `wait`, and its verdict, for as long as it leaves a node. If a daemon
  // does not tell, that becomes a trouble of `wait`; the verdict then says where to ask.
  void Follow(const std::string& job_id, control::RankWait* wait);

 private:
  const StatusOr<control::RankWait>& Ask(const std::string& job_id, uint32_t rank);

  WhyAsker& asker_;
  uint32_t asked_ = 0;
  bool is_one_silent_ = false;
  std::map<std::pair<std::string, uint32_t>, StatusOr<control::RankWait>> answers_;
};

}  // namespace ferry::daemon
