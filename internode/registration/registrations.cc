#include "internode/registration/registrations.h"

#include <algorithm>
#include <utility>

namespace ferry::progress {
namespace {

constexpr uint64_t kPageBytes = 4096;  // the smallest; more is pinned where they are larger

constexpr uint64_t RoundDown(uint64_t value, uint64_t unit) { return value - value % unit; }
constexpr uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return RoundDown(value + unit - 1, unit);
}

std::string LimitText(const char* option, uint64_t limit) {
  return std::string(option) + " is " + std::to_string(limit);
}

}  // namespace

// ---- Claims ------------------------------------------------------------------------------------

Claim::Claim(Claim&& other) noexcept { *this = std::move(other); }

Claim& Claim::operator=(Claim&& other) noexcept {
  if (this != &other) {
    Drop();
    owner_ = other.owner_;
    entry_ = other.entry_;
    ticket_ = other.ticket_;
    use_ = other.use_;
    refusal_ = other.refusal_;
    begin_ = other.begin_;
    end_ = other.end_;
    identity_ = other.identity_;
    since_ns_ = other.since_ns_;
    other.Forget();
  }
  return *this;
}

bool Claim::held() const {
  return entry_ != nullptr && entry_->state == RegistrationCache::Entry::State::kReady;
}

bool Claim::waiting() const {
  return ticket_ != 0 ||
         (entry_ != nullptr && entry_->state == RegistrationCache::Entry::State::kPinning);
}

const char* Claim::wants() const {
  if (ticket_ != 0) {
    return "room in the registration cache";
  }
  return waiting() ? "its memory to be registered with the network" : nullptr;
}

void Claim::Drop() {
  if (owner_ == nullptr) {
    return;
  }
  if (entry_ != nullptr) {
    owner_->Unuse(this, 0);
  }
  owner_->ReturnTicket(this);
  Forget();
}

void Claim::DropLater() {
  if (held()) {
    owner_->Unuse(this, owner_->now_ns_ + owner_->options_.timeout_ns);
  }
  Drop();
}

void Claim::Forget() {
  owner_ = nullptr;
  entry_ = nullptr;
  ticket_ = 0;
  refusal_ = ErrorCode::kOk;
}

// ---- Holding -----------------------------------------------------------------------------------

Registrations::Registrations(Registrar& registrar, const RegistrationOptions& options)
    : registrar_(registrar), options_(options), cache_(options.limits) {}

ErrorCode Registrations::Hold(const ClaimableRegion& region, uint64_t offset, uint64_t bytes,
                              UseFor use, uint64_t now_ns, Claim* claim) {
  now_ns_ = now_ns;
  const auto begin = reinterpret_cast<uintptr_t>(region.begin()) + offset;
  const uintptr_t end = begin + bytes;
  const bool again = claim->owner_ != nullptr && claim->begin_ == begin && claim->end_ == end &&
                     claim->identity_ == region.identity && claim->use_ == use;
  if (again && claim->ticket_ == 0) {
    return Resume(claim);
  }
  if (!again) {
    claim->Drop();
    claim->owner_ = this;
    claim->begin_ = begin;
    claim->end_ = end;
    claim->identity_ = region.identity;
    claim->use_ = use;
    claim->since_ns_ = now_ns;
  }
  Entry* entry = cache_.Find(begin, end, region.identity);
  if (!again) {
    cache_.Count(entry != nullptr);
  }
  if (entry == nullptr || !cache_.MayUse(entry, 0, use)) {
    if (cache_.any_unlisted()) {
      Sweep(now_ns);  // so that it is unpinned before more is pinned, and makes room for that
    }
    const Range range = RangeFor(region, offset, bytes, use);
    if (const ErrorCode code = AskForRoom(region, entry, range.bytes(), now_ns, claim);
        code != ErrorCode::kOk) {
      return code;
    }
    entry = cache_.Insert(range.begin, range.end, region.identity);
    must_sweep_ |= cache_.any_unlisted();
    Pin(region, entry);
  }
  ReturnTicket(claim);
  cache_.Use(entry, use);
  claim->entry_ = entry;
  return Resume(claim);
}

ErrorCode Registrations::TryHold(const ClaimableRegion& region, uint64_t offset, uint64_t bytes,
                                 UseFor use, uint64_t now_ns, Claim* claim) {
  ErrorCode code = Hold(region, offset, bytes, use, now_ns, claim);
  if (claim->wants_room()) {
    code = ErrorCode::kLimitExceeded;
  }
  if (code != ErrorCode::kOk && code != ErrorCode::kWouldBlock) {
    claim->Drop();
  }
  return code;
}

