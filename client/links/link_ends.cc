#include "client/links/link_ends.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/clock.h"
#include "engine/rank_engine.h"
#include "shm/counters.h"

namespace ferry::client {
namespace {

using attach::LinkEvent;
using attach::LinkOp;
using attach::LinkOrder;
using attach::LinkReply;
using shm::PeerPath;

constexpr uint64_t kNsPerMs = 1'000'000;
// Looks at an end that waits for something follow each other ever more slowly.
constexpr uint64_t kFirstPauseNs = 1 * kNsPerMs;
constexpr uint64_t kLongestPauseNs = 500 * kNsPerMs;
constexpr uint64_t kLooksForIdle = 4;  // within the time after which a direction is idle

uint32_t CheckedBytes(uint32_t bytes) { return std::min(bytes, attach::kLinkAddressBytes); }

void SetText(const std::string& text, LinkReply* reply) {
  std::memcpy(reply->text, text.data(), std::min<size_t>(text.size(), attach::kMaxText - 1));
}

bool Is(const LinkOrder& order, LinkOp op) { return order.op == static_cast<uint32_t>(op); }

}  // namespace

LinkEnds::LinkEnds(Parts parts) : parts_(std::move(parts)), progress_(*parts_.progress) {}

uint64_t LinkEnds::CountUnused() const {
  return static_cast<uint64_t>(
      std::ranges::count_if(ends_, [](const auto& entry) { return !entry.second.was_used; }));
}

// ---- Orders -------------------------------------------------------------------------------------

void LinkEnds::Obey(const LinkOrder& order, uint64_t* room, const Status& opening, uint64_t now_ns,
                    engine::Effects& effects) {
  switch (static_cast<LinkOp>(order.op)) {
    case LinkOp::kOpen:
      return Open(order, room, opening, now_ns);
    case LinkOp::kUse:
      return Use(order, now_ns);
    case LinkOp::kReturn:
      if (const auto found = ends_.find(order.peer); found != ends_.end()) {
        Leave(order.peer, &found->second, effects);
      }
      return;
    case LinkOp::kEnd:
      return EndLink(order, effects);
    case LinkOp::kRefuse:
      return Forget(order);
  }
}

void LinkEnds::Open(const LinkOrder& order, uint64_t* room, const Status& opening,
                    uint64_t now_ns) {
  if (*room == 0) {
    return SayRefused(order, {ErrorCode::kLimitExceeded,
                              "the process has three of four files open that `ulimit -n` allows"});
  }
  if (!opening.ok()) {
    return SayRefused(order, opening);
  }
  if (const Status status = MayHaveLinks(); !status.ok()) {
    return SayRefused(order, status);
  }
  const auto failure = failures_.find(order.peer);
  if (order.address_bytes == 0 && failure != failures_.end() && now_ns < failure->second.until_ns) {
    return SayRefused(order, {ErrorCode::kLinkDown,
                              "it could not be connected a moment ago: " + failure->second.text});
  }
  --*room;
  End& end = ends_[order.peer];
  Disconnect(order.peer, &end, ErrorCode::kLinkDown);  // the daemon knows nothing of that any more
  end = {};
  end.link = order.link;
  end.order = order;
  end.deadline_ns = now_ns + parts_.connect_timeout_ns;
}

void LinkEnds::Use(const LinkOrder& order, uint64_t now_ns) {
  const auto found = ends_.find(order.peer);
  if (found == ends_.end() || found->second.link != order.link) {
    return SayRefused(order, {ErrorCode::kNotFound, "there is no such link"});
  }
  End& end = found->second;
  end.order = order;
  end.deadline_ns = now_ns + parts_.connect_timeout_ns;
  end.due_ns = end.pause_ns = 0;
}

void LinkEnds::Leave(uint32_t peer, End* end, engine::Effects& effects) {
  if (end->is_used && !std::exchange(end->is_returning, true)) {
    end->due_ns = 0;
    end->pause_ns = kFirstPauseNs;
    progress_.paths().LeaveLink(peer, effects);
  }
}

// In good order the link goes once nothing takes it any more (LookAfter); else at once.
void LinkEnds::EndLink(const LinkOrder& order, engine::Effects& effects) {
  const auto found = ends_.find(order.peer);
  if (found == ends_.end() || found->second.link != order.link) {
    return Say(LinkEvent::kEnded, order.peer, order.link);
  }
  End& end = found->second;
  const auto code = static_cast<ErrorCode>(order.code);
  end.order.reset();
  if (code == ErrorCode::kOk && (end.is_connected || end.is_closed)) {
    end.is_ending = true;
    end.due_ns = 0;
    end.pause_ns = kFirstPauseNs;
    return;
  }
  const bool was_taken = MayWant(order.peer, end);
  Disconnect(order.peer, &end, code);
  Settle(effects);
  progress_.paths().FailLink(order.peer, effects, was_taken && !WasCut(order.peer, end));
  progress_.paths().RefuseLink(order.peer);  // should it have asked
  const bool was_used = progress_.paths().PathTo(order.peer) == PeerPath::kBroken;
  Say(LinkEvent::kEnded, order.peer, order.link, was_used ? attach::kLinkWasUsed : 0);
  end.link = 0;
}

// The daemon grants no link to that peer.
void LinkEnds::Forget(const LinkOrder& order) {
  progress_.paths().RefuseLink(order.peer);
  if (const auto found = ends_.find(order.peer);
      found != ends_.end() && found->second.link == order.link) {
    Disconnect(order.peer, &found->second, ErrorCode::kLinkDown);
    found->second.order.reset();
    found->second.link = 0;
  }
}

// ---- Connecting ---------------------------------------------------------------------------------

// Goes on with the order that was not answered yet; it stays while it has to be tried again.
void LinkEnds::CarryOn(uint32_t peer, End* end, uint64_t now_ns, engine::Effects& effects) {
  const LinkOrder order = *end->order;
  const bool uses = Is(order, LinkOp::kUse);
  Status status = uses ? MayUse() : MayHaveLinks();
  if (status.ok()) {
    status = Reach(order, end, now_ns);
  }
  if (status.code() == ErrorCode::kWouldBlock) {
    end->due_ns = std::min(Later(end, now_ns), end->deadline_ns);
    return;
  }
  if (status.ok() && uses) {
    status = TakePath(peer, end, now_ns, effects);
  }
  end->order.reset();
  end->due_ns = 0;
  if (!status.ok()) {
    end->link = uses ? end->link : 0;
    end->is_refused = true;
    SayRefused(order, status);
  } else if (uses) {
    Say(LinkEvent::kUsed, peer, order.link);
  } else {
    SayOpened(peer, order.link);
  }
}

// Returns ok if messages of this rank, in either direction, can take a link at all.
Status LinkEnds::MayHaveLinks() const {
  if (gives_up()) {
    return {ErrorCode::kUnsupported,
            "the rank has device memory that only streams reach, and messages, or operations in "
            "the memory of others, that the daemons carry better"};
  }
  if (!parts_.turns->CarryDeviceMemory() && !parts_.regions->addresses().by_stream().is_empty()) {
    return {ErrorCode::kUnsupported, "the rank has device memory that only streams reach"};
  }
  return {};
}

Status LinkEnds::MayUse() const {
  FERRY_RETURN_IF_ERROR(MayHaveLinks());
  return is_leaving_ ? Status(ErrorCode::kCancelled, "the rank leaves its job") : Status();
}

// Tells the core of the peer; for kUse the two have to be connected. kWouldBlock: try again.
Status LinkEnds::Reach(const LinkOrder& order, End* end, uint64_t now_ns) {
  Status status = Connect(order, end);
  const bool uses = Is(order, LinkOp::kUse);
  if (status.ok() && uses) {
    std::string why;
    const ErrorCode code = ConnectionTo(order.peer, *end, &why);
    status = code == ErrorCode::kOk ? Status() : Status(code, why);
  }
  if (status.code() == ErrorCode::kWouldBlock) {
    if (now_ns < end->deadline_ns) {
      return status;
    }
    const uint64_t tried_ms = parts_.connect_timeout_ns / kNsPerMs;
    status = {ErrorCode::kLinkDown,
              "tried for " + std::to_string(tried_ms) + " ms: " + status.message()};
  }
  if (uses && end->calls && !end->was_used) {
    if (status.ok()) {
      failures_.erase(order.peer);
    } else {
      NoteFailure(order.peer, status.message(), now_ns);
      Disconnect(order.peer, end, ErrorCode::kLinkDown);
    }
  }
  return status;
}

// Once.
Status LinkEnds::Connect(const LinkOrder& order, End* end) {
  if (end->had_route || order.address_bytes == 0) {
    return {};
  }
  LinkRoute route;
  route.address.size_bytes = CheckedBytes(order.address_bytes);
  std::memcpy(route.address.bytes, order.address, route.address.size_bytes);
  std::copy(std::begin(order.send_key), std::end(order.send_key), route.send_key.words);
  std::copy(std::begin(order.receive_key), std::end(order.receive_key), route.receive_key.words);
  route.serial = order.link;
  FERRY_RETURN_IF_ERROR(core_->Connect(order.peer, route));
  end->had_route = end->is_connected = true;
  end->calls = Is(order, LinkOp::kUse);
  ++connected_;
  return {};
}

// As DirectLinks says. `why` may be null.
ErrorCode LinkEnds::ConnectionTo(uint32_t peer, const End& end, std::string* why) {
  if (end.is_connected) {
    return core_->ConnectionTo(peer, end.calls, why);
  }
  if (why != nullptr) {
    *why = "its connection is gone" + (end.trouble.empty() ? "" : ": " + end.trouble);
  }
  return ErrorCode::kLinkDown;
}

// Messages to the peer take the link from now on.
Status LinkEnds::TakePath(uint32_t peer, End* end, uint64_t now_ns, engine::Effects& effects) {
  if (const ErrorCode error = progress_.paths().UseLink(peer, effects); error != ErrorCode::kOk) {
    return {error, "nothing passes between the two ranks"};
  }
  end->is_used = end->was_used = true;
  end->cuts = progress_.paths().CutsApplied(peer);
  end->is_returning = false;
  end->traffic = TrafficTo(peer);
  end->active_ns = now_ns;
  return {};
}

void LinkEnds::NoteFailure(uint32_t peer, const std::string& text, uint64_t now_ns) {
  Failure& failure = failures_[peer];
  failure.pause_ns = std::clamp(2 * failure.pause_ns, kFirstCallPauseNs, kLongestCallPauseNs);
  failure.until_ns = now_ns + failure.pause_ns;
  failure.text = text;
}

// ---- What is due --------------------------------------------------------------------------------

// Returns when to look again.
uint64_t LinkEnds::LookAfterAll(uint64_t now_ns, engine::Effects& effects) {
  uint64_t next_ns = UINT64_MAX;
  awaited_ = connecting_ = 0;
  for (auto next = ends_.begin(); next != ends_.end();) {
    const auto current = next++;
    End& end = current->second;
    next_ns = std::min(next_ns, LookAfter(current->first, &end, now_ns, effects));
    awaited_ += end.is_connected && !end.was_used && !end.is_refused && !end.is_ending ? 1 : 0;
    connecting_ += end.order.has_value() && end.had_route ? 1 : 0;
    if (end.link == 0) {
      ends_.erase(current);
    }
  }
  return next_ns;
}

uint64_t LinkEnds::Later(End* end, uint64_t now_ns) {
  end->pause_ns = std::min(std::max(2 * end->pause_ns, kFirstPauseNs), kLongestPauseNs);
  end->due_ns = now_ns + end->pause_ns;
  return end->due_ns;
}

// Looks after one end, which is over if it has no number afterwards.
uint64_t LinkEnds::LookAfter(uint32_t peer, End* end, uint64_t now_ns, engine::Effects& effects) {
  engine::PeerPaths& paths = progress_.paths();
  if (end->due_ns > now_ns && (end->order.has_value() || end->is_ending || end->is_returning)) {
    return end->due_ns;
  }
  if (end->order.has_value()) {
    CarryOn(peer, end, now_ns, effects);
    if (end->order.has_value()) {
      return end->due_ns;
    }
  }
  if (end->is_ending) {
    if (MayWant(peer, *end) ||
        (end->is_connected && !(paths.IsLinkFree(peer) && core_->IsIdle(peer)))) {
      return Later(end, now_ns);
    }
    Disconnect(peer, end, ErrorCode::kOk);
    if (!end->was_used) {  // the peer could not: ask again after a while, should it have been asked
      paths.RefuseLink(peer);
    }
    const bool is_broken = paths.PathTo(peer) == PeerPath::kBroken;
    Say(LinkEvent::kEnded, peer, end->link, is_broken ? attach::kLinkWasUsed : 0);
    end->link = 0;
    return UINT64_MAX;
  }
  if (!end->is_used) {
    TellGivenUp(peer, end);
    return UINT64_MAX;
  }
  if (end->is_returning) {
    const PeerPath path = paths.PathTo(peer);
    // The peer may close the link as soon as it hears of the return.
    if (path == PeerPath::kToDaemon || path == PeerPath::kLink || path == PeerPath::kToLink ||
        MayWant(peer, *end)) {
      return Later(end, now_ns);
    }
    end->is_used = end->is_returning = false;
    if (path == PeerPath::kDaemon && !TellGivenUp(peer, end)) {
      Say(LinkEvent::kReturned, peer, end->link);
    }
    return UINT64_MAX;
  }
  // A long message is counted as it begins.
  const bool is_busy = MayWant(peer, *end) || (end->is_connected && !core_->IsIdle(peer));
  if (const uint64_t traffic = TrafficTo(peer); traffic != end->traffic || is_busy) {
    end->traffic = traffic;
    end->active_ns = now_ns;
  }
  if (parts_.rules.idle_ms == 0) {
    return UINT64_MAX;
  }
  const uint64_t idle_ns = parts_.rules.idle_ms * kNsPerMs;
  if (now_ns - std::min(now_ns, end->active_ns) < idle_ns) {
    return now_ns + idle_ns / kLooksForIdle;
  }
  end->is_returning = true;
  end->pause_ns = 0;
  paths.LeaveLink(peer, effects);
  return Later(end, now_ns);
}

// If the rank gives its links up: tells the daemon once that this one cannot be used any more,
// which has the other direction returned, too.
bool LinkEnds::TellGivenUp(uint32_t peer, End* end) {
  if (!gives_up() || std::exchange(end->is_given_up, true)) {
    return false;
  }
  SayRefused(peer, end->link, MayHaveLinks());
  return true;
}

// Returns true if one-sided operations take the link, or may be about to.
bool LinkEnds::MayWant(uint32_t peer, const End& end) const {
  return parts_.turns->IsHeld(peer) || (end.is_connected && core_->WantsOf(peer));
}

// It grows with what goes to the peer.
uint64_t LinkEnds::TrafficTo(uint32_t peer) const {
  const shm::SessionByRank& words = progress_.view().by_rank;
  return words.peers[peer].sent + shm::LoadRelaxed(words.one_sided[peer].done);
}

void LinkEnds::LeaveAll(engine::Effects& effects) {
  is_leaving_ = true;
  for (auto& [peer, end] : ends_) {
    Leave(peer, &end, effects);
  }
}

void LinkEnds::GiveUp(engine::Effects& effects) {
  shm::StoreRelaxed(gives_up_, 1U);
  for (auto& [peer, end] : ends_) {
    Leave(peer, &end, effects);
    end.due_ns = 0;
  }
}

// ---- Breaks -------------------------------------------------------------------------------------

void LinkEnds::EndDead() {
  // Pairs with the daemon that bumps it behind the words of the peers.
  const uint32_t deaths = shm::LoadAcquire(progress_.wake().layout()->death_epoch);
  if (deaths == deaths_seen_) [[likely]] {
    return;
  }
  deaths_seen_ = deaths;
  for (auto& [peer, end] : ends_) {
    const uint32_t dead = shm::LoadAcquire(progress_.view().by_rank.peers[peer].dead);
    if (dead != 0 && end.is_connected) {
      Disconnect(peer, &end, static_cast<ErrorCode>(dead));
    }
  }
}

bool LinkEnds::FindConnected() {
  bool is_due = false;
  for (auto& [peer, end] : ends_) {
    if (end.order.has_value() && end.had_route &&
        ConnectionTo(peer, end, nullptr) != ErrorCode::kWouldBlock) {
      connecting_ = 0;  // until the watcher has looked
      end.due_ns = 0;
      is_due = true;
    }
  }
  return is_due;
}

// Lets the engine take all that links have brought.
void LinkEnds::Settle(engine::Effects& effects) {
  engine::RankEngine& engine = progress_.engine();
  const uint32_t lane = shm::LinkLane(progress_.view().inbox.local_size);
  while (engine.Progress(effects) != 0 && engine.HasMessage(lane)) {
  }
}

bool LinkEnds::TellLinksDown(engine::Effects& effects) {
  Settle(effects);
  for (const auto& [peer, text] : std::exchange(links_down_, {})) {
    const auto found = ends_.find(peer);
    if (found == ends_.end() || !found->second.is_connected) {
      continue;
    }
    End& end = found->second;
    end.is_connected = false;
    end.trouble = text;
    --connected_;
    // The peer hears first that the link is over, and closes it, perhaps after this rank has said
    // that its direction is back: that is no trouble.
    end.is_closed = !end.is_used && progress_.paths().IsLinkFree(peer);
    // Operations that took it, and that the engine does not know, have ended already: they wait for
    // what the daemon says. It parts the two in any case if the direction is not back.
    progress_.paths().FailLink(peer, effects, end.is_used && !WasCut(peer, end));
    if (progress_.paths().PathTo(peer) == shm::PeerPath::kBroken) {
      shm::Statistics(progress_.view().layout->counters).Add(shm::Statistic::kLinkErrors);
    }
    if (!end.is_ending && !end.is_closed) {
      SayLinkDown(peer, end.link, text);
    }
    end.due_ns = 0;
  }
  return true;
}

void LinkEnds::Disconnect(uint32_t peer, End* end, ErrorCode error) {
  if (std::exchange(end->is_connected, false)) {
    core_->End(peer, error);
    --connected_;
  }
}

// ---- Answers ------------------------------------------------------------------------------------

LinkReply LinkEnds::ReplyOf(LinkEvent event, uint32_t peer, uint64_t link) {
  LinkReply reply{};
  reply.event = static_cast<uint32_t>(event);
  reply.peer = peer;
  reply.link = link;
  return reply;
}

void LinkEnds::Say(LinkEvent event, uint32_t peer, uint64_t link, uint32_t flags) {
  LinkReply& reply = replies_.emplace_back(ReplyOf(event, peer, link));
  reply.flags = flags;
}

// Where the peer's packets are to go.
void LinkEnds::SayOpened(uint32_t peer, uint64_t link) {
  LinkReply& reply = replies_.emplace_back(ReplyOf(LinkEvent::kOpened, peer, link));
  const LinkAddress address = core_->AddressFor(peer);
  reply.address_bytes = CheckedBytes(address.size_bytes);
  std::memcpy(reply.address, address.bytes, reply.address_bytes);
}

void LinkEnds::SayLinkDown(uint32_t peer, uint64_t link, const std::string& text) {
  SetText(text, &replies_.emplace_back(ReplyOf(LinkEvent::kLost, peer, link)));
}

void LinkEnds::SayRefused(const LinkOrder& order, const Status& why) {
  SayRefused(order.peer, order.link, why);
}

void LinkEnds::SayRefused(uint32_t peer, uint64_t link, const Status& why) {
  progress_.paths().RefuseLink(peer);
  LinkReply& reply = replies_.emplace_back(ReplyOf(LinkEvent::kRefused, peer, link));
  reply.code = static_cast<int32_t>(why.code());
  SetText(why.message(), &reply);
}

}  // namespace ferry::client
