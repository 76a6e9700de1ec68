// Deferred work over libfabric's FI_QUEUE_WORK, for the providers that have it: `cxi` (Slingshot)
// and `sockets`.
//
// Ends are found by counting: libfabric reports only failures, by the completion queue, whose
// reader (OfiTransport) hands them on. `sockets` fires about 2,500 operations at a time and then
// stops silently, so operations that are due and do not end are pushed on.
//
// Calling thread: as DeferredWork.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "transports/api/deferred_work.h"
#include "transports/ofi/endpoint.h"
#include "transports/ofi/memory.h"
#include "transports/ofi/ofi_counters.h"
#include "transports/ofi/operation.h"

namespace ferry::transport {

// The peers of the transport to which the deferred work belongs.
class DeferredPeers {
 public:
  virtual ~DeferredPeers() = default;
  // Returns the peer; null, with `*code` set, if nothing may be sent to it.
  virtual Peer* Usable(PeerId id, ErrorCode* code) = 0;
  // Call it when an operation that held the peer is over; its `held` has been decremented.
  virtual void ForgetIfIdle(Peer* peer) = 0;
};

class OfiDeferred final : public DeferredWork {
 public:
  // Returns true if the provider of `endpoint` has deferred work.
  static bool Has(const Endpoint& endpoint);
  // `wanted_entries` as in TransportOptions. All outlive the result, except the endpoint's own
  // endpoint, which is closed first. Errors: kLimitExceeded (the NIC has fewer), kOutOfMemory.
  static StatusOr<std::unique_ptr<OfiDeferred>> Create(const Endpoint& endpoint,
                                                       uint32_t wanted_entries,
                                                       RegionTable* regions, DeferredPeers* peers);

  uint32_t entries() const override { return entries_; }
  uint32_t in_use() const override { return in_use_; }
  uint64_t max_write_bytes() const override { return max_write_bytes_; }
  uint64_t max_threshold() const override { return counters_.max_threshold(); }
  const DeferredStatistics& statistics() const override { return statistics_; }

  StatusOr<NicCounter> OpenCounter() override;
  void CloseCounter(NicCounter id) override;
  void AddToCounter(NicCounter id, uint64_t n) override;
  uint64_t ReadCounter(NicCounter id) override;
  CounterDoorbell Doorbell(NicCounter id) override;
  void ExpectEnds() override { LookSoon(); }
  StatusOr<std::unique_ptr<Registration>> PrepareTarget(
      void* base, uint64_t bytes, NicCounter counter,
      const std::optional<DeviceMemory>& device) override;
  ErrorCode ArmWrite(const DeferredWrite& write) override;
  ErrorCode ArmIncrement(const DeferredIncrement& increment) override;
  int Poll(DeferredSink& sink, uint64_t now_ns) override;
  uint64_t NextPollNs(uint64_t now_ns) const override;

  // For the reader of the completion queue: Owns returns true if a failed completion belongs to an
  // entry; then OnError reports its failure.
  bool Owns(const void* op_context) const;
  void OnError(void* op_context, ErrorCode code);
  // Call it before the endpoint is closed.
  void Deregister() { operand_->Deregister(); }

 private:
  using ReportingCounters = boost::intrusive::list<
      CounterState,
      boost::intrusive::member_hook<CounterState, ListLink, &CounterState::reporting_link>,
      boost::intrusive::constant_time_size<false>>;
  struct Request {
    DeferredTrigger trigger;
    NicCounter done{};
    PeerId peer{};
    uint64_t context = 0;
  };

  OfiDeferred(const Endpoint& endpoint, uint32_t entries, RegionTable* regions,
              DeferredPeers* peers, std::unique_ptr<Arena> operand);

  ErrorCode Take(const Request& request, Region* region, DeferredEntry** entry);
  ErrorCode Queue(DeferredEntry* entry);
  void Link(DeferredEntry* entry);
  void Unlink(DeferredEntry* entry);
  void End(DeferredEntry* entry, ErrorCode code, bool still_held);
  void ReleaseEntry(DeferredEntry* entry);
  void LetGo(DeferredEntry* entry);
  void Free(DeferredEntry* entry);
  void Count(ErrorCode code);

  void LookSoon();
  void Scan(uint64_t now_ns);
  bool Retire(CounterState* counter);
  bool RetireAll();
  void PushOn(CounterState* trigger, uint64_t now_ns);
  bool IsSettled(CounterState* counter, uint64_t now_ns);
  void CloseIfUnused(uint64_t now_ns);
  void ForgetLost(uint64_t now_ns);
  int Report(DeferredSink& sink, uint64_t now_ns);

  const Endpoint& endpoint_;
  const uint32_t entries_;
  const uint64_t max_write_bytes_;
  const bool pushes_on_;
  RegionTable* const regions_;
  DeferredPeers* const peers_;
  const std::unique_ptr<Arena> operand_;  // holds the 1 that increments add

  // The entries: as many as entries_, and spare ones for abandoned operations. The counters, which
  // may hold any of them, are destroyed first.
  std::vector<DeferredEntry> slots_;
  OfiCounters counters_;
  uint32_t in_use_ = 0;
  EntryLifeList free_;
  EntryLifeList ending_;
  ReportingCounters reporting_;
  std::vector<CounterState*> closing_;
  // The file from which the pages of all counters are mapped. A driver that has refused to map one
  // again is not asked any more, since it may note that in the system's log.
  UniqueFd page_descriptor_;
  bool keeps_pages_ = false;
  uint64_t next_scan_ns_ = 0;
  uint64_t scan_interval_ns_ = 0;
  DeferredStatistics statistics_;
};

}  // namespace ferry::transport
