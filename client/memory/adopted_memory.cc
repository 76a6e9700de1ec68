#include "client/memory/adopted_memory.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client/memory/buffer_words.h"

namespace ferry::client {
namespace {

// Regions of the program's own device memory. More are adopted and withdrawn by turns, which takes
// a fraction of a millisecond each time.
constexpr size_t kMostAdopted = 512;
// At each adoption so many of the others are looked at, so that memory which the program has freed
// is soon free.
constexpr size_t kLooksAtOthers = 16;

Status NotMapped(const void* hole, const void* pointer, uint64_t size_bytes) {
  return {ErrorCode::kInvalidBuffer,
          "a buffer of " + std::to_string(size_bytes) + " bytes at " + AddressText(pointer) +
              " lies where no memory is mapped, from " + AddressText(hole) + " on"};
}

// Returns true if `piece` is the mapping that the region was made for, another one at its
// addresses, or, where the vendor tells of all that was reserved together, one of those in it.
bool IsMappingOf(const OwnRegion& region, const gpu::PointerInfo& info,
                 const gpu::MemoryPiece& piece) {
  const bool is_all = piece.begin <= region.base && piece.end >= region.base + region.size_bytes;
  return piece.is_mapping && info.base == region.base && info.size_bytes == region.size_bytes &&
         (!is_all || std::max(info.device, 0) == region.device);
}

Status NotKnown(const void* pointer, const Status& failure) {
  return {ErrorCode::kInvalidBuffer, "whether there is device memory at " + AddressText(pointer) +
                                         " is not known: " + failure.message()};
}

}  // namespace

Status AdoptedMemory::LookAt(const void* pointer, uint64_t size_bytes) {
  std::lock_guard lock(state_.mutex);
  const auto* const address = static_cast<const std::byte*>(pointer);
  const gpu::PointerInfo info = backend()->Identify(pointer);
  earlier_looks_ = looks_;
  if (const OwnRegion region = state_.regions.Around(pointer); region) {
    if (!region.adopted) {
      return region.by_stream ? CheckEnd(region, pointer, size_bytes)
                              : Status();  // another thread was here
    }
    Adopted& adopted = adopted_.at(region.base);
    const StatusOr<bool> is_still_there = IsStillThere(adopted, pointer, info);
    if (!is_still_there.ok()) {
      return NotKnown(pointer, is_still_there.status());
    }
    if (*is_still_there) {
      adopted.last_look = ++looks_;
      adopted.seen = pointer;
      return CheckAll(adopted, pointer, size_bytes);
    }
    if (adopted.is_mapped && info.kind == gpu::PointerKind::kUnknown && !IsReadable(pointer)) {
      return NotMapped(pointer, pointer, size_bytes);
    }
    if (!IsDeviceOnly(info)) {
      NoteGone(&adopted);
      if (info.kind != gpu::PointerKind::kUnknown || IsReadable(pointer)) {
        WithdrawBetween(address, address + 1);  // CPUs reach what is there now
        return {};
      }
      return {ErrorCode::kInvalidBuffer,
              "the buffer lies in device memory (" + RangeText(region) +
                  ") that the program has freed since it was last used here"};
    }
  }
  if (!IsDeviceOnly(info)) {
    if (info.kind != gpu::PointerKind::kUnknown || state_.readable.Contains(pointer)) {
      return {};
    }
    return !info.failure.ok()
               ? NotKnown(pointer, info.failure)
               : Status(ErrorCode::kInvalidBuffer,
                        "there is no memory at " + AddressText(pointer) + " that CPUs reach, or " +
                            std::string(backend()->name()) +
                            " knows: was it freed, or is it another process's?");
  }
  FERRY_RETURN_IF_ERROR(AdoptAnew(pointer, info));
  return CheckAll(adopted_.at(static_cast<const std::byte*>(info.base)), pointer, size_bytes);
}

// Fails unless device memory covers the buffer, which begins in `first`, to its end: one
// allocation, or any number of mappings side by side.
Status AdoptedMemory::CheckAll(const Adopted& first, const void* pointer, uint64_t size_bytes) {
  if (!first.is_mapped) {
    return CheckEnd(first.region, pointer, size_bytes);
  }
  const auto* at = static_cast<const std::byte*>(pointer);
  const std::byte* const end = at + size_bytes;
  while (at < end) {
    const gpu::PointerInfo info = backend()->Identify(at);
    if (!info.failure.ok()) {
      return NotKnown(at, info.failure);
    }
    if (!IsDeviceOnly(info)) {
      return NotMapped(at, pointer, size_bytes);
    }
    const StatusOr<gpu::MemoryPiece> piece = backend()->PieceAround(at, info);
    if (!piece.ok()) {
      return NotKnown(at, piece.status());
    }
    if (!piece->is_mapping) {
      return NotMapped(at, pointer, size_bytes);
    }
    FERRY_RETURN_IF_ERROR(AdoptUnlessKnown(at, info, *piece));
    at = std::max(at + 1, piece->end);
  }
  return {};
}

// A mapping that a buffer runs on into, so that what goes by IsByStream knows any part of it.
Status AdoptedMemory::AdoptUnlessKnown(const void* pointer, const gpu::PointerInfo& info,
                                       const gpu::MemoryPiece& piece) {
  if (const auto found = adopted_.find(static_cast<const std::byte*>(info.base));
      found != adopted_.end() && found->second.is_mapped && !found->second.is_gone &&
      IsMappingOf(found->second.region, info, piece)) {
    found->second.last_look = ++looks_;
    found->second.seen = pointer;
    return {};
  }
  return AdoptAnew(pointer, info);
}

Status AdoptedMemory::AdoptAnew(const void* pointer, const gpu::PointerInfo& info) {
  auto* const base = static_cast<const std::byte*>(info.base);
  WithdrawBetween(base, base + std::max<uint64_t>(info.size_bytes, 1));
  MakeRoom();
  return Adopt(pointer, info);
}

// Other processes cannot map what vendors export no handle of: memory of pools, of cuMemCreate, and
// what this process has imported itself.
Status AdoptedMemory::Adopt(const void* pointer, const gpu::PointerInfo& info) {
  const StatusOr<gpu::MemoryPiece> piece = backend()->PieceAround(pointer, info);
  if (!piece.ok()) {
    return NotKnown(pointer, piece.status());
  }
  Adopted adopted;
  adopted.is_mapped = piece->is_mapping;
  adopted.seen = pointer;
  adopted.allocation_id = info.allocation_id;
  adopted.last_look = ++looks_;
  OwnRegion& region = adopted.region;
  region = {.base = static_cast<std::byte*>(info.base),
            .size_bytes = info.size_bytes,
            .id = state_.announcer.NewNumber(),
            .device = std::max(info.device, 0),
            .by_stream = true,
            .adopted = true};
  StatusOr<gpu::IpcHandle> handle = adopted.is_mapped
                                        ? Status(ErrorCode::kUnsupported, "mapped by the program")
                                        : backend()->ExportIpc(info.base);
  const Status announced =
      handle.ok() ? state_.announcer.AnnounceDevice(*backend(), &region, *handle, info.direct)
                  : handle.status();
  if (announced.code() == ErrorCode::kDaemonDied) {
    return announced;
  }
  if (announced.ok()) {
    adopted.handle = std::move(*handle);
    adopted.handle.fd.Reset();
  } else {
    region.hidden = true;
  }
  state_.regions.Add(region);
  adopted_[region.base] = std::move(adopted);
  return {};
}

// A driver that fails has not said that it is gone.
StatusOr<bool> AdoptedMemory::IsStillThere(const Adopted& adopted, const void* pointer,
                                           const gpu::PointerInfo& info) {
  FERRY_RETURN_IF_ERROR(info.failure);
  if (!IsDeviceOnly(info) || adopted.is_gone || info.base != adopted.region.base ||
      info.size_bytes != adopted.region.size_bytes) {
    return false;
  }
  if (adopted.is_mapped) {
    const StatusOr<gpu::MemoryPiece> piece = backend()->PieceAround(pointer, info);
    FERRY_RETURN_IF_ERROR(piece.status());
    return IsMappingOf(adopted.region, info, *piece);
  }
  if (info.allocation_id != adopted.allocation_id) {
    return false;
  }
  if (info.allocation_id != 0 || adopted.region.hidden) {
    return true;
  }
  const StatusOr<gpu::IpcHandle> handle = backend()->ExportIpc(info.base);
  if (handle.status().code() == ErrorCode::kSystem) {
    return handle.status();
  }
  return handle.ok() && handle->opaque == adopted.handle.opaque;
}

// Looks at the memory that has not been used for longest, and withdraws it if it was freed.
void AdoptedMemory::WithdrawFreed(size_t most_looks) {
  std::vector<Adopted*> oldest;
  for (auto& [base, adopted] : adopted_) {
    if (!adopted.is_gone) {
      oldest.push_back(&adopted);
    }
  }
  const size_t looks = std::min(most_looks, oldest.size());
  std::partial_sort(oldest.begin(), oldest.begin() + static_cast<ptrdiff_t>(looks), oldest.end(),
                    [](const Adopted* a, const Adopted* b) { return a->last_look < b->last_look; });
  oldest.resize(looks);
  for (Adopted* const adopted : oldest) {
    const StatusOr<bool> is_still_there =
        IsStillThere(*adopted, adopted->seen, backend()->Identify(adopted->seen));
    if (is_still_there.ok() && !*is_still_there) {
      NoteGone(adopted);
    }
  }
}

// Makes room for one more adopted region. Regions that a rank or a request may still name stay, and
// so do the mappings of the buffer that is looked at, however many they are.
void AdoptedMemory::MakeRoom() {
  WithdrawFreed(kLooksAtOthers);
  if (adopted_.size() < kMostAdopted + (looks_ - earlier_looks_)) {
    return;
  }
  WithdrawFreed(kMostAdopted);
  std::vector<uint64_t> looks;
  for (const auto& [base, adopted] : adopted_) {
    looks.push_back(adopted.last_look);
  }
  std::nth_element(looks.begin(), looks.begin() + kMostAdopted / 4, looks.end());
  const uint64_t last = looks[kMostAdopted / 4];
  for (auto next = adopted_.begin(); next != adopted_.end();) {
    const Adopted& adopted = next->second;
    const bool stays =
        adopted.last_look >= last || adopted.last_look > earlier_looks_ ||
        (!adopted.is_gone && (adopted.is_located ||
                              (holds_ && holds_(adopted.region.base, adopted.region.size_bytes))));
    if (!stays) {
      Withdraw(adopted);
    }
    next = stays ? std::next(next) : adopted_.erase(next);
  }
}

// Withdraws the memory, so that no other process reaches it. It stays in the table, so that later
// calls which name it get an error.
void AdoptedMemory::NoteGone(Adopted* adopted) {
  if (adopted->is_gone) {
    return;
  }
  Withdraw(*adopted);
  adopted->is_gone = true;
  adopted->region.hidden = true;
  state_.regions.Add(adopted->region);
}

// All that begins or ends there, or lies around.
void AdoptedMemory::WithdrawBetween(const std::byte* begin, const std::byte* end) {
  auto next = adopted_.lower_bound(begin);
  if (next != adopted_.begin() &&
      std::prev(next)->first + std::prev(next)->second.region.size_bytes > begin) {
    --next;
  }
  while (next != adopted_.end() && next->first < end) {
    Withdraw(next->second);
    next = adopted_.erase(next);
  }
}

// A dead daemon has let go of it already.
void AdoptedMemory::Withdraw(const Adopted& adopted) {
  if (!adopted.region.hidden) {
    (void)state_.announcer.End(adopted.region.id, adopted.region.size_bytes);
  }
  state_.regions.Remove(adopted.region.id);
}

void AdoptedMemory::NoteLocated(const void* pointer, uint64_t size_bytes) {
  std::lock_guard lock(state_.mutex);
  const auto* at = static_cast<const std::byte*>(pointer);
  const std::byte* const end = at + std::max<uint64_t>(size_bytes, 1);
  for (OwnRegion region = state_.regions.Around(at); region.adopted && at < end;
       region = state_.regions.Around(at)) {
    adopted_.at(region.base).is_located = true;
    at = region.base + region.size_bytes;
  }
}

}  // namespace ferry::client
