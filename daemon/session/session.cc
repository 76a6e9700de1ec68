#include "daemon/session/session.h"

#include <algorithm>
#include <utility>

namespace ferry::daemon {
namespace {

constexpr QuotaLabel kLabels[] = {
    {&QuotaAmounts::sessions, "quota_sessions", "sessions", "start fewer ranks"},
    {&QuotaAmounts::regions, "quota_regions", "regions", "free device memory or heaps"},
    {&QuotaAmounts::pinned_bytes, "quota_pinned_bytes", "bytes",
     "lower heap_bytes or free device memory"},
    {&QuotaAmounts::jobs, "quota_jobs", "jobs", "end other jobs"},
    {&QuotaAmounts::requests, "quota_requests", "requests",
     "lower request_limit (FERRY_REQUEST_LIMIT) or start fewer ranks"},
    {&QuotaAmounts::links, "quota_links", "direct links", "wait until others are idle"},
    {&QuotaAmounts::nodes, "quota_nodes", "nodes", "end other jobs, or use fewer nodes"},
    {&QuotaAmounts::ranks, "quota_ranks", "ranks", "end other jobs, or start fewer ranks"},
};

}  // namespace

// ---- Quota ----

std::span<const QuotaLabel> QuotaLabels() { return kLabels; }

// ---- QuotaHold ----

struct QuotaHold::Book {
  std::mutex mutex;
  std::map<uid_t, QuotaAmounts> used;
};

QuotaHold::QuotaHold(std::shared_ptr<Book> book, uid_t uid, const QuotaAmounts& amounts)
    : book_(std::move(book)), uid_(uid), amounts_(amounts) {}

QuotaHold::QuotaHold(QuotaHold&& other) noexcept
    : book_(std::exchange(other.book_, nullptr)), uid_(other.uid_), amounts_(other.amounts_) {}

QuotaHold& QuotaHold::operator=(QuotaHold&& other) noexcept {
  if (this != &other) {
    Release();
    book_ = std::exchange(other.book_, nullptr);
    uid_ = other.uid_;
    amounts_ = other.amounts_;
  }
  return *this;
}

void QuotaHold::Release() {
  const std::shared_ptr<Book> book = std::exchange(book_, nullptr);
  if (book == nullptr) {
    return;
  }
  const std::lock_guard lock(book->mutex);
  const auto user = book->used.find(uid_);
  for (const QuotaLabel& label : kLabels) {
    user->second.*label.member -= amounts_.*label.member;
  }
  if (user->second == QuotaAmounts()) {
    book->used.erase(user);
  }
}

// ---- QuotaLedger ----

QuotaLedger::QuotaLedger(const QuotaAmounts& limits, uint64_t shared_places)
    : limits_(limits), shared_places_(shared_places), book_(std::make_shared<QuotaHold::Book>()) {}

QuotaAmounts QuotaLedger::LimitsOf(uid_t uid) const {
  const std::lock_guard lock(book_->mutex);
  return Limits(uid);
}

QuotaAmounts QuotaLedger::Limits(uid_t uid) const {
  QuotaAmounts limits = limits_;
  if (shared_places_ != 0) {
    uint64_t left = shared_places_;
    for (const auto& [user, used] : book_->used) {
      left -= user == uid ? 0 : std::min(left, used.sessions);
    }
    limits.sessions = std::max<uint64_t>(left - (left + 3) / 4, 1);
  }
  return limits;
}

StatusOr<QuotaHold> QuotaLedger::Take(uid_t uid, const QuotaAmounts& wanted) {
  const std::lock_guard lock(book_->mutex);
  const auto found = book_->used.find(uid);
  QuotaAmounts used = found == book_->used.end() ? QuotaAmounts() : found->second;
  const QuotaAmounts limits = Limits(uid);
  for (const QuotaLabel& label : kLabels) {
    const uint64_t more = wanted.*label.member;
    const uint64_t limit = limits.*label.member != 0 ? limits.*label.member : UINT64_MAX;
    const bool is_share = shared_places_ != 0 && label.member == &QuotaAmounts::sessions;
    uint64_t& amount = used.*label.member;
    if (more != 0 && (amount > limit || more > limit - amount)) {
      return Status(ErrorCode::kLimitExceeded,
                    "uid " + std::to_string(uid) + " has reached " + label.option + ": it uses " +
                        std::to_string(amount) + " of " + std::to_string(limit) + " " + label.unit +
                        (is_share ? " (three quarters of what other users leave of " +
                                        std::to_string(shared_places_) + ")"
                                  : "") +
                        " and asked for " + std::to_string(more) + " more; " + label.remedy +
                        ", or have the administrator " + (is_share ? "set " : "raise ") +
                        label.option);
    }
    amount += more;
  }
  book_->used[uid] = used;
  return QuotaHold(book_, uid, wanted);
}

std::map<uid_t, QuotaAmounts> QuotaLedger::Used() const {
  const std::lock_guard lock(book_->mutex);
  return book_->used;
}

// ---- Session ----

Status Region::Import(gpu::GpuSource& gpus, const gpu::IpcHandle& device_handle) {
  StatusOr<std::shared_ptr<gpu::OpenedGpu>> opened = gpus.Get();
  FERRY_RETURN_IF_ERROR(opened.status());
  StatusOr<std::unique_ptr<gpu::ImportedMemory>> imported =
      gpu::ImportedMemory::Import(*(*opened)->backend, device_handle);
  FERRY_RETURN_IF_ERROR(imported.status());
  gpu = std::move(*opened);
  device_memory = std::move(*imported);
  return {};
}

std::shared_ptr<const Region> Session::FindRegion(uint32_t id) const {
  std::lock_guard lock(mutex_);
  auto found = regions_.find(id);
  return found == regions_.end() ? nullptr : found->second;
}

Status Session::AddRegion(std::shared_ptr<const Region> region) {
  std::lock_guard lock(mutex_);
  uint32_t id = region->id;
  if (!regions_.emplace(id, std::move(region)).second) {
    return {ErrorCode::kAlreadyExists, "region " + std::to_string(id) + " is already registered"};
  }
  return {};
}

std::shared_ptr<const Region> Session::RemoveRegion(uint32_t id) {
  std::lock_guard lock(mutex_);
  auto found = regions_.find(id);
  if (found == regions_.end()) {
    return nullptr;
  }
  std::shared_ptr<const Region> region = std::move(found->second);
  regions_.erase(found);
  return region;
}

void Session::DropRegions() {
  std::map<uint32_t, std::shared_ptr<const Region>> dropped;  // unmapped without the lock
  std::lock_guard lock(mutex_);
  dropped.swap(regions_);
}

std::map<uint32_t, std::shared_ptr<const Region>> Session::Regions() const {
  std::lock_guard lock(mutex_);
  return regions_;
}

}  // namespace ferry::daemon
