#include "mpi/rma/attached.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "mpi/base/connection.h"
#include "mpi/init/fail.h"
#include "mpi/rma/access.h"
#include "mpi/rma/waiting.h"
#include "shm/atomic.h"

namespace ferry::mpi {

// ---- The memory that this process has attached --------------------------------------------------

Failure AttachedMemory::Attach(const void* base, uint64_t size_bytes) {
  const auto address = reinterpret_cast<uintptr_t>(base);
  std::lock_guard lock(mutex_);
  const auto after = std::ranges::lower_bound(entries_, address, {}, &AttachedEntry::address);
  const bool overlaps = (after != entries_.end() &&
                         (after->address == address || after->address < address + size_bytes)) ||
                        (after != entries_.begin() &&
                         std::prev(after)->address + std::prev(after)->size_bytes > address);
  if (overlaps) {
    return {MPI_ERR_RMA_ATTACH, "some of the " + std::to_string(size_bytes) + " bytes at " +
                                    HexText(base) + " are attached already"};
  }
  shm::Location location = front_end->one_sided->Locate(base, std::max<uint64_t>(size_bytes, 1));
  Exposure exposure;
  if (location.region == 0 && size_bytes != 0 && (location.flags & shm::kLocationByStream) == 0) {
    exposure = Exposure(const_cast<void*>(base), size_bytes, elements_);
    location.region = exposure.segment();
  }
  const auto added = entries_.insert(after, {address, size_bytes, location});
  const Failure failure = Publish();
  if (!failure.ok()) {
    entries_.erase(added);
  } else if (exposure.segment() != 0) {
    exposures_[address] = std::move(exposure);
  }
  return failure;
}

Failure AttachedMemory::Detach(const void* base) {
  const auto address = reinterpret_cast<uintptr_t>(base);
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(entries_, address, &AttachedEntry::address);
  if (found == entries_.end()) {
    return {MPI_ERR_RMA_ATTACH, "nothing is attached that begins at " + HexText(base)};
  }
  entries_.erase(found);
  exposures_.erase(address);
  return Publish();  // which needs no more room
}

// Tables that others may still copy stay until the window ends: each has twice the room of the one
// before it.
Failure AttachedMemory::Publish() {
  if (entries_.size() > capacity_) {
    const uint64_t capacity = std::max<uint64_t>(16, 2 * entries_.size());
    auto table = std::make_unique<WindowMemory>();
    FERRY_RETURN_FAILURE(table->Allocate(capacity * sizeof(AttachedEntry), 64));
    tables_.push_back(std::move(table));
    capacity_ = capacity;
  }
  std::byte* const table = tables_.back()->base();
  const uint64_t version = head_.version;
  shm::StoreRelease(head_.version, version + 1);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with Fetch: odd before it changes
  std::memcpy(table, entries_.data(), entries_.size() * sizeof(AttachedEntry));
  head_.count = entries_.size();
  head_.table = front_end->one_sided->Locate(table, capacity_ * sizeof(AttachedEntry));
  shm::StoreRelease(head_.version, version + 2);
  return {};
}

// ---- The memory that others have attached -------------------------------------------------------

namespace {

Failure OpenEntry(const WindowTarget& target, const AttachedEntry& entry, Exposed* memory) {
  *memory = ExposedAt(target.rank, entry.location, entry.size_bytes);
  memory->address = entry.address;
  if (target.rank == front_end->rank()) {
    memory->mapped = memory->is_by_stream() ? nullptr : reinterpret_cast<std::byte*>(entry.address);
  } else if (target.is_local && memory->reach == Reach::kShared && entry.size_bytes != 0) {
    StatusOr<std::shared_ptr<std::byte>> mapped =
        front_end->peers->MapPeer(target.rank, entry.location, entry.size_bytes);
    if (!mapped.ok()) {
      return FailureOf(mapped.status());
    }
    memory->mapping = *std::move(mapped);
    memory->mapped = memory->mapping.get();
  }
  return {};
}

// Copies the table of that version; *is_whole: it has not changed meanwhile.
ErrorCode Fetch(Win& win, const WindowTarget& target, uint64_t version,
                std::vector<AttachedEntry>* entries, bool* is_whole) {
  AttachedHead head{};
  ErrorCode error = target.control.Read(ControlLayout::attached(), &head, sizeof(head));
  *is_whole = error == ErrorCode::kOk && version % 2 == 0 && head.version == version;
  if (!*is_whole) {
    return error;
  }
  entries->resize(head.count);
  if (head.count != 0) {
    error =
        front_end->one_sided->Get(win.context(), entries->data(),
                                  {target.rank, client::SegmentOf(head.table), head.table.address},
                                  head.count * sizeof(AttachedEntry), client::WhenDone::kAtReturn);
  }
  uint64_t after = 0;
  if (error == ErrorCode::kOk) {
    // The table was copied by plain loads, which an acquire of the version lets come after it.
    std::atomic_thread_fence(std::memory_order_acquire);
    error = target.control.Load(ControlLayout::attached(), &after);
  }
  *is_whole = error == ErrorCode::kOk && after == version;
  return error;
}

// Pieces that lie behind each other become one: an operation may take bytes of several. Two
// segments do not, so links reach no private memory of several.
void Join(std::vector<AttachedEntry>* entries) {
  size_t kept = 0;
  for (size_t i = 1; i < entries->size(); ++i) {
    AttachedEntry& last = (*entries)[kept];
    const AttachedEntry& entry = (*entries)[i];
    const bool is_private = IsPrivate(last.location) && IsPrivate(entry.location);
    const bool continues = last.address + last.size_bytes == entry.address &&
                           (is_private || last.location.region == entry.location.region) &&
                           last.location.flags == entry.location.flags &&
                           last.location.address + last.size_bytes == entry.location.address;
    if (continues) {
      last.size_bytes += entry.size_bytes;
      last.location.region = is_private ? 0 : last.location.region;
    } else {
      (*entries)[++kept] = entry;
    }
  }
  entries->resize(std::min(entries->size(), kept + 1));
}

Failure Refresh(Win& win, WindowTarget* target) {
  uint64_t version = 0;
  ErrorCode error = target->control.Load(ControlLayout::attached(), &version);
  if (error != ErrorCode::kOk || version == target->attached_version) {
    return FailureOf(error);
  }
  std::vector<AttachedEntry> entries;
  bool is_whole = false;
  FERRY_RETURN_FAILURE(AwaitWords(
      target->is_local ? client::WordWait::From::kNode : client::WordWait::From::kQuestion,
      [&] {
        error = target->control.Load(ControlLayout::attached(), &version);
        error = error == ErrorCode::kOk ? Fetch(win, *target, version, &entries, &is_whole) : error;
        return is_whole || error != ErrorCode::kOk;
      },
      [&] { return front_end->peers->PeerState(target->rank); }));
  FERRY_RETURN_FAILURE(FailureOf(error));
  Join(&entries);
  auto attached = std::make_shared<std::vector<Exposed>>(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    FERRY_RETURN_FAILURE(OpenEntry(*target, entries[i], &(*attached)[i]));
  }
  target->attached = std::move(attached);
  target->attached_version = version;
  return {};
}

}  // namespace

Failure FindAttached(Win& win, WindowTarget* target, const AttachedRange& range,
                     WindowAddress* window_address) {
  const std::lock_guard lock(win.attached_mutex());
  FERRY_RETURN_FAILURE(Refresh(win, target));
  const auto low = static_cast<uint64_t>(range.address + range.span.low);
  const auto high = static_cast<uint64_t>(range.address + range.span.high);
  if (low == high) {  // nothing is wanted
    return {};
  }
  static const std::vector<Exposed>& kNone = *new std::vector<Exposed>();
  const std::vector<Exposed>& attached = target->attached ? *target->attached : kNone;
  const auto after = std::ranges::upper_bound(attached, low, {}, &Exposed::address);
  if (after == attached.begin() ||
      high > std::prev(after)->address + std::prev(after)->size_bytes || high < low) {
    return {MPI_ERR_RMA_RANGE, "the " + std::to_string(high - low) + " bytes at " +
                                   HexText(reinterpret_cast<const void*>(low)) +
                                   " are not all in one piece of memory that the target has "
                                   "attached"};
  }
  window_address->memory = &*std::prev(after);
  window_address->kept = target->attached;
  window_address->offset = range.address - static_cast<int64_t>(window_address->memory->address);
  return {};
}

}  // namespace ferry::mpi
