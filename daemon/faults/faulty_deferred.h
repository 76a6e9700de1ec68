// Deferred work with faults: operations that the NIC has taken and loses. They fire never, and
// nothing tells of them, until their trigger's counter is closed. Part of FaultyTransport.
//
// Thread: as DeferredWork.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/faults/faults.h"
#include "transports/api/deferred_work.h"

namespace ferry::daemon {

class FaultyDeferred final : public transport::DeferredWork {
 public:
  // Both outlive this.
  FaultyDeferred(transport::DeferredWork& real, Faults& faults) : real_(real), faults_(faults) {}

  uint32_t entries() const override { return real_.entries(); }
  uint32_t in_use() const override { return real_.in_use() + static_cast<uint32_t>(lost_.size()); }
  uint64_t max_write_bytes() const override { return real_.max_write_bytes(); }
  uint64_t max_threshold() const override { return real_.max_threshold(); }
  const transport::DeferredStatistics& statistics() const override { return real_.statistics(); }
  StatusOr<transport::NicCounter> OpenCounter(uint64_t* write_back) override {
    return real_.OpenCounter(write_back);
  }
  void CloseCounter(transport::NicCounter counter) override;
  void AddToCounter(transport::NicCounter counter, uint64_t n) override {
    real_.AddToCounter(counter, n);
  }
  uint64_t ReadCounter(transport::NicCounter counter) override {
    return real_.ReadCounter(counter);
  }
  transport::CounterDoorbell Doorbell(transport::NicCounter counter) override {
    return real_.Doorbell(counter);
  }
  StatusOr<std::unique_ptr<transport::Registration>> PrepareTarget(
      void* base, uint64_t bytes, transport::NicCounter counter) override {
    return real_.PrepareTarget(base, bytes, counter);
  }
  ErrorCode ArmWrite(const transport::DeferredWrite& write) override;
  ErrorCode ArmIncrement(const transport::DeferredIncrement& increment) override;
  int Poll(transport::DeferredSink& sink, uint64_t now_ns) override;
  uint64_t NextPollNs(uint64_t now_ns) const override {
    return cancelled_.empty() ? real_.NextPollNs(now_ns) : now_ns;
  }

 private:
  struct Lost {
    transport::NicCounter trigger;
    uint64_t context;
  };
  bool Loses(const transport::DeferredTrigger& trigger, uint64_t context);

  transport::DeferredWork& real_;
  Faults& faults_;
  std::vector<Lost> lost_;
  std::vector<uint64_t> cancelled_;  // contexts
};

}  // namespace ferry::daemon
