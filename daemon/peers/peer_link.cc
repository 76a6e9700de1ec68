#include "daemon/peers/peer_link.h"

#include <algorithm>

#include "common/clock.h"
#include "daemon/tls/secrets.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

}  // namespace

bool PeerLink::IsFrom(uint64_t incarnation, const std::string& token) const {
  return contact.incarnation == incarnation && ConstantTimeEquals(HashOfToken(token), token_hash);
}

void PeerLink::Learn(const control::HelloReply& reply, uint64_t number) {
  const control::NodeIdentity& peer = reply.from();
  contact.address = address;
  contact.name = peer.name();
  contact.incarnation = peer.incarnation();
  contact.link = number;
  contact.fabric_address = peer.fabric_address();
  contact.direct_links = peer.direct_links();
  token_hash = reply.token_hash();
}

void PeerLink::NoteAnswer() {
  last_heard_ns = MonotonicNs();
  unanswered_since_ns = 0;
  trouble.clear();
}

// A mean in which each answer counts a quarter, so that a single late one does not count for much.
void PeerLink::NoteBeatAnswer() {
  NoteAnswer();
  answer_ms = (3 * answer_ms + (last_heard_ns - asked_ns) / kNsPerMs) / 4;
}

void PeerLink::NoteBeatOfPeer(const control::HeartbeatRequest& request, const std::string& token) {
  if (up && request.life() == life && IsFrom(request.incarnation(), token)) {
    last_heard_ns = MonotonicNs();
    spared_ns = last_heard_ns;
  }
}

// Allows for ticks that come a little early. A peer that has not answered is asked at each tick. A
// peer that asks itself is asked seldom: only to find out whether our connection works, too.
bool PeerLink::IsBeatDue(const LinkTiming& timing, size_t links, uint64_t now_ns) const {
  const uint64_t period_ms = timing.BeatPeriodMs(links, answer_ms);
  const uint64_t early_ms = timing.heartbeat_interval_ms / 2;
  const uint64_t since_ms = (now_ns - asked_ns) / kNsPerMs + early_ms;
  if (unanswered_since_ns != 0 || since_ms >= std::max(period_ms, timing.CallTimeoutMs())) {
    return true;
  }
  if (spared_ns != 0 && (now_ns - spared_ns) / kNsPerMs + early_ms < period_ms) {
    return false;
  }
  return period_ms == timing.heartbeat_interval_ms || since_ms >= period_ms;
}

control::PeerStatus PeerLink::Report(uint64_t silent_after_ns) const {
  const uint64_t now_ns = MonotonicNs();
  const bool is_silent = unanswered_since_ns != 0 && now_ns - unanswered_since_ns > silent_after_ns;
  control::PeerStatus report;
  report.set_name(contact.name);
  report.set_control_address(address);
  report.set_state(up           ? (is_silent ? "silent" : "up")
                   : is_dormant ? "dormant"
                   : life == 0  ? "connecting"
                                : "cut");
  report.set_incarnation(contact.incarnation);
  report.set_trouble(trouble);
  if (up) {
    report.set_last_heard_ms((now_ns - last_heard_ns) / kNsPerMs);
  }
  return report;
}

}  // namespace ferry::daemon
