#include "daemon/faults/faulty_transport.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/faults/faults.h"
#include "internode/wire/wire.h"
#include "transports/api/deferred_work.h"
#include "transports/api/forwarding_transport.h"
#include "transports/api/transport.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kLookNs = 1'000'000;  // how soon a Release is noticed

struct PacketPoints {
  progress::PacketKind kind;
  FaultPoint send;
  FaultPoint receive;
};
constexpr std::array kPacketPoints = {
    PacketPoints{progress::PacketKind::kRemoteRts, FaultPoint::kSendRts, FaultPoint::kReceiveRts},
    PacketPoints{progress::PacketKind::kRndvGet, FaultPoint::kSendRndvGet,
                 FaultPoint::kReceiveRndvGet},
    PacketPoints{progress::PacketKind::kBlockReady, FaultPoint::kSendBlockReady,
                 FaultPoint::kReceiveBlockReady},
    PacketPoints{progress::PacketKind::kBlockDone, FaultPoint::kSendBlockDone,
                 FaultPoint::kReceiveBlockDone},
    PacketPoints{progress::PacketKind::kSendDone, FaultPoint::kSendResult,
                 FaultPoint::kReceiveResult},
    PacketPoints{progress::PacketKind::kRtr, FaultPoint::kSendRtr, FaultPoint::kReceiveRtr},
    PacketPoints{progress::PacketKind::kWithdraw, FaultPoint::kSendWithdraw,
                 FaultPoint::kReceiveWithdraw},
    PacketPoints{progress::PacketKind::kWithdrawn, FaultPoint::kSendWithdrawn,
                 FaultPoint::kReceiveWithdrawn},
    PacketPoints{progress::PacketKind::kPut, FaultPoint::kSendPut, FaultPoint::kReceivePut},
    PacketPoints{progress::PacketKind::kPutDone, FaultPoint::kSendPutDone,
                 FaultPoint::kReceivePutDone},
    PacketPoints{progress::PacketKind::kOneSided, FaultPoint::kSendOneSided,
                 FaultPoint::kReceiveOneSided},
    PacketPoints{progress::PacketKind::kOneSidedDone, FaultPoint::kSendOneSidedDone,
                 FaultPoint::kReceiveOneSidedDone},
};

// Calls visit(points) for each packet of the frame that has some. The last packet's body may lie
// elsewhere.
template <typename Visitor>
void ForEachPacket(std::span<const std::byte> frame, Visitor&& visit) {
  while (frame.size() >= sizeof(progress::PacketHeader)) {
    progress::PacketHeader header;
    std::memcpy(&header, frame.data(), sizeof(header));
    for (const PacketPoints& points : kPacketPoints) {
      if (header.kind == static_cast<uint8_t>(points.kind)) {
        visit(points);
      }
    }
    const size_t bytes =
        sizeof(header) + header.body_bytes + progress::PaddingOf(header.body_bytes);
    frame = frame.subspan(std::min(frame.size(), bytes));
  }
}

// Looks at each message that arrives before it is handed on.
class ReceiveTap final : public transport::CompletionSink {
 public:
  ReceiveTap(transport::CompletionSink& sink, Faults& faults) : sink_(sink), faults_(faults) {}
  void OnReceive(transport::PeerId sender, std::span<const std::byte> message) override {
    Pass(message);
    sink_.OnReceive(sender, message);
  }
  // A message that does not land comes by OnReceive, and passes the point there.
  transport::Landing OnHead(transport::PeerId sender, std::span<const std::byte> header,
                            uint64_t attachment_bytes) override {
    const transport::Landing landing = sink_.OnHead(sender, header, attachment_bytes);
    if (landing.to != nullptr) {
      Pass(header);
    }
    return landing;
  }
  void OnLanded(uint64_t context, ErrorCode code) override { sink_.OnLanded(context, code); }
  void OnConnectionEnded(transport::PeerId peer, bool lossless) override {
    sink_.OnConnectionEnded(peer, lossless);
  }
  void OnComplete(uint64_t context, ErrorCode code) override { sink_.OnComplete(context, code); }

