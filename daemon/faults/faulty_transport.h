// A transport with faults: refuses memory, fails and holds back reads and writes, loses and holds
// back packets, loses what the NIC is to do later, and dies when packets leave or arrive. There is
// one only if the option `faults` is set.
//
// A packet that is lost takes its connection with it, as with the real ones: what is sent to that
// peer afterwards is lost too, and every loss is reported, until the peer is forgotten.
//
// Thread: as Transport.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/faults/faults.h"
#include "daemon/faults/faulty_deferred.h"
#include "transports/api/forwarding_transport.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

// One of several NICs, that loses what it is to do later.
class FaultyRail final : public transport::ForwardingTransport {
 public:
  // Both outlive this.
  FaultyRail(transport::Transport& real, Faults& faults) : ForwardingTransport(real) {
    if (transport::DeferredWork* deferred = real.deferred_work(); deferred != nullptr) {
      deferred_.emplace(*deferred, faults);
    }
  }
  transport::DeferredWork* deferred_work() override { return deferred_ ? &*deferred_ : nullptr; }

 private:
  std::optional<FaultyDeferred> deferred_;
};

class FaultyTransport final : public transport::ForwardingTransport {
 public:
  // `faults` outlives this. Reads and writes that are held back fail after `timeout_ns`, as real
  // ones do; those of one NIC of several are not.
  FaultyTransport(std::unique_ptr<transport::Transport> real, Faults& faults, uint64_t timeout_ns);

  std::string LastError() const override;
  Status RemovePeer(transport::PeerId peer) override;
  void FailPeer(transport::PeerId peer, ErrorCode code) override;
  StatusOr<transport::MemoryRegion> AdoptMemory(
      std::unique_ptr<transport::Registration> registration) override;
  StatusOr<std::unique_ptr<transport::Registration>> ReleaseMemory(
      transport::RegionHandle region) override;
  ErrorCode SendMessage(transport::PeerId peer, std::span<const std::byte> header,
                        std::span<const std::byte> payload, uint64_t context,
                        uint64_t now_ns) override;
  ErrorCode SendMessageFrom(transport::PeerId peer, std::span<const std::byte> header,
                            const transport::Attachment& attachment, uint64_t context,
                            uint64_t now_ns) override;
  ErrorCode Write(const transport::RmaRequest& request, transport::Placement placement,
                  uint64_t now_ns) override;
  ErrorCode Read(const transport::RmaRequest& request, uint64_t now_ns) override;
  int Poll(transport::CompletionSink& sink, int budget, uint64_t now_ns) override;
  bool PrepareToSleep() override { return ended_.empty() && real_->PrepareToSleep(); }
  uint64_t NextPollNs(uint64_t now_ns) const override;
  transport::DeferredWork* deferred_work() override { return deferred_ ? &*deferred_ : nullptr; }
  std::vector<transport::Transport*> Rails() override;

 private:
  // A read or a write that is held back.
  struct Held {
    FaultPoint point;
    transport::RmaRequest request;
    transport::Placement placement;  // of a write
    uint64_t deadline_ns;
  };

  template <typename Post>
  ErrorCode PostMessage(transport::PeerId peer, std::span<const std::byte> frame, uint64_t context,
                        Post&& post);
  ErrorCode PostHeldOr(const Held& operation, uint64_t now_ns);
  ErrorCode PostReal(const Held& operation, uint64_t now_ns);
  void PassHeld(uint64_t now_ns);

  const std::unique_ptr<transport::Transport> real_;
  Faults& faults_;
  std::optional<FaultyDeferred> deferred_;
  std::vector<std::unique_ptr<FaultyRail>> rails_;  // none, of one NIC
  const uint64_t timeout_ns_;
  std::set<transport::PeerId> lost_;
  std::optional<transport::PeerId> stalled_peer_;  // what is for it waits
  std::vector<Held> held_;
  std::deque<std::pair<uint64_t, ErrorCode>> ended_;  // context and result of what we ended
};

}  // namespace ferry::daemon
