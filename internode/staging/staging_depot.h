// Gives each job staging memory of its own when it first needs some, so that no user's worker maps
// another user's data, and takes it back when the job ends.
//
// Calling thread: the progress thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/error_code.h"
#include "internode/staging/copier.h"
#include "internode/staging/staging_pool.h"

namespace ferry::progress {

// The rules for the staging memory of all jobs.
struct StagingRules {
  FlowWeights weights = {};  // of a job's ranks
  uint64_t idle_ns = 0;      // after which idle blocks above a pool's least go
  // Each of these functions may be empty.
  SettleMemory settle = {};
  TellOperator tell = {};
  // Injects a fault whenever a job is about to get its memory. kWouldBlock: the pool has no free
  // block until `replenish` is called; any other error: the job gets that error in place of its
  // memory.
  std::function<ErrorCode(std::function<void()> replenish)> fault = {};
};

// Statistics of all pools together.
struct StagingStatistics {
  uint32_t blocks = 0;
  uint32_t most_blocks = 0;
  uint32_t busy = 0;
  uint32_t waits = 0;  // transfers
  uint64_t grown = 0;  // blocks, since the start
  uint64_t shrunk = 0;
  // Ends of messages in device memory: those that the NIC reached itself, and those that went by
  // blocks.
  uint64_t device_direct = 0;
  uint64_t device_staged = 0;
};

class StagingDepot {
 public:
  // The registrar outlives all calls; see PinnedMemory for the end.
  explicit StagingDepot(Registrar& registrar, StagingRules rules = {})
      : registrar_(registrar), rules_(std::move(rules)) {}

  // Makes sure that the stage has its memory. Its blocks may be free only later. Errors: those of
  // StagingPool::Create, and StagingPool::failure, at which transfers that wait for a block must
  // look, too, when they advance; kUnsupported: the stage has no copier, and so no memory.
  ErrorCode Provide(Stage& stage);
  // Ends the stage of a job that has ended. Its memory, if it has any, is kept until the network
  // has let go of it, and until `not_before_ns` if peers may still be reading there.
  void Retire(const Stage& stage, uint64_t not_before_ns);
  // Lets pools grow for transfers that wait for blocks. Call it once in a turn, after these have
  // advanced.
  void Advance();
  // Looks whether tainted blocks can be used again, and pools shrunk.
  void Recycle(uint64_t now_ns);

  const std::vector<std::unique_ptr<StagingPool>>& pools() const { return pools_; }
  StagingStatistics Statistics() const;
  // Counts one more end of a message in device memory.
  void CountDevice(bool is_direct) { ++(is_direct ? device_direct_ : device_staged_); }
  // Returns true if Recycle has something to do, or will have.
  bool must_recycle() const;

 private:
  void ReplenishAll();

  Registrar& registrar_;
  const StagingRules rules_;
  uint64_t past_grown_ = 0;  // of pools that are gone
  uint64_t past_shrunk_ = 0;
  uint64_t device_direct_ = 0;
  uint64_t device_staged_ = 0;
  std::vector<std::unique_ptr<StagingPool>> pools_;
};

}  // namespace ferry::progress