 private:
  void Pass(std::span<const std::byte> frame) {
    ForEachPacket(frame, [this](const PacketPoints& points) { faults_.Pass(points.receive); });
  }

  transport::CompletionSink& sink_;
  Faults& faults_;
};

// Deferred work with faults: operations that the NIC has taken and loses. They fire never, and
// nothing tells of them, until their trigger's counter is closed. Part of FaultyTransport.
//
// Thread: as DeferredWork.
class FaultyDeferred final : public transport::DeferredWork {
 public:
  // Both outlive this.
  FaultyDeferred(transport::DeferredWork& real, Faults& faults) : real_(real), faults_(faults) {}

  uint32_t entries() const override { return real_.entries(); }
  uint32_t in_use() const override { return real_.in_use() + static_cast<uint32_t>(lost_.size()); }
  uint64_t max_write_bytes() const override { return real_.max_write_bytes(); }
  uint64_t max_threshold() const override { return real_.max_threshold(); }
  const transport::DeferredStatistics& statistics() const override { return real_.statistics(); }
  StatusOr<transport::NicCounter> OpenCounter() override { return real_.OpenCounter(); }
  void CloseCounter(transport::NicCounter counter) override {
    std::erase_if(lost_, [&](const Lost& lost) {
      if (lost.trigger == counter) {
        cancelled_.push_back(lost.context);
      }
      return lost.trigger == counter;
    });
    real_.CloseCounter(counter);
  }

  void AddToCounter(transport::NicCounter counter, uint64_t n) override {
    real_.AddToCounter(counter, n);
  }
  uint64_t ReadCounter(transport::NicCounter counter) override {
    return real_.ReadCounter(counter);
  }
  transport::CounterDoorbell Doorbell(transport::NicCounter counter) override {
    return real_.Doorbell(counter);
  }
  void ExpectEnds() override { real_.ExpectEnds(); }
  StatusOr<std::unique_ptr<transport::Registration>> PrepareTarget(
      void* base, uint64_t bytes, transport::NicCounter counter,
      const std::optional<transport::DeviceMemory>& device) override {
    return real_.PrepareTarget(base, bytes, counter, device);
  }
  ErrorCode ArmWrite(const transport::DeferredWrite& write) override {
    return Loses(write.trigger, write.context) ? ErrorCode::kOk : real_.ArmWrite(write);
  }

  ErrorCode ArmIncrement(const transport::DeferredIncrement& increment) override {
    return Loses(increment.trigger, increment.context) ? ErrorCode::kOk
                                                       : real_.ArmIncrement(increment);
  }

  int Poll(transport::DeferredSink& sink, uint64_t now_ns) override {
    int ends = real_.Poll(sink, now_ns);
    for (const uint64_t context : std::exchange(cancelled_, {})) {
      sink.OnDeferredEnd(context, ErrorCode::kCancelled);
      ++ends;
    }
    return ends;
  }

  uint64_t NextPollNs(uint64_t now_ns) const override {
    return cancelled_.empty() ? real_.NextPollNs(now_ns) : now_ns;
  }

 private:
  struct Lost {
    transport::NicCounter trigger;
    uint64_t context;
  };
  bool Loses(const transport::DeferredTrigger& trigger, uint64_t context) {
    const bool loses = faults_.Pass(FaultPoint::kNicArm) != ErrorCode::kOk;
    if (loses) {
      lost_.push_back({trigger.counter, context});
    }
    return loses;
  }

