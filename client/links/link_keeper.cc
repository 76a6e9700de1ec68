#include "client/links/link_keeper.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "common/library_words.h"
#include "shm/counters.h"

namespace ferry::client {
namespace {

// The worker may drain the answer that lets sends go by a link, and wakes no thread for it.
constexpr uint64_t kAwaitLinkNs = 1'000'000;

}  // namespace

LinkKeeper::LinkKeeper(Parts parts)
    : LinkTurns(parts.progress->view().job_size),
      parts_(std::move(parts)),
      progress_(*parts_.progress),
      lease_(&progress_.view().layout->lease),
      call_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_(this) {
  // Where links go over a NIC, the daemons may have it read the device memory itself.
  SetCarryDeviceMemory(std::string_view(parts_.rules.provider) == attach::kOwnSockets);
}

LinkKeeper::~LinkKeeper() { thread_.Stop(); }

// ---- Turns --------------------------------------------------------------------------------------

uint32_t LinkKeeper::Turn(engine::Effects& effects) {
  effects.to_link = false;
  if (links_ == nullptr) {
    return 0;
  }
  const bool is_of_burst = BeginTurn();
  CheckDeaths();
  effects_ = &effects;
  const uint32_t done = links_->Turn(MonotonicNs());
  effects_ = nullptr;
  if (!links_down_.empty()) [[unlikely]] {
    TakeLinksDown(effects);
  }
  if (connecting_ != 0) [[unlikely]] {
    CheckConnections();
  }
  SetWork(links_->HasWork() || awaited_ != 0);
  if (is_of_burst) {
    EndTurnOfBurst(MonotonicNs());
  }
  return done;
}

void LinkKeeper::LetMatch() {
  progress_.engine().Progress(*effects_);
  effects_->to_link = false;  // what it has for the core is taken now
}

void LinkKeeper::OnLinkDown(uint32_t peer, ErrorCode /*error*/, const char* text) {
  links_down_.push_back({peer, text});
}

void LinkKeeper::OnViolation(const char* text) {
  SayToUser(static_cast<int>(progress_.view().rank), text);
  progress_.wake().Poison(ErrorCode::kCorrupt);
}

bool LinkKeeper::FindRegion(uint32_t region, HostRegion* found) const {
  if ((region & shm::kSegmentPrivate) != 0) {
    const auto exposed = exposed_.find(region);
    if (exposed == exposed_.end()) {
      return false;
    }
    *found = exposed->second;
    return true;
  }
  const OwnRegion own = parts_.regions->ById(region);
  if (!own || std::find(forgotten_.begin(), forgotten_.end(), region) != forgotten_.end()) {
    return false;
  }
  *found = {own.base, own.size_bytes, own.by_stream, own.lent};
  return true;
}

// Ends the core's operations with a rank that is gone, or cut off, before the engine ends its
// requests.
void LinkKeeper::CheckDeaths() {
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

// Has the watcher look at ends that are connected now, or cannot be.
void LinkKeeper::CheckConnections() {
  for (auto& [peer, end] : ends_) {
    if (end.order.has_value() && end.had_route &&
        ConnectionTo(peer, end, nullptr) != ErrorCode::kWouldBlock) {
      connecting_ = 0;  // until it has looked
      end.due_ns = 0;
      eventfd_write(call_.get(), 1);
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

void LinkKeeper::TakeLinksDown(engine::Effects& effects) {
  Settle(effects);
  for (const auto& [peer, text] : std::exchange(links_down_, {})) {
    const auto found = ends_.find(peer);
    if (found == ends_.end() || !found->second.is_connected) {
      continue;
    }
    End& end = found->second;
    end.is_connected = false;
    end.trouble = text;
    SetLinks(links() - 1);
    // Of the two ranks one hears first that the link is over, and closes it. Not before this one
    // has said that its direction is back.
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
    eventfd_write(call_.get(), 1);
  }
}

void LinkKeeper::Disconnect(uint32_t peer, End* end, ErrorCode error) {
  if (std::exchange(end->is_connected, false)) {
    links_->End(peer, error);
    SetLinks(links() - 1);
    SetWork(links_->HasWork() || awaited_ != 0);
  }
}

void LinkKeeper::LeaveAll(engine::Effects& effects) {
  is_leaving_ = true;
  for (auto& [peer, end] : ends_) {
    Leave(peer, &end, effects);
  }
  eventfd_write(call_.get(), 1);
}

// Links that are being made are refused when they are looked at next.
void LinkKeeper::GiveUpLinks() {
  if (shm::LoadRelaxed(gives_up_) != 0) [[likely]] {
    return;
  }
  (void)progress_.UnderLease([this](engine::Effects& effects) {
    shm::StoreRelaxed(gives_up_, 1U);
    SetCarryDeviceMemory(false);
    for (auto& [peer, end] : ends_) {
      Leave(peer, &end, effects);
      end.due_ns = 0;
    }
    return ErrorCode::kOk;
  });
  eventfd_write(call_.get(), 1);
}

void LinkKeeper::ForgetRegion(uint32_t region) {
  (void)progress_.UnderLease([&](engine::Effects&) {
    // It is in the table until it has gone.
    std::erase_if(forgotten_, [this](uint32_t id) { return !parts_.regions->ById(id); });
    forgotten_.push_back(region);
    if (links_ != nullptr) {
      links_->ForgetRegion(region);
    }
    return ErrorCode::kOk;
  });
}

// ---- What the program exposes -------------------------------------------------------------------

uint32_t LinkKeeper::Expose(std::byte* base, uint64_t size_bytes, shm::ElementLock* lock) {
  uint32_t segment = 0;
  (void)progress_.UnderLease([&](engine::Effects&) {
    do {
      segment = shm::kSegmentPrivate | (++last_exposed_ & (shm::kSegmentPrivate - 1));
    } while (exposed_.contains(segment));
    exposed_[segment] = {.base = base, .size_bytes = size_bytes, .lock = lock};
    return ErrorCode::kOk;
  });
  Serve();
  return segment;
}

void LinkKeeper::Unexpose(uint32_t segment) {
  (void)progress_.UnderLease([&](engine::Effects&) {
    exposed_.erase(segment);
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

// Without the lease, returns false: its holder finds the work, and may leave some of it, so the
// thread looks again.
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

// A rank whose memory others reach does not arm the thread when it goes on to compute.
bool LinkKeeper::MustStay() const {
  return shm::LoadRelaxed(serves_) != 0 && NeedsTurns() && progress_.poison() == ErrorCode::kOk;
}

uint64_t LinkKeeper::NextTurnNs(uint64_t now_ns) const {
  const uint64_t next_ns = links_->NextTurnNs(now_ns);
  return progress_.paths().AwaitsLink() ? std::min(next_ns, now_ns + kAwaitLinkNs) : next_ns;
}

}  // namespace ferry::client
