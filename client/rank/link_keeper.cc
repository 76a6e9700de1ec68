#include "client/rank/link_keeper.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/clock.h"
#include "common/library_words.h"
#include "shm/counters.h"

namespace ferry::client {
namespace {

using attach::LinkEvent;
using attach::LinkOp;
using attach::LinkOrder;
using attach::LinkReply;
using shm::PeerPath;

constexpr uint64_t kNsPerMs = 1'000'000;
// Looks at a direction that goes back, or a link that is to end, follow each other ever more
// slowly.
constexpr uint64_t kFirstPauseNs = 1 * kNsPerMs;
constexpr uint64_t kLongestPauseNs = 500 * kNsPerMs;
// The worker may drain the answer that lets sends go by a link, and wakes no thread for it.
constexpr uint64_t kAwaitLinkNs = 1 * kNsPerMs;
constexpr uint64_t kBetweenCallsNs = 500'000;  // of the link thread, for long transfers
constexpr uint64_t kLooksForIdle = 4;          // within the time after which a direction is idle
// If another link needs the room: after such a part of that time.
constexpr uint64_t kIdlePart = 10;

uint32_t CheckedBytes(uint32_t bytes) { return std::min(bytes, attach::kLinkAddressBytes); }

void SetText(const std::string& text, LinkReply* reply) {
  std::memcpy(reply->text, text.data(), std::min<size_t>(text.size(), attach::kMaxText - 1));
}

}  // namespace

LinkKeeper::LinkKeeper(Parts parts)
    : LinkTurns(parts.progress->view().job_size),
      parts_(std::move(parts)),
      progress_(*parts_.progress),
      lease_(&progress_.view().layout->lease),
      call_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_(this) {}

LinkKeeper::~LinkKeeper() { thread_.Stop(); }

// As the holder of the lease, for threads that are not the program's: they know nothing of a lease
// that is biased to it. Without the lease nothing happens: the rank is poisoned.
template <typename Action>
void LinkKeeper::UnderLease(Action&& action) {
  const uint32_t self = Progress::ThreadId();
  if (!lease_.Acquire(self, &progress_.wake().layout()->poison)) {
    return;
  }
  engine::Effects effects;
  action(effects);
  if (effects.to_link && has_links()) {
    Turn(effects);
  }
  lease_.Release(self);
  progress_.PerformElsewhere(effects);
  if (HasWork()) {
    Arm();
  }
}

// ---- Turns --------------------------------------------------------------------------------------

uint32_t LinkKeeper::Turn(engine::Effects& effects) {
  effects.to_link = false;
  if (links_ == nullptr) {
    return 0;
  }
  NoteTurn();
  shm::StoreRelaxed(turns_, turns_ + 1);
  CheckDeaths();
  effects_ = &effects;
  const uint32_t done = links_->Turn(MonotonicNs());
  effects_ = nullptr;
  if (!lost_.empty()) [[unlikely]] {
    TakeLost(effects);
  }
  SetWork(links_->HasWork());
  return done;
}

void LinkKeeper::LetMatch() { progress_.engine().Progress(*effects_); }

void LinkKeeper::OnLinkLost(uint32_t peer, ErrorCode /*error*/, const char* text) {
  lost_.push_back({peer, text});
}

void LinkKeeper::OnViolation(const char* text) {
  SayToUser(static_cast<int>(progress_.view().rank), text);
  progress_.wake().Poison(ErrorCode::kCorrupt);
}

bool LinkKeeper::FindRegion(uint32_t region, HostRegion* found) const {
  const OwnRegion* own = parts_.regions->ById(region);
  if (own == nullptr ||
      std::find(forgotten_.begin(), forgotten_.end(), region) != forgotten_.end()) {
    return false;
  }
  *found = {own->base, own->size_bytes, own->by_stream, own->lent};
  return true;
}

// What the core has under way with a rank that is gone, or cut off, ends before the engine ends its
// requests.
void LinkKeeper::CheckDeaths() {
  // Pairs with the daemon that bumps it behind the words of the peers.
  const uint32_t deaths = shm::LoadAcquire(progress_.wake().layout()->death_epoch);
  if (deaths == deaths_seen_) [[likely]] {
    return;
  }
  deaths_seen_ = deaths;
  for (auto& [peer, end] : ends_) {
    const uint32_t dead = shm::LoadAcquire(progress_.view().layout->peers[peer].dead);
    if (dead != 0 && end.is_connected) {
      Disconnect(peer, &end, static_cast<ErrorCode>(dead));
    }
  }
}

// Lets the engine take all that links have brought.
void LinkKeeper::Settle(engine::Effects& effects) {
  engine::RankEngine& engine = progress_.engine();
  const uint32_t lane = shm::LinkLane(progress_.view().inbox.local_size);
  while (engine.Progress(effects) != 0 && engine.HasMessage(lane)) {
  }
}

void LinkKeeper::TakeLost(engine::Effects& effects) {
  Settle(effects);
  for (const auto& [peer, text] : std::exchange(lost_, {})) {
    const auto found = ends_.find(peer);
    if (found == ends_.end() || !found->second.is_connected) {
      continue;
    }
    End& end = found->second;
    end.is_connected = false;
    SetLinks(links() - 1);
    // Of the two ranks one hears first that the link is over, and closes it.
    end.is_closed = (!end.is_used || end.is_returning) && progress_.engine().IsLinkFree(peer);
    progress_.engine().FailLink(peer, effects);
    if (progress_.engine().PathTo(peer) == PeerPath::kBroken) {
      shm::Statistics(progress_.view().layout->counters).Add(shm::Statistic::kLinkErrors);
    }
    if (!end.is_ending && !end.is_closed) {
      LinkReply reply = ReplyOf(LinkEvent::kLost, peer, end.link);
      SetText(text, &reply);
      replies_.push_back(reply);
    }
    end.due_ns = 0;
    eventfd_write(call_.get(), 1);
  }
}

void LinkKeeper::Disconnect(uint32_t peer, End* end, ErrorCode error) {
  if (std::exchange(end->is_connected, false)) {
    links_->End(peer, error);
    SetLinks(links() - 1);
    SetWork(links_->HasWork());
  }
}

void LinkKeeper::ForgetRegion(uint32_t region) {
  (void)progress_.UnderLease([&](engine::Effects&) {
    // It is in the table until it has gone.
    std::erase_if(forgotten_, [this](uint32_t id) { return parts_.regions->ById(id) == nullptr; });
    forgotten_.push_back(region);
    if (links_ != nullptr) {
      links_->ForgetRegion(region);
    }
    return ErrorCode::kOk;
  });
}

// ---- The link thread ----------------------------------------------------------------------------

bool LinkKeeper::TryStep(uint32_t* done) {
  const uint32_t self = Progress::ThreadId();
  if (!lease_.TryAcquire(self)) {
    return false;
  }
  engine::Effects effects;
  *done = progress_.Step(effects);
  lease_.Release(self);
  progress_.PerformElsewhere(effects);
  return true;
}

// Whoever has the lease finds what there is to be done, and may leave some of it: it looks again.
bool LinkKeeper::PrepareToSleep() {
  const uint32_t self = Progress::ThreadId();
  if (!lease_.TryAcquire(self)) {
    return false;
  }
  const bool may_sleep = links_->PrepareToSleep() && !progress_.engine().HasArrivals();
  lease_.Release(self);
  return may_sleep;
}

LinkThread::Work::Threads LinkKeeper::RankThreads() const {
  if (!NeedsTurns() || progress_.poison() != ErrorCode::kOk) {
    return Threads::kIdle;
  }
  const shm::WakeLayout& wake = *progress_.wake().layout();
  const uint32_t inside = shm::Load(wake.inside, std::memory_order_seq_cst);
  const uint32_t sleepers = shm::Load(wake.sleepers, std::memory_order_seq_cst);
  if (inside > sleepers) {
    return Threads::kPoll;
  }
  return sleepers != 0 ? Threads::kSleep : Threads::kAway;
}

void LinkKeeper::CallThreadForLong() {
  const uint64_t now_ns = MonotonicNs();
  if (now_ns - shm::LoadRelaxed(called_ns_) < kBetweenCallsNs) {
    return Arm();
  }
  shm::StoreRelaxed(called_ns_, now_ns);
  CallThread();
}

// Nobody arms the thread when a rank whose memory others reach goes on to compute.
bool LinkKeeper::MustStay() const {
  return shm::LoadRelaxed(serves_) != 0 && NeedsTurns() && progress_.poison() == ErrorCode::kOk;
}

uint64_t LinkKeeper::NextTurnNs(uint64_t now_ns) const {
  const uint64_t next_ns = links_->NextTurnNs(now_ns);
  return progress_.engine().AwaitsLink() ? std::min(next_ns, now_ns + kAwaitLinkNs) : next_ns;
}

// ---- Orders -------------------------------------------------------------------------------------

int LinkKeeper::Look() {
  while (const std::optional<LinkOrder> order = parts_.attach->TakeOrder()) {
    Obey(*order, MonotonicNs());
  }
  if (ends_.empty()) {  // only this thread adds and removes some
    return -1;
  }
  uint64_t next_ns = UINT64_MAX;
  std::vector<LinkReply> replies;
  const uint64_t now_ns = MonotonicNs();
  UnderLease([&](engine::Effects& effects) {
    for (auto next = ends_.begin(); next != ends_.end();) {
      const auto current = next++;
      next_ns = std::min(next_ns, LookAfter(current->first, &current->second, now_ns, effects));
      if (current->second.link == 0) {
        ends_.erase(current);
      }
    }
    if (effects.to_link) {
      Turn(effects);
    }
    replies.swap(replies_);
  });
  for (const LinkReply& reply : replies) {
    (void)parts_.attach->SendLinkReply(reply).ok();  // else the daemon is gone
  }
  if (next_ns == UINT64_MAX) {
    return -1;
  }
  const uint64_t left_ns = next_ns - std::min(next_ns, now_ns);
  return static_cast<int>(std::min<uint64_t>(left_ns / kNsPerMs + 1, 60'000));
}

void LinkKeeper::Obey(const LinkOrder& order, uint64_t now_ns) {
  const engine::PeerTable& peers = progress_.peers();
  const bool is_any = order.peer == attach::kAnyPeer;
  if (!is_any && (order.peer >= peers.by_rank.size() || peers.by_rank[order.peer].local)) {
    return;  // no correct daemon orders so
  }
  switch (static_cast<LinkOp>(order.op)) {
    case LinkOp::kOpen:
      return Open(order);
    case LinkOp::kUse:
      return Use(order, now_ns);
    case LinkOp::kReturn:
      return is_any ? ReturnIdlest(now_ns) : Return(order.peer);
    case LinkOp::kEnd:
      return EndLink(order);
    case LinkOp::kRefuse:
      return Refuse(order);
  }
}

// Once: what fails fails for all links.
Status LinkKeeper::OpenEndpoint() {
  if (opening_.has_value()) {
    return *opening_;
  }
  const auto open = [this]() -> Status {
    const StatusOr<const DirectApi*> api = parts_.open_library();
    FERRY_RETURN_IF_ERROR(api.status());
    DirectSetup setup;
    setup.view = progress_.view();
    setup.job_id = parts_.job_id.c_str();
    setup.source_address = parts_.rules.source_address;
    setup.operation_timeout_ns = parts_.rules.operation_timeout_ms * kNsPerMs;
    auto links = (*api)->open(setup, this);
    FERRY_RETURN_IF_ERROR(links.status());
    UnderLease([&](engine::Effects&) { links_ = std::move(*links); });
    if (links_ == nullptr) {
      return {progress_.poison(), "the rank has failed"};
    }
    return thread_.Start(links_->WaitFd());
  };
  opening_ = open();
  if (!opening_->ok()) {
    SayToUser(
        static_cast<int>(progress_.view().rank),
        "no direct links, all messages to other nodes pass the daemons: " + opening_->message());
  }
  return *opening_;
}

Status LinkKeeper::Connect(const LinkOrder& order, End* end) {
  if (end->is_connected || order.address_bytes == 0) {
    return {};
  }
  LinkRoute route;
  route.address.size_bytes = CheckedBytes(order.address_bytes);
  std::memcpy(route.address.bytes, order.address, route.address.size_bytes);
  std::copy(std::begin(order.send_key), std::end(order.send_key), route.send_key.words);
  std::copy(std::begin(order.receive_key), std::end(order.receive_key), route.receive_key.words);
  route.serial = order.link;
  FERRY_RETURN_IF_ERROR(links_->Connect(order.peer, route));
  end->is_connected = true;
  SetLinks(links() + 1);
  if (shm::LoadRelaxed(serves_) != 0) {
    thread_.Arm();
  }
  return {};
}

void LinkKeeper::Open(const LinkOrder& order) {
  Status status = OpenEndpoint();
  if (status.ok()) {
    UnderLease([&](engine::Effects&) {
      End& end = ends_[order.peer];
      if (end.is_connected) {  // the daemon knows nothing of that one any more
        Disconnect(order.peer, &end, ErrorCode::kLinkDown);
      }
      end = {};
      end.link = order.link;
      status = Connect(order, &end);
    });
  }
  if (!status.ok()) {
    return SayRefused(order, status);
  }
  LinkReply reply = ReplyOf(LinkEvent::kOpened, order.peer, order.link);
  const LinkAddress& address = links_->Address();
  reply.address_bytes = CheckedBytes(address.size_bytes);
  std::memcpy(reply.address, address.bytes, reply.address_bytes);
  (void)parts_.attach->SendLinkReply(reply).ok();
}

void LinkKeeper::Use(const LinkOrder& order, uint64_t now_ns) {
  Status status(ErrorCode::kNotFound, "there is no such link");
  UnderLease([&](engine::Effects& effects) {
    const auto found = ends_.find(order.peer);
    if (found == ends_.end() || found->second.link != order.link) {
      return;
    }
    End& end = found->second;
    if (!parts_.regions->by_stream().is_empty()) {
      status = {ErrorCode::kUnsupported, "the rank has device memory that only streams reach"};
      return;
    }
    status = Connect(order, &end);
    if (status.ok() && !end.is_connected) {
      status = {ErrorCode::kLinkDown, "its connection is gone"};
    }
    if (!status.ok()) {
      return;
    }
    const ErrorCode error = progress_.engine().UseLink(order.peer, effects);
    if (error != ErrorCode::kOk) {
      status = {error, "nothing passes between the two ranks"};
      return;
    }
    end.is_used = true;
    end.is_returning = false;
    end.traffic = TrafficTo(order.peer);
    end.active_ns = now_ns;
    end.due_ns = 0;
  });
  if (!status.ok()) {
    return SayRefused(order, status);
  }
  Say(LinkEvent::kUsed, order.peer, order.link);
}

void LinkKeeper::Leave(uint32_t peer, End* end, engine::Effects& effects) {
  if (end->is_used && !std::exchange(end->is_returning, true)) {
    end->due_ns = 0;
    end->pause_ns = kFirstPauseNs;
    progress_.engine().LeaveLink(peer, effects);
  }
}

void LinkKeeper::LeaveAll(engine::Effects& effects) {
  for (auto& [peer, end] : ends_) {
    Leave(peer, &end, effects);
  }
  eventfd_write(call_.get(), 1);
}

void LinkKeeper::Return(uint32_t peer) {
  UnderLease([&](engine::Effects& effects) {
    if (const auto found = ends_.find(peer); found != ends_.end()) {
      Leave(peer, &found->second, effects);
    }
  });
}

void LinkKeeper::ReturnIdlest(uint64_t now_ns) {
  std::optional<uint32_t> idlest;
  UnderLease([&](engine::Effects& effects) {
    uint64_t oldest_ns = now_ns - std::min(now_ns, parts_.rules.idle_ms * kNsPerMs / kIdlePart);
    for (auto& [peer, end] : ends_) {
      (void)LookAfter(peer, &end, now_ns, effects);  // it may have been busy since the last look
      if (end.is_used && !end.is_returning && end.active_ns < oldest_ns) {
        oldest_ns = end.active_ns;
        idlest = peer;
      }
    }
  });
  if (idlest.has_value()) {
    Return(*idlest);
  }
}

// In good order the link goes once nothing takes it any more (LookAfter); else at once.
void LinkKeeper::EndLink(const LinkOrder& order) {
  const auto code = static_cast<ErrorCode>(order.code);
  bool is_over = true;
  uint32_t flags = 0;
  UnderLease([&](engine::Effects& effects) {
    const auto found = ends_.find(order.peer);
    if (found == ends_.end() || found->second.link != order.link) {
      return;
    }
    End& end = found->second;
    if (code == ErrorCode::kOk && (end.is_connected || end.is_closed)) {
      end.is_ending = true;
      end.due_ns = 0;
      end.pause_ns = kFirstPauseNs;
      is_over = false;
      return;
    }
    Disconnect(order.peer, &end, code);
    Settle(effects);
    progress_.engine().FailLink(order.peer, effects);
    progress_.engine().RefuseLink(order.peer);  // should it have asked
    flags = progress_.engine().PathTo(order.peer) == PeerPath::kBroken ? attach::kLinkWasUsed : 0;
    ends_.erase(found);
  });
  if (is_over) {
    Say(LinkEvent::kEnded, order.peer, order.link, flags);
  }
}

void LinkKeeper::Refuse(const LinkOrder& order) {
  UnderLease([&](engine::Effects&) {
    progress_.engine().RefuseLink(order.peer);
    if (const auto found = ends_.find(order.peer);
        found != ends_.end() && found->second.link == order.link) {
      Disconnect(order.peer, &found->second, ErrorCode::kLinkDown);
      ends_.erase(found);
    }
  });
}

// ---- What is due --------------------------------------------------------------------------------

// Returns when to look again. An end without a number is over. Under the lease.
uint64_t LinkKeeper::LookAfter(uint32_t peer, End* end, uint64_t now_ns, engine::Effects& effects) {
  engine::RankEngine& engine = progress_.engine();
  const auto later = [&] {
    end->pause_ns = std::min(std::max(2 * end->pause_ns, kFirstPauseNs), kLongestPauseNs);
    end->due_ns = now_ns + end->pause_ns;
    return end->due_ns;
  };
  if (end->due_ns > now_ns && (end->is_ending || end->is_returning)) {
    return end->due_ns;
  }
  if (end->is_ending) {
    if (MayWant(peer, *end) ||
        (end->is_connected && !(engine.IsLinkFree(peer) && links_->IsIdle(peer)))) {
      return later();
    }
    Disconnect(peer, end, ErrorCode::kOk);
    const bool was_used = engine.PathTo(peer) == PeerPath::kBroken;
    LinkReply reply = ReplyOf(LinkEvent::kEnded, peer, end->link);
    reply.flags = was_used ? attach::kLinkWasUsed : 0;
    replies_.push_back(reply);
    end->link = 0;
    return UINT64_MAX;
  }
  if (!end->is_used) {
    return UINT64_MAX;
  }
  if (end->is_returning) {
    const PeerPath path = engine.PathTo(peer);
    // The peer may close the link as soon as it hears of the return.
    if (path == PeerPath::kToDaemon || path == PeerPath::kLink || path == PeerPath::kToLink ||
        MayWant(peer, *end)) {
      return later();
    }
    end->is_used = end->is_returning = false;
    if (path == PeerPath::kDaemon) {
      replies_.push_back(ReplyOf(LinkEvent::kReturned, peer, end->link));
    }
    return UINT64_MAX;
  }
  if (const uint64_t traffic = TrafficTo(peer); traffic != end->traffic || MayWant(peer, *end)) {
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
  engine.LeaveLink(peer, effects);
  return later();
}

// Whether one-sided operations take the link, or may be about to.
bool LinkKeeper::MayWant(uint32_t peer, const End& end) const {
  return IsHeld(peer) || (end.is_connected && links_->WantsOf(peer));
}

// It grows with what goes to the peer.
uint64_t LinkKeeper::TrafficTo(uint32_t peer) const {
  const shm::SessionLayout& session = *progress_.view().layout;
  return session.peers[peer].sent + shm::LoadRelaxed(session.one_sided[peer].done);
}

// ---- Answers ------------------------------------------------------------------------------------

LinkReply LinkKeeper::ReplyOf(LinkEvent event, uint32_t peer, uint64_t link) const {
  LinkReply reply{};
  reply.event = static_cast<uint32_t>(event);
  reply.peer = peer;
  reply.link = link;
  return reply;
}

void LinkKeeper::Say(LinkEvent event, uint32_t peer, uint64_t link, uint32_t flags) {
  LinkReply reply = ReplyOf(event, peer, link);
  reply.flags = flags;
  (void)parts_.attach->SendLinkReply(reply).ok();  // else the daemon is gone
}

void LinkKeeper::SayRefused(const LinkOrder& order, const Status& why) {
  UnderLease([&](engine::Effects&) { progress_.engine().RefuseLink(order.peer); });
  LinkReply reply = ReplyOf(LinkEvent::kRefused, order.peer, order.link);
  reply.code = static_cast<int32_t>(why.code());
  SetText(why.message(), &reply);
  (void)parts_.attach->SendLinkReply(reply).ok();
}

}  // namespace ferry::client
