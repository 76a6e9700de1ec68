#include "transports/rails/rail_messages.h"

#include <algorithm>
#include <span>

namespace ferry::transport {
namespace {

constexpr uint64_t kProbesPerTimeout = 4;
// As parts of the timeout: how long a peer that is first asked has to answer, and how often it is
// asked meanwhile. It may not know this node yet.
constexpr uint64_t kPatiencePerTimeout = 50;
constexpr uint64_t kFirstProbesPerTimeout = 250;
// Further replies, in all or to one peer, are dropped, and their peers ask again.
constexpr size_t kMostReplies = 4096;
constexpr size_t kMostRepliesToOne = 256;

bool IsFor(const RailMessage& reply, const RailPeer& peer) {
  return reply.to == peer.cookie && reply.from == peer.own_cookie;
}

}  // namespace

ErrorCode RailMessages::Send(const RailPeer& peer, size_t rail, const RailMessage& message) {
  return state_.rails[rail]->SendMessage(peer.of_rail[rail], std::as_bytes(std::span(&message, 1)),
                                         {}, kRailMessageContext, state_.now_ns);
}

void RailMessages::Reply(size_t rail, const RailMessage& message) {
  const auto to_same = std::ranges::count_if(
      replies_, [&](const auto& reply) { return reply.second.to == message.to; });
  if (replies_.size() < kMostReplies && static_cast<size_t>(to_same) < kMostRepliesToOne) {
    replies_.emplace_back(rail, message);
  }
}

// Replies without room wait.
void RailMessages::SendReplies() {
  std::erase_if(replies_, [&](const std::pair<size_t, RailMessage>& reply) {
    ErrorCode code = ErrorCode::kNotFound;
    state_.peers.ForEach([&](PeerId, const RailPeer& peer) {
      if (code == ErrorCode::kNotFound && IsFor(reply.second, peer) && !peer.removed &&
          reply.first < peer.rails) {
        code = Send(peer, reply.first, reply.second);
      }
    });
    return code != ErrorCode::kWouldBlock;
  });
}

// Asks the rails that carry nothing to this peer for a sign of life. A rail that was never probed,
// or has failed, carries nothing until it has given one, so finding out costs no transfer.
void RailMessages::Probe(RailPeer* peer) {
  peer->probing = true;
  peer->asked_ns = peer->asked_ns == 0 ? state_.now_ns : peer->asked_ns;
  RailMessage probe;
  probe.to = peer->cookie;
  probe.from = peer->own_cookie;
  probe.kind = RailMessage::Kind::kProbe;
  for (uint32_t rail = 1; rail < peer->rails; rail++) {
    if ((peer->up & (1U << rail)) == 0) {
      Send(*peer, rail, probe);
      ProbeWithin(state_.options.post_timeout_ns /
                  (IsFirstAsked(*peer) ? kFirstProbesPerTimeout : kProbesPerTimeout));
    }
  }
}

bool RailMessages::IsFirstAsked(const RailPeer& peer) const {
  return state_.now_ns - peer.asked_ns < state_.options.post_timeout_ns / kPatiencePerTimeout;
}

void RailMessages::ProbeWithin(uint64_t interval_ns) {
  next_probe_ns_ = std::min(next_probe_ns_, state_.now_ns + interval_ns);
}

void RailMessages::ProbeAll() {
  if (state_.now_ns < next_probe_ns_) {
    return;
  }
  next_probe_ns_ = UINT64_MAX;
  state_.peers.ForEach([&](PeerId, RailPeer& peer) {
    if (peer.probing && !peer.removed && peer.failure == ErrorCode::kOk) {
      Probe(&peer);
    }
  });
}

// The first probe goes with the next Poll, which knows the time.
ErrorCode RailMessages::Reaches(RailPeer* peer, size_t rail) {
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

void RailMessages::Doubt(RailPeer* peer, size_t rail) {
  if (rail != 0) {
    peer->up &= ~(1U << rail);
    ProbeWithin(state_.options.post_timeout_ns / kProbesPerTimeout);
  }
}

void RailMessages::OnProbe(size_t rail, const RailMessage& probe) {
  RailMessage echo;
  echo.to = probe.from;
  echo.from = probe.to;
  echo.kind = RailMessage::Kind::kEcho;
  Reply(rail, echo);
}

void RailMessages::OnEcho(size_t rail, const RailMessage& echo) {
  state_.peers.ForEach([&](PeerId, RailPeer& peer) {
    if (peer.HasSent(echo) && rail < peer.rails) {
      peer.up |= 1U << rail;
    }
  });
}

}  // namespace ferry::transport
