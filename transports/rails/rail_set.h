// The transport that CreateRailsTransport makes (rails_transport.h says what it does): its state,
// and the life of its operations.
//
// An operation is a message, which goes by the first rail, or a read or a write. A read or write
// waits for the keys of the peer's memory (rail_set_keys.cc), then is posted in stripes
// (rail_set_striping.cc). An operation ends when no rail has any stripe of it, and is reported by
// the same Poll or the next one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/secret.h"
#include "common/slot_map.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "transports/api/accounting.h"
#include "transports/api/transport.h"
#include "transports/rails/rail_address.h"
#include "transports/rails/rail_keys.h"

namespace ferry::transport {

// A registration for each rail. Destroying it unpins all of them.
struct RailsRegistration final : Registration {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  std::array<std::unique_ptr<Registration>, kMaxRails> of_rail;
};

struct RailRegion {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  uint64_t key = 0;
  RailKeys keys{};
  std::array<RegionHandle, kMaxRails> handles{};
  uint32_t users = 0;  // operations of the rails' transport
  // Not null: some rails have released the region, so it cannot be used any more.
  std::unique_ptr<RailsRegistration> leaving;

  bool Contains(const void* address, uint64_t length) const {
    return transport::Contains(base, bytes, address, length);
  }
};

// Memory that every rail has registered.
//
// Calling thread: the progress thread, but for RailsRegistration and Prepare.
class RailMemory {
 public:
  // The rails outlive this.
  explicit RailMemory(std::vector<Transport*> rails) : rails_(std::move(rails)) {}

  // As in Transport; the key stands for all rails, and addresses count from 0.
  using PrepareOne = std::function<StatusOr<std::unique_ptr<Registration>>(Transport& rail)>;
  StatusOr<std::unique_ptr<Registration>> Prepare(void* base, uint64_t bytes,
                                                  const PrepareOne& prepare) const;
  StatusOr<MemoryRegion> Adopt(std::unique_ptr<Registration> registration);
  StatusOr<std::unique_ptr<Registration>> Release(RegionHandle handle);

  // Null if there is no such region, or if it is leaving.
  RailRegion* Find(RegionHandle handle);
  RailRegion* FindByKey(uint64_t key);

 private:
  const std::vector<Transport*> rails_;
  SlotMap<RegionHandle, RailRegion> regions_;
  std::unordered_map<uint64_t, RegionHandle> by_key_;
};

inline constexpr uint32_t kPostedStripesPerRail =
    2;  // per operation: one on the wire, one behind it
inline constexpr uint64_t kAsksPerTimeout = 8;
inline constexpr uint64_t kProbesPerTimeout = 4;
// As stripes of the timeout: how long a peer that is first asked has to answer, and how often it is
// asked meanwhile. It may not know this node yet.
inline constexpr uint64_t kPatiencePerTimeout = 50;
inline constexpr uint64_t kFirstProbesPerTimeout = 250;

// The context that a rail hands back: the index of an operation (a message) or of a stripe; or
// kDirectContext, for an operation posted directly to the rail.
inline constexpr uint64_t kPostedStripeBit = 1;
inline constexpr uint64_t kRailMessageContext = kDirectContext - 1;

struct RailPeer {
  PeerId id{};
  Secret cookie{};      // the peer's for this node
  Secret own_cookie{};  // this node's for the peer
  uint32_t rails = 0;   // that both nodes have
  std::array<PeerId, kMaxRails> of_rail{};
  uint32_t up = 1;       // rails, by bit, that may carry its stripes: the first and those that echo
  bool probing = false;  // the peer was or will be used, so its other rails are probed
  uint64_t asked_ns = 0;  // time of the first probe of those rails; 0: none yet
  ErrorCode failure = ErrorCode::kOk;
  bool removed = false;
  uint32_t outstanding = 0;
  KnownKeys keys;

  bool HasSent(const RailMessage& message) const {
    return SameSecret(message.to, own_cookie) && SameSecret(message.from, cookie);
  }
};

// A range of an operation, carried by one rail.
struct Stripe {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint32_t tried = 0;  // rails that have failed it, by bit
};

struct RailOperation {
  using Kind = OperationKind;

  Kind kind = Kind::kMessage;
  Placement placement = Placement::kLocal;
  ErrorCode result = ErrorCode::kOk;
  bool active = false;  // accepted, and not ended
  bool parked = false;  // no rail had room
  RmaRequest request;   // for a message: peer, region (if `attached`), bytes, context
  bool attached = false;
  RailKeys keys{};
  uint64_t next_offset = 0;   // nothing from here on has been posted
  std::vector<Stripe> again;  // stripes to be posted again
  uint32_t in_flight = 0;
  std::array<uint8_t, kMaxRails> on_rail{};
  uint64_t deadline_ns = 0;  // while it waits for keys
  uint64_t asked_ns = 0;
};

// Returns true if both requests wait for the same answer.
inline bool AskSame(const RmaRequest& a, const RmaRequest& b) {
  return a.peer == b.peer && a.key == b.key;
}

struct PostedStripe {
  uint32_t operation = 0;
  uint32_t rail = 0;
  Stripe stripe;
};

class RailSet final : public Transport {
 public:
  RailSet(const TransportOptions& options, std::vector<std::unique_ptr<Transport>> rails);
  Status Open();

