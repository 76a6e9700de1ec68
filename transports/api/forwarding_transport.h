// A Transport that forwards every call to another one: a base for classes that change a few calls.
//
// Thread: as Transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transports/api/transport.h"

namespace ferry::transport {

class ForwardingTransport : public Transport {
 public:
  // `real` outlives the calls.
  explicit ForwardingTransport(Transport& real) : real_(real) {}

  const Capabilities& capabilities() const override { return real_.capabilities(); }
  const Description& Describe() const override { return real_.Describe(); }
  const std::vector<std::byte>& Address() const override { return real_.Address(); }
  std::vector<std::byte> AddressFor(uint64_t guest) const override {
    return real_.AddressFor(guest);
  }
  const Statistics& statistics() const override { return real_.statistics(); }
  std::string LastError() const override { return real_.LastError(); }
  StatusOr<PeerId> AddPeer(std::span<const std::byte> address, uint64_t guest = 0) override {
    return real_.AddPeer(address, guest);
  }
  Status RemovePeer(PeerId peer) override { return real_.RemovePeer(peer); }
  void FailPeer(PeerId peer, ErrorCode code) override { real_.FailPeer(peer, code); }
  void Connect(PeerId peer, uint64_t now_ns) override { real_.Connect(peer, now_ns); }
  ErrorCode ConnectionTo(PeerId peer, std::string* why) override {
    return real_.ConnectionTo(peer, why);
  }
  StatusOr<std::unique_ptr<Registration>> PrepareMemory(void* base, uint64_t bytes,
                                                        Access access) override {
    return real_.PrepareMemory(base, bytes, access);
  }
  StatusOr<std::unique_ptr<Registration>> PrepareDeviceMemory(const DeviceMemory& memory,
                                                              void* base, uint64_t bytes,
                                                              Access access) override {
    return real_.PrepareDeviceMemory(memory, base, bytes, access);
  }
  StatusOr<MemoryRegion> AdoptMemory(std::unique_ptr<Registration> registration) override {
    return real_.AdoptMemory(std::move(registration));
  }
  StatusOr<std::unique_ptr<Registration>> ReleaseMemory(RegionHandle region) override {
    return real_.ReleaseMemory(region);
  }
  ErrorCode SendMessage(PeerId peer, std::span<const std::byte> header,
                        std::span<const std::byte> payload, uint64_t context,
                        uint64_t now_ns) override {
    return real_.SendMessage(peer, header, payload, context, now_ns);
  }
  ErrorCode SendMessageFrom(PeerId peer, std::span<const std::byte> header,
                            const Attachment& attachment, uint64_t context,
                            uint64_t now_ns) override {
    return real_.SendMessageFrom(peer, header, attachment, context, now_ns);
  }
  ErrorCode Write(const RmaRequest& request, Placement placement, uint64_t now_ns) override {
    return real_.Write(request, placement, now_ns);
  }
  ErrorCode Read(const RmaRequest& request, uint64_t now_ns) override {
    return real_.Read(request, now_ns);
  }
  void DropLanding(uint64_t context) override { real_.DropLanding(context); }
  void Flush(uint64_t now_ns) override { real_.Flush(now_ns); }
  int Poll(CompletionSink& sink, int budget, uint64_t now_ns) override {
    return real_.Poll(sink, budget, now_ns);
  }
  int WaitFd() const override { return real_.WaitFd(); }
  bool PrepareToSleep() override { return real_.PrepareToSleep(); }
  uint64_t NextPollNs(uint64_t now_ns) const override { return real_.NextPollNs(now_ns); }
  DeferredWork* deferred_work() override { return real_.deferred_work(); }
  // If the other one is a single NIC, its only rail is this object.
  std::vector<Transport*> Rails() override {
    std::vector<Transport*> rails = real_.Rails();
    return rails.front() == &real_ ? std::vector<Transport*>{this} : rails;
  }
  PeerId PeerOn(PeerId peer, size_t rail) override { return real_.PeerOn(peer, rail); }
  ErrorCode Reaches(PeerId peer, size_t rail) override { return real_.Reaches(peer, rail); }
  void Doubt(PeerId peer, size_t rail) override { real_.Doubt(peer, rail); }

 private:
  Transport& real_;
};

}  // namespace ferry::transport
