#include "daemon/faults/faulty_transport.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "daemon/wire/wire.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kLookNs = 1'000'000;  // how soon a Release is noticed

struct PacketPoints {
  PacketKind kind;
  FaultPoint send;
  FaultPoint receive;
};
constexpr std::array kPacketPoints = {
    PacketPoints{PacketKind::kRemoteRts, FaultPoint::kSendOffer, FaultPoint::kReceiveOffer},
    PacketPoints{PacketKind::kPull, FaultPoint::kSendPull, FaultPoint::kReceivePull},
    PacketPoints{PacketKind::kBlockReady, FaultPoint::kSendBlockReady,
                 FaultPoint::kReceiveBlockReady},
    PacketPoints{PacketKind::kBlockDone, FaultPoint::kSendBlockDone, FaultPoint::kReceiveBlockDone},
    PacketPoints{PacketKind::kSendDone, FaultPoint::kSendResult, FaultPoint::kReceiveResult},
    PacketPoints{PacketKind::kAdvert, FaultPoint::kSendAdvert, FaultPoint::kReceiveAdvert},
    PacketPoints{PacketKind::kWithdraw, FaultPoint::kSendWithdraw, FaultPoint::kReceiveWithdraw},
    PacketPoints{PacketKind::kWithdrawn, FaultPoint::kSendWithdrawn, FaultPoint::kReceiveWithdrawn},
    PacketPoints{PacketKind::kPut, FaultPoint::kSendPut, FaultPoint::kReceivePut},
    PacketPoints{PacketKind::kPutDone, FaultPoint::kSendPutDone, FaultPoint::kReceivePutDone},
};

// Calls visit(points) for each packet of the frame that has some. The last packet's body may lie
// elsewhere.
template <typename Visitor>
void ForEachPacket(std::span<const std::byte> frame, Visitor&& visit) {
  while (frame.size() >= sizeof(PacketHeader)) {
    PacketHeader header;
    std::memcpy(&header, frame.data(), sizeof(header));
    for (const PacketPoints& points : kPacketPoints) {
      if (header.kind == static_cast<uint8_t>(points.kind)) {
        visit(points);
      }
    }
    const size_t bytes = sizeof(header) + header.body_bytes + PaddingOf(header.body_bytes);
    frame = frame.subspan(std::min(frame.size(), bytes));
  }
}

// Looks at what arrives before it is handed on.
class ReceiveTap final : public transport::CompletionSink {
 public:
  ReceiveTap(transport::CompletionSink& sink, Faults& faults) : sink_(sink), faults_(faults) {}
  void OnReceive(transport::PeerId sender, std::span<const std::byte> message) override {
    ForEachPacket(message, [this](const PacketPoints& points) { faults_.Pass(points.receive); });
    sink_.OnReceive(sender, message);
  }
  void OnComplete(uint64_t context, ErrorCode code) override { sink_.OnComplete(context, code); }

 private:
  transport::CompletionSink& sink_;
  Faults& faults_;
};

}  // namespace

FaultyTransport::FaultyTransport(std::unique_ptr<transport::Transport> real, Faults& faults,
                                 uint64_t timeout_ns)
    : ForwardingTransport(*real), real_(std::move(real)), faults_(faults), timeout_ns_(timeout_ns) {
  if (transport::DeferredWork* deferred = real_->deferred_work(); deferred != nullptr) {
    deferred_.emplace(*deferred, faults);
  }
  for (transport::Transport* rail : real_->Rails()) {
    if (rail != real_.get()) {
      rails_.push_back(std::make_unique<FaultyRail>(*rail, faults));
    }
  }
}

std::vector<transport::Transport*> FaultyTransport::Rails() {
  std::vector<transport::Transport*> rails;
  for (const std::unique_ptr<FaultyRail>& rail : rails_) {
    rails.push_back(rail.get());
  }
  return rails.empty() ? std::vector<transport::Transport*>{this} : rails;
}

std::string FaultyTransport::LastError() const {
  return lost_.empty() ? real_->LastError() : "a packet was lost on purpose (option faults)";
}