ErrorCode Registrations::HoldDevice(ClaimableRegion& region, uint64_t offset, uint64_t bytes,
                                    UseFor use, uint64_t now_ns, Claim* claim) {
  const ErrorCode code = region.at_nic == nullptr || region.nic_refuses || bytes == 0
                             ? ErrorCode::kUnsupported
                             : TryHold(region, offset, bytes, use, now_ns, claim);
  // Where it is full, others may let go of theirs.
  region.nic_refuses |=
      code != ErrorCode::kOk && code != ErrorCode::kWouldBlock && code != ErrorCode::kLimitExceeded;
  return code;
}

ErrorCode Registrations::Resume(Claim* claim) {
  if (claim->entry_ == nullptr) {
    return claim->refusal_;
  }
  switch (claim->entry_->state) {
    case Entry::State::kReady:
      return ErrorCode::kOk;
    case Entry::State::kPinning:
      return ErrorCode::kWouldBlock;
    case Entry::State::kFailed:
      break;
  }
  claim->refusal_ = claim->entry_->error;
  Unuse(claim, 0);
  return claim->refusal_;
}

// First come, first served: whoever needs room waits behind those who have waited longer. With an
// entry, it is only the share of peers that is used up.
ErrorCode Registrations::AskForRoom(const ClaimableRegion& region, const Entry* entry,
                                    uint64_t bytes, uint64_t now_ns, Claim* claim) {
  if (!cache_.CanHold(bytes, claim->use_)) {
    return Refuse(region, ErrorCode::kLimitExceeded,
                  std::to_string(bytes) + " bytes must be registered at once, and " +
                      LimitText("registration_cache_bytes", cache_.limits().bytes) +
                      " (half of it for what is offered to other nodes); raise it, or send in "
                      "smaller messages",
                  claim);
  }
  const std::set<uint64_t>& tickets = TicketsOf(*claim);
  const bool first = tickets.empty() || *tickets.begin() == claim->ticket_;
  if (first && entry == nullptr && cache_.MayUse(nullptr, bytes, claim->use_) &&
      cache_.MakeRoom(bytes, now_ns, [](Entry& victim) { return victim.pinned.TryRelease(); })) {
    return ErrorCode::kOk;
  }
  if (claim->ticket_ == 0) {
    claim->ticket_ = ++last_ticket_;
    TicketsOf(*claim).insert(claim->ticket_);
    waiting_.Add(1);
    return ErrorCode::kWouldBlock;
  }
  if (now_ns - claim->since_ns_ <= options_.timeout_ns) {
    return ErrorCode::kWouldBlock;
  }
  return Refuse(
      region, ErrorCode::kLimitExceeded,
      "the registration cache is full of memory in use (" + std::to_string(cache_.entries()) +
          " registrations, " + std::to_string(cache_.bytes()) + " bytes; " +
          LimitText("registration_cache_entries", cache_.limits().entries) + ", " +
          LimitText("registration_cache_bytes", cache_.limits().bytes) +
          "), and nothing became free in " + std::to_string(options_.timeout_ns / 1'000'000) +
          " ms; raise these options, or receive earlier",
      claim);
}

ErrorCode Registrations::Refuse(const ClaimableRegion& region, ErrorCode code,
                                const std::string& why, Claim* claim) {
  ReturnTicket(claim);
  claim->refusal_ = code;
  refusals_.Add(1);
  if (options_.on_refused) {
    options_.on_refused(region.name + " cannot be registered with the network: " + why);
  }
  return code;
}

void Registrations::ReturnTicket(Claim* claim) {
  if (claim->ticket_ != 0) {
    TicketsOf(*claim).erase(std::exchange(claim->ticket_, 0));
    waiting_.Subtract(1);
    ++changes_;  // another one may be the first now
  }
}

Registrations::Range Registrations::RangeFor(const ClaimableRegion& region, uint64_t offset,
                                             uint64_t bytes, UseFor use) const {
  const auto base = reinterpret_cast<uintptr_t>(region.begin());
  const auto in_units = [&](uint64_t unit) {
    const uint64_t end = std::min(RoundUp(offset + bytes, unit), region.size_bytes);
    return Range{base + RoundDown(offset, unit), base + end};
  };
  const Range pieces = in_units(std::max(options_.piece_bytes, kPageBytes));
  return cache_.CanHold(pieces.bytes(), use) ? pieces : in_units(kPageBytes);
}

