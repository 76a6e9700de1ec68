// The transport that CreateRailsTransport makes (rails_transport.h says what it does): its peers,
// and the life of its operations.
//
// An operation is a message, which goes by the first rail, or a read or a write. A read or write
// waits for the keys of the peer's memory (KeyExchange), then is posted in stripes (Striping). An
// operation ends when no rail has any stripe of it, and is reported by the same Poll or the next
// one. RailMessages says which rails are up to a peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/secret.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "transports/api/accounting.h"
#include "transports/api/transport.h"
#include "transports/rails/key_exchange.h"
#include "transports/rails/rail_messages.h"
#include "transports/rails/rails_state.h"
#include "transports/rails/striping.h"

namespace ferry::transport {

class RailSet final : public Transport {
 public:
  RailSet(const TransportOptions& options, std::vector<std::unique_ptr<Transport>> rails);
  Status Open();

  const Capabilities& capabilities() const override { return capabilities_; }
  const Description& Describe() const override { return First().Describe(); }
  std::vector<Transport*> Rails() override { return state_.rails; }
  PeerId PeerOn(PeerId peer, size_t rail) override;
  ErrorCode Reaches(PeerId peer, size_t rail) override;
  void Doubt(PeerId peer, size_t rail) override;
  const std::vector<std::byte>& Address() const override { return address_; }
  std::vector<std::byte> AddressFor(uint64_t guest) const override;
  const Statistics& statistics() const override;
  std::string LastError() const override;

  StatusOr<PeerId> AddPeer(std::span<const std::byte> address, uint64_t guest) override;
  Status RemovePeer(PeerId id) override;
  void FailPeer(PeerId id, ErrorCode code) override;

  StatusOr<std::unique_ptr<Registration>> PrepareMemory(void* base, uint64_t bytes,
                                                        Access access) override {
    return state_.memory.Prepare(
        base, bytes, [&](Transport& rail) { return rail.PrepareMemory(base, bytes, access); });
  }
  StatusOr<std::unique_ptr<Registration>> PrepareDeviceMemory(const DeviceMemory& memory,
                                                              void* base, uint64_t bytes,
                                                              Access access) override {
    return state_.memory.Prepare(base, bytes, [&](Transport& rail) {
      return rail.PrepareDeviceMemory(memory, base, bytes, access);
    });
  }
  StatusOr<MemoryRegion> AdoptMemory(std::unique_ptr<Registration> registration) override {
    return state_.memory.Adopt(std::move(registration));
  }
  StatusOr<std::unique_ptr<Registration>> ReleaseMemory(RegionHandle region) override {
    return state_.memory.Release(region);
  }

  ErrorCode SendMessage(PeerId peer, std::span<const std::byte> header,
                        std::span<const std::byte> payload, uint64_t context,
                        uint64_t now_ns) override;
  ErrorCode SendMessageFrom(PeerId peer, std::span<const std::byte> header,
                            const Attachment& attachment, uint64_t context,
                            uint64_t now_ns) override;
  ErrorCode Write(const RmaRequest& request, Placement placement, uint64_t now_ns) override {
    return StartRma(RailOperation::Kind::kWrite, request, placement, now_ns);
  }
  ErrorCode Read(const RmaRequest& request, uint64_t now_ns) override {
    return StartRma(RailOperation::Kind::kRead, request, Placement::kLocal, now_ns);
  }

  void DropLanding(uint64_t context) override { First().DropLanding(context); }
  void Flush(uint64_t now_ns) override;
  int Poll(CompletionSink& sink, int budget, uint64_t now_ns) override;
  int WaitFd() const override { return capabilities_.wait_fd ? wait_fd_.get() : -1; }
  bool PrepareToSleep() override;
  uint64_t NextPollNs(uint64_t now_ns) const override;

 private:
  // Receives the events of one rail.
  class RailSink final : public CompletionSink {
   public:
    RailSink(RailSet& owner, size_t rail, CompletionSink& user)
        : owner_(owner), rail_(rail), user_(user) {}
    void OnReceive(PeerId sender, std::span<const std::byte> message) override {
      handed_on_ += owner_.OnReceive(rail_, sender, message, user_) ? 1 : 0;
    }
    void OnComplete(uint64_t context, ErrorCode code) override {
      if ((context & kDirectContext) != 0) {
        user_.OnComplete(context, code);
        ++handed_on_;
      } else {
        owner_.OnRailComplete(context, code);
      }
    }
    Landing OnHead(PeerId sender, std::span<const std::byte> header,
                   uint64_t attachment_bytes) override {
      return owner_.OnHead(rail_, sender, header, attachment_bytes, user_);
    }
    void OnLanded(uint64_t context, ErrorCode code) override {
      user_.OnLanded(context, code);
      ++handed_on_;
    }
    // Passes the loss of the first rail on; the other rails carry no messages.
    void OnConnectionEnded(PeerId peer, bool lossless) override {
      if (const PeerId whole = rail_ == 0 ? owner_.NameOf(peer) : kUnknownPeer;
          whole != kUnknownPeer) {
        user_.OnConnectionEnded(whole, lossless);
        ++handed_on_;
      }
    }
    int handed_on() const { return handed_on_; }

   private:
    RailSet& owner_;
    const size_t rail_;
    CompletionSink& user_;
    int handed_on_ = 0;
  };

  Transport& First() const { return *state_.rails.front(); }
  void OnCall(uint64_t now_ns);
  RailPeer* Usable(PeerId id, ErrorCode* code);

  ErrorCode Accept(RailPeer* peer, RailOperation** operation);
  ErrorCode StartRma(RailOperation::Kind kind, const RmaRequest& request, Placement placement,
                     uint64_t now_ns);
  template <typename Post>
  ErrorCode StartMessage(PeerId peer, uint64_t bytes, RegionHandle* region, uint64_t context,
                         Post&& post);
  int ReportEnded(CompletionSink& sink, int budget);
  void ForgetIfIdle(RailPeer* peer);

  bool OnReceive(size_t rail, PeerId sender, std::span<const std::byte> bytes,
                 CompletionSink& user);
  Landing OnHead(size_t rail, PeerId sender, std::span<const std::byte> header,
                 uint64_t attachment_bytes, CompletionSink& user);
  PeerId NameOf(PeerId first_rail_sender) const;
  void CountReceived(uint64_t bytes);
  void OnRailComplete(uint64_t context, ErrorCode code);

  static constexpr uint64_t kCookies = 3;  // purpose of a secret
  Secret CookieFor(uint64_t guest) const { return cookies_->For(guest, kCookies); }
  void OnRailMessage(size_t rail, const RailMessage& message);

  std::vector<std::unique_ptr<Transport>> owned_;
  Capabilities capabilities_;
  std::optional<SecretSource> cookies_;  // from Open on
  std::vector<std::byte> address_;
  UniqueFd wait_fd_;
  mutable Statistics statistics_;
  uint64_t failures_ = 0;  // of operations, each once, however many rails have failed it

  RailsState state_;
  RailMessages messages_;
  Striping striping_;
  KeyExchange keys_;
  std::unordered_map<PeerId, PeerId> by_first_rail_;  // by the first rail's number of a peer

  std::vector<uint32_t> free_operations_;
  uint32_t busy_peers_ = 0;  // peers that have operations outstanding
  size_t reported_ = 0;      // of state_.ended
  size_t first_polled_ = 0;
};

}  // namespace ferry::transport
