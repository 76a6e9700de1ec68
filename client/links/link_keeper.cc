#include "client/links/link_keeper.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "common/library_words.h"
#include "common/open_files.h"

namespace ferry::client {
namespace {

using attach::LinkOp;
using attach::LinkOrder;
using attach::LinkReply;

constexpr uint64_t kNsPerMs = 1'000'000;
// So long the watcher waits for the lease: it also has the daemon's life to look after. Then it
// pauses, ever longer, since the lease's holder may have been stopped.
constexpr uint64_t kLeasePatienceNs = 5 * kNsPerMs;
constexpr int kLongestLeasePauseMs = 50;
// The worker may drain the answer that lets sends go by a link, and wakes no thread for it.
constexpr uint64_t kAwaitLinkNs = 1'000'000;

}  // namespace

LinkKeeper::LinkKeeper(Parts parts)
    : LinkTurns(parts.progress->view().job_size),
      parts_(std::move(parts)),
      progress_(*parts_.progress),
      lease_(&progress_.view().layout->lease),
      ends_({.progress = parts_.progress,
             .turns = this,
             .regions = parts_.regions,
             .rules = parts_.rules,
             .connect_timeout_ns = parts_.connect_timeout_ns}),
      call_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_(this) {
  // Where links go over a NIC, the daemons may have it read the device memory itself.
  SetCarryDeviceMemory(std::string_view(parts_.rules.provider) == attach::kOwnSockets);
}

LinkKeeper::~LinkKeeper() { thread_.Stop(); }

// ---- Looks -----------------------------------------------------------------------------------

int LinkKeeper::Look() {
  TakeOrders();
  if (orders_.empty() && ends_.is_empty()) {
    return -1;
  }
  OpenEndpoint();
  // This thread is none of the program's: it knows nothing of a lease that is biased to it.
  const uint32_t self = Progress::ThreadId();
  if (!lease_.Acquire(self, &progress_.wake().layout()->poison, kLeasePatienceNs)) {
    if (progress_.poison() != ErrorCode::kOk) {
      return -1;
    }
    lease_pause_ms_ = std::clamp(2 * lease_pause_ms_, 1, kLongestLeasePauseMs);
    return lease_pause_ms_;
  }
  lease_pause_ms_ = 0;
  if (opened_ != nullptr) {
    ends_.Adopt(std::move(opened_));
  }
  engine::Effects effects;
  const uint64_t now_ns = MonotonicNs();
  const Status opening = opening_.value_or(Status());
  for (const LinkOrder& order : std::exchange(orders_, {})) {
    ends_.Obey(order, &room_, opening, now_ns, effects);
  }
  const uint64_t next_ns = ends_.LookAfterAll(now_ns, effects);
  Publish();
  if (effects.to_link) {
    (void)Turn(effects);
  }
  const std::vector<LinkReply> replies = ends_.TakeReplies();
  lease_.Release(self);
  progress_.PerformElsewhere(effects);
  if (HasWork()) {
    Arm();
  }
  for (const LinkReply& reply : replies) {
    (void)parts_.attach->SendLinkReply(reply).ok();  // else the daemon is gone
  }
  if (next_ns == UINT64_MAX) {
    return -1;
  }
  const uint64_t left_ns = next_ns - std::min(next_ns, now_ns);
  return static_cast<int>(std::min<uint64_t>(left_ns / kNsPerMs + 1, 60'000));
}

// Takes the orders that a correct daemon may give, and drops the others.
void LinkKeeper::TakeOrders() {
  const engine::PeerTable& peers = progress_.peers();
  while (const std::optional<LinkOrder> order = parts_.attach->TakeOrder()) {
    if (order->peer < peers.by_rank.size() && !peers.by_rank[order->peer].local) {
      orders_.push_back(*order);
    }
  }
}

// For how many links there are descriptors. Those that are not used yet may have no connection yet,
// and take one soon.
uint64_t LinkKeeper::CountRoom() const {
  const OpenFiles files = CountOpenFiles();
  const uint64_t most = files.limit - files.limit / kPartLeft;
  return most - std::min(most, files.open + ends_.CountUnused());
}

// If there is an order to have one, once: what fails fails for all links. Not under the lease,
// since it takes long.
void LinkKeeper::OpenEndpoint() {
  const auto opens = [](const LinkOrder& order) {
    return order.op == static_cast<uint32_t>(LinkOp::kOpen);
  };
  if (std::none_of(orders_.begin(), orders_.end(), opens)) {
    return;
  }
  room_ = CountRoom();
  if (opening_.has_value() || room_ == 0) {
    return;
  }
  const auto open = [this]() -> Status {
    const StatusOr<const DirectApi*> api = parts_.open_library();
    FERRY_RETURN_IF_ERROR(api.status());
    DirectSetup setup;
    setup.view = progress_.view();
    setup.job_id = parts_.job_id.c_str();
    setup.provider = parts_.rules.provider;
    setup.domain = parts_.rules.domain;
    setup.source_address = parts_.rules.source_address;
    setup.operation_timeout_ns = parts_.rules.operation_timeout_ms * kNsPerMs;
    setup.peer_timeout_ns = parts_.rules.peer_timeout_ms * kNsPerMs;
    auto links = (*api)->open(setup, this);
    FERRY_RETURN_IF_ERROR(links.status());
    opened_ = std::move(*links);
    return thread_.Start(opened_->WaitFd());
  };
  opening_ = open();
  if (opening_->ok()) {
    return;
  }
  opened_.reset();
  // Links that come and go by themselves were not asked for, so only `ferryctl links` says why
  // there are none.
  if (parts_.rules.idle_ms == 0) {
    SayToUser(
        static_cast<int>(progress_.view().rank),
        "no direct links, all messages to other nodes pass the daemons: " + opening_->message());
  }
}

// ---- Turns --------------------------------------------------------------------------------------

uint32_t LinkKeeper::Turn(engine::Effects& effects) {
  effects.to_link = false;
  if (ends_.core() == nullptr) {
    return 0;
  }
  const bool is_of_burst = BeginTurn();
  ends_.EndDead();
  effects_ = &effects;
  const uint32_t done = ends_.core()->Turn(MonotonicNs());
  effects_ = nullptr;
  const bool has_lost = ends_.TakeLinksDown(effects);
  if (ends_.HaveConnected() || has_lost) [[unlikely]] {
    CallWatcher();
  }
  Publish();
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
  ends_.OnLinkDown(peer, text);
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

void LinkKeeper::LeaveAll(engine::Effects& effects) {
  ends_.LeaveAll(effects);
  CallWatcher();
}

void LinkKeeper::CallWatcher() { eventfd_write(call_.get(), 1); }

// Tells other threads what the ends are now.
void LinkKeeper::Publish() {
  if (const uint32_t before = links(); ends_.connected() != before) [[unlikely]] {
    SetLinks(ends_.connected());
    if (ends_.connected() > before && shm::LoadRelaxed(serves_) != 0) {
      thread_.Arm();
    }
  }
  SetWork(ends_.HasWork());
}

void LinkKeeper::GiveUpLinks() {
  if (ends_.gives_up()) [[likely]] {
    return;
  }
  (void)progress_.UnderLease([this](engine::Effects& effects) {
    SetCarryDeviceMemory(false);
    ends_.GiveUp(effects);
    return ErrorCode::kOk;
  });
  CallWatcher();
}

void LinkKeeper::ForgetRegion(uint32_t region) {
  (void)progress_.UnderLease([&](engine::Effects&) {
    HostRegion memory;
    const bool is_known = FindRegion(region, &memory);
    // It is in the table until it has gone.
    std::erase_if(forgotten_, [this](uint32_t id) { return !parts_.regions->ById(id); });
    forgotten_.push_back(region);
    if (is_known) {
      ForgetByCore(memory);
    }
    return ErrorCode::kOk;
  });
}

// The next turn takes the links down that this has cost.
void LinkKeeper::ForgetByCore(const HostRegion& memory) {
  if (ends_.core() != nullptr) {
    ends_.core()->ForgetRegion(memory);
    SetWork(ends_.HasWork());
  }
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
    if (const auto exposed = exposed_.find(segment); exposed != exposed_.end()) {
      const HostRegion memory = exposed->second;
      exposed_.erase(exposed);
      ForgetByCore(memory);
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

// Without the lease, returns false: its holder finds the work, and may leave some of it, so the
// thread looks again.
bool LinkKeeper::PrepareToSleep() {
  const uint32_t self = Progress::ThreadId();
  if (!lease_.TryAcquire(self)) {
    return false;
  }
  const bool may_sleep = ends_.core()->PrepareToSleep() && !progress_.engine().HasArrivals();
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
  const uint64_t next_ns = ends_.core()->NextTurnNs(now_ns);
  return progress_.paths().AwaitsLink() ? std::min(next_ns, now_ns + kAwaitLinkNs) : next_ns;
}

}  // namespace ferry::client