  transport::DeferredWork& real_;
  Faults& faults_;
  std::vector<Lost> lost_;
  std::vector<uint64_t> cancelled_;  // contexts
};

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
  FaultyTransport(std::unique_ptr<transport::Transport> real, Faults& faults, uint64_t timeout_ns)
      : ForwardingTransport(*real),
        real_(std::move(real)),
        faults_(faults),
        timeout_ns_(timeout_ns) {
    if (transport::DeferredWork* deferred = real_->deferred_work(); deferred != nullptr) {
      deferred_.emplace(*deferred, faults);
    }
    for (transport::Transport* rail : real_->Rails()) {
      if (rail != real_.get()) {
        rails_.push_back(std::make_unique<FaultyRail>(*rail, faults));
      }
    }
  }

  std::string LastError() const override {
    return lost_.empty() ? real_->LastError() : "a packet was lost on purpose (option faults)";
  }

  Status RemovePeer(transport::PeerId peer) override {
    FailPeer(peer, ErrorCode::kCancelled);
    return real_->RemovePeer(peer);
  }

  void FailPeer(transport::PeerId peer, ErrorCode code) override {
    lost_.erase(peer);
    std::erase_if(held_, [&](const Held& held) {
      if (held.request.peer == peer) {
        ended_.emplace_back(held.request.context, code);
      }
      return held.request.peer == peer;
    });
    real_->FailPeer(peer, code);
  }

  StatusOr<transport::MemoryRegion> AdoptMemory(
      std::unique_ptr<transport::Registration> registration) override {
    if (const ErrorCode code = faults_.Pass(FaultPoint::kMemoryRegister); code != ErrorCode::kOk) {
      return Status(code, "memory is refused on purpose (option faults)");
    }
    return real_->AdoptMemory(std::move(registration));
  }

  StatusOr<std::unique_ptr<transport::Registration>> ReleaseMemory(
      transport::RegionHandle region) override {
    const bool used = std::any_of(held_.begin(), held_.end(), [region](const Held& held) {
      return held.request.region == region;
    });
    if (used) {
      return Status(ErrorCode::kWouldBlock, "a read or a write is held back (option faults)");
    }
    return real_->ReleaseMemory(region);
  }

  ErrorCode SendMessage(transport::PeerId peer, std::span<const std::byte> header,
                        std::span<const std::byte> payload, uint64_t context,
                        uint64_t now_ns) override {
    return PostMessage(peer, header, context,
                       [&] { return real_->SendMessage(peer, header, payload, context, now_ns); });
  }

  ErrorCode SendMessageFrom(transport::PeerId peer, std::span<const std::byte> header,
                            const transport::Attachment& attachment, uint64_t context,
                            uint64_t now_ns) override {
    return PostMessage(peer, header, context, [&] {
      return real_->SendMessageFrom(peer, header, attachment, context, now_ns);
    });
  }

  ErrorCode Write(const transport::RmaRequest& request, transport::Placement placement,
                  uint64_t now_ns) override {
    return PostHeldOr({FaultPoint::kPutWrite, request, placement, now_ns + timeout_ns_}, now_ns);
  }

  ErrorCode Read(const transport::RmaRequest& request, uint64_t now_ns) override {
    return PostHeldOr({FaultPoint::kRndvGetRead, request, {}, now_ns + timeout_ns_}, now_ns);
  }

  int Poll(transport::CompletionSink& sink, int budget, uint64_t now_ns) override {
    faults_.Resume();
    ReceiveTap tap(sink, faults_);
    int events = real_->Poll(tap, budget, now_ns);
    PassHeld(now_ns);
    for (const auto& [context, code] : std::exchange(ended_, {})) {
      sink.OnComplete(context, code);
      ++events;
    }
    return events;
  }

  bool PrepareToSleep() override { return ended_.empty() && real_->PrepareToSleep(); }
  uint64_t NextPollNs(uint64_t now_ns) const override {
    // A stalled operation is tried again once it is released, even if nothing else happens.
    const bool look = !held_.empty() || stalled_peer_ || faults_.stalling();
    return std::min(real_->NextPollNs(now_ns), look ? now_ns + kLookNs : UINT64_MAX);
  }

  transport::DeferredWork* deferred_work() override { return deferred_ ? &*deferred_ : nullptr; }
  std::vector<transport::Transport*> Rails() override {
    std::vector<transport::Transport*> rails;
    for (const std::unique_ptr<FaultyRail>& rail : rails_) {
      rails.push_back(rail.get());
    }
    return rails.empty() ? std::vector<transport::Transport*>{this} : rails;
  }

 private:
  // A read or a write that is held back.
  struct Held {
    FaultPoint point;
    transport::RmaRequest request;
    transport::Placement placement;  // of a write
    uint64_t deadline_ns;
  };

  // Counts when the packets have left, so that one that has to wait is not counted twice; only one
  // at which something happens counts at once.
  template <typename Post>
  ErrorCode PostMessage(transport::PeerId peer, std::span<const std::byte> frame, uint64_t context,
                        Post&& post) {
    if (stalled_peer_ && !faults_.stalling()) {
      stalled_peer_.reset();
    }
    if (stalled_peer_ == peer) {
      return ErrorCode::kWouldBlock;
    }
    bool due = false;
    ErrorCode outcome = ErrorCode::kOk;
    const auto pass = [&](const PacketPoints& points) {
      const ErrorCode code = faults_.Pass(points.send);
      outcome = outcome == ErrorCode::kOk ? code : outcome;
    };
    ForEachPacket(frame, [&](const PacketPoints& points) {
      due |= faults_.IsDue(points.send, frame.size() / sizeof(progress::PacketHeader));
    });
    if (due) {
      ForEachPacket(frame, pass);
    }
    if (outcome == ErrorCode::kWouldBlock) {
      stalled_peer_ = peer;
      return outcome;
    }
    if (outcome != ErrorCode::kOk) {
      lost_.insert(peer);
    }
    if (lost_.contains(peer)) {
      ended_.emplace_back(context, ErrorCode::kNodeUnreachable);
      return ErrorCode::kOk;
    }
    const ErrorCode code = post();
    if (!due && code != ErrorCode::kWouldBlock) {
      ForEachPacket(frame, pass);
    }
    return code;
  }

  ErrorCode PostHeldOr(const Held& operation, uint64_t now_ns) {
    if (!faults_.IsDue(operation.point, 1)) {
      const ErrorCode code = PostReal(operation, now_ns);
      if (code != ErrorCode::kWouldBlock) {
        faults_.Pass(operation.point);
      }
      return code;
    }
    const ErrorCode code = faults_.Pass(operation.point);
    if (code == ErrorCode::kWouldBlock) {
      held_.push_back(operation);
    } else {
      ended_.emplace_back(operation.request.context, code);
    }
    return ErrorCode::kOk;
  }

  ErrorCode PostReal(const Held& operation, uint64_t now_ns) {
    return operation.point == FaultPoint::kRndvGetRead
               ? real_->Read(operation.request, now_ns)
               : real_->Write(operation.request, operation.placement, now_ns);
  }

  void PassHeld(uint64_t now_ns) {
    std::erase_if(held_, [&](const Held& held) {
      ErrorCode code = ErrorCode::kWouldBlock;
      if (!faults_.IsStalling(held.point)) {
        code = PostReal(held, now_ns);
      }
      if (code == ErrorCode::kWouldBlock && now_ns >= held.deadline_ns) {
        code = ErrorCode::kTimeout;
      }
      if (code != ErrorCode::kOk && code != ErrorCode::kWouldBlock) {
        ended_.emplace_back(held.request.context, code);
      }
      return code != ErrorCode::kWouldBlock;
    });
  }

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

}  // namespace

std::unique_ptr<transport::Transport> MakeFaultyTransport(
    std::unique_ptr<transport::Transport> real, Faults& faults, uint64_t timeout_ns) {
  return std::make_unique<FaultyTransport>(std::move(real), faults, timeout_ns);
}

}  // namespace ferry::daemon