// ---- Pinning -----------------------------------------------------------------------------------

void Registrations::Pin(const ClaimableRegion& region, Entry* entry) {
  entry->name = region.name;
  entry->is_device = region.by_stream;
  PinRequest request = {.base = reinterpret_cast<std::byte*>(entry->begin),
                        .bytes = entry->bytes(),
                        .access = transport::Access::kRemoteRead,
                        .memory = region.keep_alive,
                        .owner = region.owner,
                        .on_end = [this, entry] { OnPinned(entry); }};
  if (region.by_stream) {
    request.device = region.for_nic;
  }
  if (region.pin) {
    request.pin = [pin = region.pin, base = request.base, bytes = request.bytes] {
      return pin(base, bytes);
    };
  }
  entry->pinned = PinnedMemory(registrar_, std::move(request));
  waiting_.Add(1);
  registrar_.CollectAtOnce();  // where nothing is pinned, it is over
}

void Registrations::OnPinned(Entry* entry) {
  waiting_.Subtract(1);
  ++changes_;
  if (entry->pinned.is_pinned()) {
    cache_.SetReady(entry);
    must_sweep_ |= !entry->listed;
    return;
  }
  const Status& status = entry->pinned.status();
  if (status.code() != ErrorCode::kCancelled) {
    const std::string text = entry->name + ": the network refuses " +
                             std::to_string(entry->bytes()) + " bytes of it: " + status.message();
    (entry->is_device ? device_refusals_ : refusals_).Add(1);
    if (options_.on_refused && (!entry->is_device || device_refusal_.empty())) {
      options_.on_refused(entry->is_device ? text + "; device memory goes by staging memory"
                                           : text);
    }
    device_refusal_ = entry->is_device ? text : device_refusal_;
  }
  cache_.SetFailed(entry, status.code());
  must_sweep_ = true;
}

void Registrations::Unuse(Claim* claim, uint64_t not_before_ns) {
  Entry* entry = std::exchange(claim->entry_, nullptr);
  entry->not_before_ns = std::max(entry->not_before_ns, not_before_ns);
  cache_.Unuse(entry, claim->use_);
  ++changes_;
  must_sweep_ |= entry->users == 0 && !entry->listed;
}

// ---- Ending ------------------------------------------------------------------------------------

bool Registrations::TryRetire(const ClaimableRegion& region, uint64_t now_ns, uint64_t deadline_ns,
                              const std::shared_ptr<UnpinSignal>& unpinned) {
  const auto base = reinterpret_cast<uintptr_t>(region.begin());
  cache_.UnlistAll(base, base + region.size_bytes, region.identity);
  cache_.ForEachUnlisted([&](Entry& entry) {
    if (entry.identity.region == region.identity.region) {
      entry.unpinned = unpinned;
      entry.pinned.Cancel();
    }
  });
  Sweep(now_ns);
  bool done = true;
  cache_.ForEachUnlisted([&](Entry& entry) {
    if (entry.identity.region != region.identity.region || entry.state != Entry::State::kReady) {
      return;
    }
    const bool kept = entry.not_before_ns > now_ns || now_ns >= deadline_ns;
    done &= kept;
    entry.unpinned.reset();
  });
  return done;
}

void Registrations::Forget(const ClaimableRegion& region, uintptr_t begin, uintptr_t end) {
  cache_.UnlistAll(begin, end, region.identity);
  must_sweep_ |= cache_.any_unlisted();
}

void Registrations::Advance(uint64_t now_ns) {
  now_ns_ = now_ns;
  if (must_sweep_) {
    Sweep(now_ns);
  }
}

void Registrations::Sweep(uint64_t now_ns) {
  must_sweep_ = false;
  cache_.ForEachUnlisted([&](Entry& entry) {
    if (entry.users == 0 && entry.not_before_ns <= now_ns &&
        entry.pinned.TryRelease(entry.unpinned)) {
      cache_.Erase(&entry);
      ++changes_;
    }
  });
}

RegistrationStatistics Registrations::Statistics() const {
  RegistrationStatistics statistics;
  cache_.FillStatistics(&statistics);
  statistics.waiting = waiting_.value();
  statistics.refusals = refusals_.value();
  statistics.device_refusals = device_refusals_.value();
  return statistics;
}

}  // namespace ferry::progress