// ---- Memory ------------------------------------------------------------------------------------

StatusOr<transport::MemoryRegion> FaultyTransport::AdoptMemory(
    std::unique_ptr<transport::Registration> registration) {
  if (const ErrorCode code = faults_.Pass(FaultPoint::kMemoryRegister); code != ErrorCode::kOk) {
    return Status(code, "memory is refused on purpose (option faults)");
  }
  return real_->AdoptMemory(std::move(registration));
}

StatusOr<std::unique_ptr<transport::Registration>> FaultyTransport::ReleaseMemory(
    transport::RegionHandle region) {
  const bool used = std::any_of(held_.begin(), held_.end(), [region](const Held& held) {
    return held.request.region == region;
  });
  if (used) {
    return Status(ErrorCode::kWouldBlock, "a read or a write is held back (option faults)");
  }
  return real_->ReleaseMemory(region);
}

// ---- Messages ----------------------------------------------------------------------------------

// Counts when the packets have left, so that one that has to wait is not counted twice; only one at
// which something happens counts at once.
template <typename Post>
ErrorCode FaultyTransport::PostMessage(transport::PeerId peer, std::span<const std::byte> frame,
                                       uint64_t context, Post&& post) {
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
    due |= faults_.IsDue(points.send, frame.size() / sizeof(PacketHeader));
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

ErrorCode FaultyTransport::SendMessage(transport::PeerId peer, std::span<const std::byte> header,
                                       std::span<const std::byte> payload, uint64_t context,
                                       uint64_t now_ns) {
  return PostMessage(peer, header, context,
                     [&] { return real_->SendMessage(peer, header, payload, context, now_ns); });
}

ErrorCode FaultyTransport::SendMessageFrom(transport::PeerId peer,
                                           std::span<const std::byte> header,
                                           const transport::Attachment& attachment,
                                           uint64_t context, uint64_t now_ns) {
  return PostMessage(peer, header, context, [&] {
    return real_->SendMessageFrom(peer, header, attachment, context, now_ns);
  });
}

// ---- Reads and writes --------------------------------------------------------------------------

ErrorCode FaultyTransport::Read(const transport::RmaRequest& request, uint64_t now_ns) {
  return PostHeldOr({FaultPoint::kPullRead, request, {}, now_ns + timeout_ns_}, now_ns);
}

ErrorCode FaultyTransport::Write(const transport::RmaRequest& request,
                                 transport::Placement placement, uint64_t now_ns) {
  return PostHeldOr({FaultPoint::kPutWrite, request, placement, now_ns + timeout_ns_}, now_ns);
}

ErrorCode FaultyTransport::PostReal(const Held& operation, uint64_t now_ns) {
  return operation.point == FaultPoint::kPullRead
             ? real_->Read(operation.request, now_ns)
             : real_->Write(operation.request, operation.placement, now_ns);
}

ErrorCode FaultyTransport::PostHeldOr(const Held& operation, uint64_t now_ns) {
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

void FaultyTransport::PassHeld(uint64_t now_ns) {
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

Status FaultyTransport::RemovePeer(transport::PeerId peer) {
  FailPeer(peer, ErrorCode::kCancelled);
  return real_->RemovePeer(peer);
}

void FaultyTransport::FailPeer(transport::PeerId peer, ErrorCode code) {
  lost_.erase(peer);
  std::erase_if(held_, [&](const Held& held) {
    if (held.request.peer == peer) {
      ended_.emplace_back(held.request.context, code);
    }
    return held.request.peer == peer;
  });
  real_->FailPeer(peer, code);
}

// ---- Progress ----------------------------------------------------------------------------------

int FaultyTransport::Poll(transport::CompletionSink& sink, int budget, uint64_t now_ns) {
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

uint64_t FaultyTransport::NextPollNs(uint64_t now_ns) const {
  const bool look = !held_.empty() || faults_.stalling();
  return std::min(real_->NextPollNs(now_ns), look ? now_ns + kLookNs : UINT64_MAX);
}

}  // namespace ferry::daemon
