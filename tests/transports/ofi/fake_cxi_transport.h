// A transport over one FakeCxi: memory and deferred work, whose only peer is itself. It carries no
// messages.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/transports/ofi/fake_cxi.h"
#include "transports/api/transport.h"
#include "transports/ofi/memory.h"
#include "transports/ofi/ofi_deferred.h"

namespace ferry::transport {

class FakeCxiTransport final : public Transport, private DeferredPeers {
 public:
  // The NIC outlives it.
  explicit FakeCxiTransport(FakeCxi& nic)
      : nic_(nic), endpoint_(nic.Open()), regions_(endpoint_.get()) {
    peer_.address = FakeCxi::kSelf;
    capabilities_.pins = false;
    deferred_ = std::move(*OfiDeferred::Create(*endpoint_, /*wanted_entries=*/0, &regions_, this));
  }
  ~FakeCxiTransport() override {
    regions_.Clear();
    deferred_->Deregister();
  }

  // Lets the NIC work; its errors are reported as a completion queue would.
  void Work() {
    nic_.Work([this](void* context) { deferred_->OnError(context, ErrorCode::kInvalidBuffer); });
  }

  const Capabilities& capabilities() const override { return capabilities_; }
  const Description& Describe() const override { return endpoint_->description; }
  const std::vector<std::byte>& Address() const override { return address_; }
  const Statistics& statistics() const override { return statistics_; }
  std::string LastError() const override { return {}; }
  StatusOr<PeerId> AddPeer(std::span<const std::byte> /*address*/, uint64_t /*guest*/) override {
    return PeerId{1};
  }
  Status RemovePeer(PeerId /*peer*/) override { return {}; }
  void FailPeer(PeerId /*peer*/, ErrorCode /*code*/) override {}
  StatusOr<std::unique_ptr<Registration>> PrepareMemory(void* base, uint64_t bytes,
                                                        Access access) override {
    return regions_.Prepare(base, bytes, access, /*counter=*/nullptr);
  }
  StatusOr<MemoryRegion> AdoptMemory(std::unique_ptr<Registration> registration) override {
    return regions_.Adopt(std::move(registration));
  }
  StatusOr<std::unique_ptr<Registration>> ReleaseMemory(RegionHandle region) override {
    return regions_.Release(region);
  }
  ErrorCode SendMessage(PeerId, std::span<const std::byte>, std::span<const std::byte>, uint64_t,
                        uint64_t) override {
    return ErrorCode::kUnsupported;
  }
  ErrorCode SendMessageFrom(PeerId, std::span<const std::byte>, const Attachment&, uint64_t,
                            uint64_t) override {
    return ErrorCode::kUnsupported;
  }
  ErrorCode Write(const RmaRequest&, Placement, uint64_t) override {
    return ErrorCode::kUnsupported;
  }
  ErrorCode Read(const RmaRequest&, uint64_t) override { return ErrorCode::kUnsupported; }
  int Poll(CompletionSink&, int, uint64_t) override { return 0; }
  int WaitFd() const override { return -1; }
  bool PrepareToSleep() override { return false; }
  uint64_t NextPollNs(uint64_t) const override { return UINT64_MAX; }
  DeferredWork* deferred_work() override { return deferred_.get(); }

 private:
  Peer* Usable(PeerId, ErrorCode*) override { return &peer_; }
  void ForgetIfIdle(Peer*) override {}

  FakeCxi& nic_;
  const std::unique_ptr<Endpoint> endpoint_;
  RegionTable regions_;
  std::unique_ptr<OfiDeferred> deferred_;
  Peer peer_;
  Capabilities capabilities_;
  Statistics statistics_;
  std::vector<std::byte> address_ = {std::byte{FakeCxi::kSelf}};
};

}  // namespace ferry::transport
