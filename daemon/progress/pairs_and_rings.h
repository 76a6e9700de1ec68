// The matched pairs and the rings of devices of a node, as an extension of ferryd's core.
//
// Calling thread: the progress thread. Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/status.h"
#include "daemon/device_rings/ring_report.h"
#include "daemon/device_rings/rings.h"
#include "daemon/plane/data_plane.h"
#include "daemon/triggered/pairs.h"
#include "internode/core/extension.h"

namespace ferry::daemon {

class PairsAndRings final : public progress::Extension {
 public:
  PairsAndRings(const progress::ExtensionParts& parts, const DeferredRules& deferred_rules);

  // Reaches a NIC's window for the rank, as Pairs::Reach.
  ErrorCode Reach(progress::ServedRank& rank, const NicWindow& window, progress::Claim* claim) {
    return pairs_.Reach(rank, window, claim);
  }
  // Adds a pair. `rank` is that of the plan, null if it is not served here. kNotFound: the rank is
  // not served here, or has broken the rules. kNodeUnreachable: no way leads to its peer's node
  // yet. Other errors: those of Pairs::Add.
  Status AddPair(progress::ServedRank* rank, const PairPlan& plan);
  void EndPair(const PairName& name, uint64_t rounds, ErrorCode error) {
    pairs_.End(name, rounds, error);
  }
  void RemovePair(const PairName& name) { pairs_.Remove(name); }
  int PageDescriptor(uint32_t nic) const { return pairs_.PageDescriptor(nic); }
  std::vector<RingReport> InspectRings(const progress::ServedRank& rank, uint64_t now_ns) {
    return rings_.Inspect(rank, now_ns);
  }

  // progress::Extension.
  uint32_t AdvanceBeforePoll(uint64_t now_ns) override;
  uint32_t AdvanceAfterPoll(uint64_t now_ns) override;
  uint32_t Look(progress::ServedRank& rank, uint64_t now_ns) override {
    return rings_.Look(rank, now_ns);
  }
  bool OnPacket(progress::Job& job, const progress::Packet& packet) override;
  void OnComplete(uint64_t context, ErrorCode code) override { pairs_.OnComplete(context, code); }
  bool is_asked() const override;
  bool MaySleep() const override { return !pairs_.any_newly_armed(); }
  bool HasTransfers(uint64_t now_ns) const override;
  uint64_t transfer_bytes() const override { return pairs_.transfer_bytes(); }
  uint64_t NextNs(uint64_t now_ns) const override;
  void Report(size_t nic, NicStatistics* statistics) const override;
  void FailTo(const progress::Job& job, uint32_t peer, ErrorCode error) override {
    pairs_.FailTo(job, peer, error);
  }
  void CloseOf(progress::ServedRank& rank, ErrorCode error) override;
  void CloseIn(progress::ServedRank& rank, progress::ServedRegion& region) override;

 private:
  transport::Transport& transport_;
  Pairs pairs_;
  Rings rings_;
  uint32_t asked_ = 0;  // by devices, in this turn
};

}  // namespace ferry::daemon
