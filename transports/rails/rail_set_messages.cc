// Messages between rails: probes here, keys in rail_set_keys.cc.
#include <algorithm>

#include "transports/rails/rail_set.h"

namespace ferry::transport {
namespace {

// Further replies, in all or to one peer, are dropped, and their peers ask again.
constexpr size_t kMostReplies = 4096;
constexpr size_t kMostRepliesToOne = 256;

bool IsFor(const RailMessage& reply, const RailPeer& peer) {
  return reply.to == peer.cookie && reply.from == peer.own_cookie;
}

}  // namespace

ErrorCode RailSet::SendRailMessage(const RailPeer& peer, size_t rail, const RailMessage& message) {
  return rails_[rail]->SendMessage(peer.of_rail[rail], std::as_bytes(std::span(&message, 1)), {},
                                   kRailMessageContext, now_ns_);
}

void RailSet::OnRailMessage(size_t rail, const RailMessage& message) {
  bool is_known = false;
  peers_.ForEach([&](PeerId, const RailPeer& peer) { is_known |= peer.HasSent(message); });
  if (!is_known) {
    return;  // a stranger, or a peer that is not known yet, which asks again
  }
  switch (message.kind) {
    case RailMessage::Kind::kAsk:
      Answer(message);
      break;
    case RailMessage::Kind::kAnswer:
    case RailMessage::Kind::kUnknown:
      OnAnswer(message);
      break;
    case RailMessage::Kind::kProbe: {
      RailMessage echo;
      echo.to = message.from;
      echo.from = message.to;
      echo.kind = RailMessage::Kind::kEcho;
      Reply(rail, echo);
      break;
    }
    case RailMessage::Kind::kEcho:
      OnEcho(rail, message);
      break;
  }
}

void RailSet::Reply(size_t rail, const RailMessage& message) {
  const auto to_same = std::ranges::count_if(
      replies_, [&](const auto& reply) { return reply.second.to == message.to; });
  if (replies_.size() < kMostReplies && static_cast<size_t>(to_same) < kMostRepliesToOne) {
    replies_.emplace_back(rail, message);
  }
}

// Replies without room wait.
void RailSet::SendReplies() {
  std::erase_if(replies_, [&](const std::pair<size_t, RailMessage>& reply) {
    ErrorCode code = ErrorCode::kNotFound;
    peers_.ForEach([&](PeerId, const RailPeer& peer) {
      if (code == ErrorCode::kNotFound && IsFor(reply.second, peer) && !peer.removed &&
          reply.first < peer.rails) {
        code = SendRailMessage(peer, reply.first, reply.second);
      }
    });
    return code != ErrorCode::kWouldBlock;
  });
}

// Asks the rails that carry nothing to this peer for a sign of life. A rail that was never probed,
// or has failed, carries nothing until it has given one, so finding out costs no transfer.
void RailSet::Probe(RailPeer* peer) {
  peer->probing = true;
  peer->asked_ns = peer->asked_ns == 0 ? now_ns_ : peer->asked_ns;
  RailMessage probe;
  probe.to = peer->cookie;
  probe.from = peer->own_cookie;
  probe.kind = RailMessage::Kind::kProbe;
  for (uint32_t rail = 1; rail < peer->rails; rail++) {
    if ((peer->up & (1U << rail)) == 0) {
      SendRailMessage(*peer, rail, probe);
      ProbeWithin(options_.post_timeout_ns /
                  (IsFirstAsked(*peer) ? kFirstProbesPerTimeout : kProbesPerTimeout));
    }
  }
}

bool RailSet::IsFirstAsked(const RailPeer& peer) const {
  return now_ns_ - peer.asked_ns < options_.post_timeout_ns / kPatiencePerTimeout;
}

void RailSet::ProbeWithin(uint64_t interval_ns) {
  next_probe_ns_ = std::min(next_probe_ns_, now_ns_ + interval_ns);
}

void RailSet::ProbeAll() {
  if (now_ns_ < next_probe_ns_) {
    return;
  }
  next_probe_ns_ = UINT64_MAX;
  peers_.ForEach([&](PeerId, RailPeer& peer) {
    if (peer.probing && !peer.removed && peer.failure == ErrorCode::kOk) {
      Probe(&peer);
    }
  });
}

PeerId RailSet::PeerOn(PeerId id, size_t rail) {
  const RailPeer* peer = peers_.Find(id);
  return peer == nullptr || peer->removed || rail >= peer->rails ? kUnknownPeer
                                                                 : peer->of_rail[rail];
}

// The first probe goes with the next Poll, which knows the time.
ErrorCode RailSet::Reaches(PeerId id, size_t rail) {
  ErrorCode code = ErrorCode::kOk;
  RailPeer* peer = Usable(id, &code);
  if (peer == nullptr) {
    return code;
  }
  if (rail >= peer->rails) {
    return ErrorCode::kNotFound;
  }
  if (!peer->probing) {
    peer->probing = true;
    next_probe_ns_ = 0;
  }
  if ((peer->up >> rail & 1) != 0) {
    return ErrorCode::kOk;
  }
  return peer->asked_ns == 0 || IsFirstAsked(*peer) ? ErrorCode::kWouldBlock
                                                    : ErrorCode::kNodeUnreachable;
}

void RailSet::Doubt(PeerId id, size_t rail) {
  if (RailPeer* peer = peers_.Find(id); peer != nullptr && rail < peer->rails) {
    Doubt(peer, rail);
  }
}

void RailSet::Doubt(RailPeer* peer, size_t rail) {
  if (rail != 0) {
    peer->up &= ~(1U << rail);
    ProbeWithin(options_.post_timeout_ns / kProbesPerTimeout);
  }
}

void RailSet::OnEcho(size_t rail, const RailMessage& echo) {
  peers_.ForEach([&](PeerId, RailPeer& peer) {
    if (peer.HasSent(echo) && rail < peer.rails) {
      peer.up |= 1U << rail;
    }
  });
}

}  // namespace ferry::transport