  const Capabilities& capabilities() const override { return capabilities_; }
  const Description& Describe() const override { return First().Describe(); }
  std::vector<Transport*> Rails() override { return rails_; }
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
    return memory_.Prepare(
        base, bytes, [&](Transport& rail) { return rail.PrepareMemory(base, bytes, access); });
  }
  StatusOr<std::unique_ptr<Registration>> PrepareDeviceMemory(const DeviceMemory& memory,
                                                              void* base, uint64_t bytes,
                                                              Access access) override {
    return memory_.Prepare(base, bytes, [&](Transport& rail) {
      return rail.PrepareDeviceMemory(memory, base, bytes, access);
    });
  }
  StatusOr<MemoryRegion> AdoptMemory(std::unique_ptr<Registration> registration) override {
    return memory_.Adopt(std::move(registration));
  }
  StatusOr<std::unique_ptr<Registration>> ReleaseMemory(RegionHandle region) override {
    return memory_.Release(region);
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
    void OnPeerLost(PeerId peer, bool lossless) override {
      if (const PeerId whole = rail_ == 0 ? owner_.NameOf(peer) : kUnknownPeer;
          whole != kUnknownPeer) {
        user_.OnPeerLost(whole, lossless);
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

  Transport& First() const { return *rails_.front(); }
  void OnCall(uint64_t now_ns);
  RailPeer* Usable(PeerId id, ErrorCode* code);

  ErrorCode Accept(RailPeer* peer, RailOperation** operation);
  ErrorCode StartRma(RailOperation::Kind kind, const RmaRequest& request, Placement placement,
                     uint64_t now_ns);
  template <typename Post>
  ErrorCode StartMessage(PeerId peer, uint64_t bytes, RegionHandle* region, uint64_t context,
                         Post&& post);
  uint32_t IndexOf(const RailOperation& operation) const {
    return static_cast<uint32_t>(&operation - operations_.data());
  }

  void Advance(RailOperation* operation);
  std::optional<Stripe> NextStripe(const RailOperation& operation) const;
  std::optional<size_t> RailFor(const RailOperation& operation, const RailPeer& peer,
                                const Stripe& stripe, uint32_t full) const;
  ErrorCode PostStripe(RailOperation* operation, const RailPeer& peer, const Stripe& stripe,
                       size_t rail);
  void OnStripeFailed(RailOperation* operation, Stripe stripe, size_t rail, ErrorCode code);
  void Fail(RailOperation* operation, ErrorCode code);
  void EndIfDone(RailOperation* operation);
  int ReportEnded(CompletionSink& sink, int budget);
  void ForgetIfIdle(RailPeer* peer);

  bool OnReceive(size_t rail, PeerId sender, std::span<const std::byte> bytes,
                 CompletionSink& user);
  Landing OnHead(size_t rail, PeerId sender, std::span<const std::byte> header,
                 uint64_t attachment_bytes, CompletionSink& user);
  PeerId NameOf(PeerId first_rail_sender) const;
  void CountReceived(uint64_t bytes);
  void OnRailComplete(uint64_t context, ErrorCode code);

  void Ask(const RmaRequest& request);
  void Probe(RailPeer* peer);
  void ProbeAll();
  bool IsFirstAsked(const RailPeer& peer) const;
  void ProbeWithin(uint64_t interval_ns);
  void Doubt(RailPeer* peer, size_t rail);
  static constexpr uint64_t kCookies = 3;  // purpose of a secret
  Secret CookieFor(uint64_t guest) const { return cookies_->For(guest, kCookies); }
  void OnRailMessage(size_t rail, const RailMessage& message);
  void OnEcho(size_t rail, const RailMessage& echo);
  void Answer(const RailMessage& question);
  void OnAnswer(const RailMessage& answer);
  ErrorCode SendRailMessage(const RailPeer& peer, size_t rail, const RailMessage& message);
  void Reply(size_t rail, const RailMessage& message);
  void SendReplies();
  void AskAgain();

  const TransportOptions options_;
  std::vector<std::unique_ptr<Transport>> owned_;
  const std::vector<Transport*> rails_;
  std::array<uint64_t, kMaxRails> load_bytes_{};
  Capabilities capabilities_;
  std::optional<SecretSource> cookies_;  // from Open on
  std::vector<std::byte> address_;
  UniqueFd wait_fd_;
  mutable Statistics statistics_;
  uint64_t failures_ = 0;             // of operations, each once, however many rails have failed it
  uint64_t own_timeouts_ = 0;         // timeouts that no rail has counted
  const char* last_error_ = nullptr;  // this transport's own; null: ask the rails

  RailMemory memory_;
  SlotMap<PeerId, RailPeer> peers_;
  std::unordered_map<PeerId, PeerId> by_first_rail_;  // by the first rail's number of a peer

  std::vector<RailOperation> operations_;
  std::vector<uint32_t> free_operations_;
  uint32_t busy_peers_ = 0;  // peers that have operations outstanding
  std::vector<PostedStripe> posted_stripes_;
  std::vector<uint32_t> free_posted_stripes_;
  std::vector<uint32_t> parked_;
  std::vector<uint32_t> resumed_;  // operations of parked_, while they are tried again
  std::vector<uint32_t> asking_;   // operations that wait for keys
  std::vector<uint32_t> ended_;    // to be reported, from reported_ on
  size_t reported_ = 0;
  std::vector<std::pair<size_t, RailMessage>> replies_;  // to be sent, each by its rail
  uint64_t next_probe_ns_ = UINT64_MAX;

  uint64_t now_ns_ = 0;
  size_t first_polled_ = 0;
};

}  // namespace ferry::transport
