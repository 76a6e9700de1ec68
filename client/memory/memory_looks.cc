// Memory: what a buffer is, and the program's own device memory. See memory.h.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "client/memory/memory.h"
#include "common/process_memory.h"
#include "shm/atomic.h"

namespace ferry::client {
namespace {

// Regions of the program's own device memory. More are adopted and withdrawn by turns, which takes
// a fraction of a millisecond each time.
constexpr size_t kMostAdopted = 512;
// At each adoption so many of the others are looked at, so that memory which the program has freed
// is soon free.
constexpr size_t kLooksAtOthers = 16;

std::string RangeText(const OwnRegion& region) {
  char text[64];
  std::snprintf(text, sizeof(text), " bytes at %p", static_cast<void*>(region.base));
  return std::to_string(region.size_bytes) + text;
}

bool IsDeviceOnly(const gpu::PointerInfo& info) {
  return info.kind == gpu::PointerKind::kDevice && !info.direct.cpu;
}

Status CheckEnd(const OwnRegion& region, const void* pointer, uint64_t size_bytes) {
  const auto left = static_cast<uint64_t>(region.base + region.size_bytes -
                                          static_cast<const std::byte*>(pointer));
  return size_bytes <= left
             ? Status()
             : Status(ErrorCode::kInvalidBuffer,
                      "a buffer of " + std::to_string(size_bytes) +
                          " bytes runs past the end of its device memory (" + RangeText(region) +
                          "), of which " + std::to_string(left) + " bytes are left there");
}

// Returns true if the kernel's copies between processes reach this memory.
bool IsReachedByKernel(const void* pointer) {
  std::byte byte{};
  return ReadProcessMemory(getpid(), reinterpret_cast<uint64_t>(pointer), &byte, 1) !=
         ErrorCode::kInvalidBuffer;
}

// Returns true if CPUs can read this address. Drivers map memory that CPUs read, and that the
// kernel's copies do not reach.
bool IsReadable(const void* pointer) {
  if (IsReachedByKernel(pointer)) {
    return true;
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0;
    unsigned long long end = 0;
    char mode = 0;
    const auto address = reinterpret_cast<uint64_t>(pointer);
    if (std::sscanf(line.c_str(), "%llx-%llx %c", &begin, &end, &mode) == 3 && address >= begin &&
        address < end) {
      return mode == 'r';
    }
  }
  return false;
}

std::string AddressText(const void* pointer) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", pointer);
  return text;
}

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

// ---- The vendor ---------------------------------------------------------------------------------

void Memory::Use(gpu::GpuBackend* backend) {
  all_streams_.push_back(std::make_unique<gpu::CopyStreams>(*backend));
  streams_.store(all_streams_.back().get(), std::memory_order_release);
  backend_.store(backend, std::memory_order_release);
  if (backend->is_vendors()) {
    regions_.WatchForVendor(nullptr);
  }
}

// The backend that has allocated or registered this memory.
gpu::GpuBackend* Memory::OwnerOf(const void* pointer) const {
  gpu::GpuBackend* const owner = backends_->Identify(pointer).backend;
  return owner != nullptr ? owner : backend();
}

bool Memory::HasVendor() {
  if (!regions_.addresses().MayHaveVendor()) {
    return false;
  }
  if (backend() == nullptr || !backend()->is_vendors()) {
    LookForVendor();
  }
  return backend() != nullptr && backend()->is_vendors();
}

// Libraries have been loaded, or one that is loaded may have come into use.
void Memory::LookForVendor() {
  static const void* const kNoWord = nullptr;
  std::lock_guard lock(vendor_mutex_);
  gpu::LateBackends* const late = backends_->late();
  if (late == nullptr || backend() == nullptr || backend()->is_vendors()) {
    return;
  }
  if (next_library_ == nullptr || shm::LoadRelaxed(*next_library_) != nullptr) {
    next_library_ = last_library_.Find();  // first, so that what is loaded meanwhile is seen
    late->LookForLibraries();
  }
  std::unique_ptr<gpu::GpuBackend> opened = late->TryOpen();
  gpu::GpuBackend* const found = opened.get();
  if (found != nullptr && backends_->Add(std::move(opened)).ok()) {
    return Use(found);
  }
  why_no_vendor_ = late->WhyRefused();
  const bool is_watched = late->MayOpen() || !why_no_vendor_.empty();
  regions_.WatchForVendor(is_watched                 ? nullptr
                          : next_library_ != nullptr ? next_library_
                                                     : &kNoWord);
}

// ---- Buffers ------------------------------------------------------------------------------------

bool Memory::IsPlainByLook(const void* pointer) {
  if (const OwnRegion region = regions_.Around(pointer); region) {
    return !region.by_stream;
  }
  if (malloc_heap_.Contains(pointer)) {
    return true;
  }
  const bool has_vendor = HasVendor();
  if (!regions_.addresses().MayHaveVendor()) {
    return true;
  }
  if (has_vendor) {
    const gpu::PointerInfo info = backend()->Identify(pointer);
    if (info.kind != gpu::PointerKind::kUnknown) {
      return !IsDeviceOnly(info);
    }
  }
  return IsSurelyReadable(pointer);
}

// Memory that no backend knows may be device memory that has been freed, or of a vendor without a
// backend.
bool Memory::IsSurelyReadable(const void* pointer) {
  constexpr uintptr_t kPageBytes = 4096;
  const uintptr_t page = reinterpret_cast<uintptr_t>(pointer) / kPageBytes;
  std::atomic<uintptr_t>& known = readable_[page % kReadablePages];
  if (known.load(std::memory_order_relaxed) == page) {
    return true;
  }
  const bool is_readable = IsReadable(pointer);
  if (is_readable) {
    known.store(page, std::memory_order_relaxed);
  }
  return is_readable;
}

Status Memory::LookCloser(const void* pointer, uint64_t size_bytes) {
  const OwnRegion region = regions_.Around(pointer);
  if (region && !region.adopted) {
    return region.by_stream ? CheckEnd(region, pointer, size_bytes) : Status();
  }
  if (size_bytes == 0 || (!region && malloc_heap_.Contains(pointer))) {
    return {};
  }
  const bool has_vendor = HasVendor();
  if (!regions_.addresses().MayHaveVendor()) {
    return {};
  }
  if (has_vendor) {
    return LookAtProgramsOwn(pointer, size_bytes);
  }
  if (IsSurelyReadable(pointer)) {
    return {};
  }
  std::lock_guard lock(vendor_mutex_);
  return {ErrorCode::kInvalidBuffer,
          "CPUs reach no memory at " + AddressText(pointer) +
              (why_no_vendor_.empty()
                   ? std::string("; is it a device's?")
                   : "; if it is a device's: its vendor's library cannot be used here: " +
                         why_no_vendor_)};
}

int Memory::DeviceByStream(const void* pointer) {
  if (IsPlain(pointer)) {
    return -1;
  }
  (void)LookCloser(pointer, 1);  // a call with the whole buffer says what is wrong with it
  const OwnRegion region = regions_.Around(pointer);
  return region.by_stream ? region.device : IsPlain(pointer) ? -1 : 0;
}

Status Memory::LookAtProgramsOwn(const void* pointer, uint64_t size_bytes) {
  std::lock_guard lock(mutex_);
  const auto* const address = static_cast<const std::byte*>(pointer);
  const gpu::PointerInfo info = backend()->Identify(pointer);
  earlier_looks_ = looks_;
  if (const OwnRegion region = regions_.Around(pointer); region) {
    if (!region.adopted) {
      return LookCloser(pointer, size_bytes);  // another thread was here
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
    if (info.kind != gpu::PointerKind::kUnknown || IsSurelyReadable(pointer)) {
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
Status Memory::CheckAll(const Adopted& first, const void* pointer, uint64_t size_bytes) {
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
Status Memory::AdoptUnlessKnown(const void* pointer, const gpu::PointerInfo& info,
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

Status Memory::AdoptAnew(const void* pointer, const gpu::PointerInfo& info) {
  auto* const base = static_cast<const std::byte*>(info.base);
  WithdrawBetween(base, base + std::max<uint64_t>(info.size_bytes, 1));
  MakeRoom();
  return Adopt(pointer, info);
}

shm::Location Memory::LocateForGood(const void* pointer, uint64_t size_bytes) {
  if (LookAt(pointer, size_bytes).ok() && regions_.Around(pointer).adopted) {
    std::lock_guard lock(mutex_);
    const auto* at = static_cast<const std::byte*>(pointer);
    const std::byte* const end = at + std::max<uint64_t>(size_bytes, 1);
    for (OwnRegion region = regions_.Around(at); region.adopted && at < end;
         region = regions_.Around(at)) {
      adopted_.at(region.base).is_located = true;
      at = region.base + region.size_bytes;
    }
  }
  shm::Location where = regions_.Find(pointer, size_bytes);
  if (where.region == 0 && !regions_.addresses().IsPlain(pointer) &&
      (IsByStream(pointer) || IsOutOfKernelsReach(pointer, size_bytes))) {
    where.flags |= shm::kLocationByStream;
  }
  return where;
}

// Memory that drivers allocate themselves often consists of pages that have no place in the
// kernel's lists. Managed memory may be wherever the driver has it just now.
bool Memory::IsHiddenByDriver(const void* pointer, uint64_t size_bytes) {
  if (size_bytes == 0 || regions_.Around(pointer) || malloc_heap_.Contains(pointer) ||
      !HasVendor()) {
    return false;
  }
  const gpu::PointerInfo info = backend()->Identify(pointer);
  return !info.failure.ok() ||  // it may be anything, and a bounce buffer serves for all
         info.kind == gpu::PointerKind::kManaged || info.kind == gpu::PointerKind::kDevice ||
         (info.kind == gpu::PointerKind::kPinned &&
          !(IsReachedByKernel(pointer) &&
            IsReachedByKernel(static_cast<const std::byte*>(pointer) + size_bytes - 1)));
}

// Other processes cannot map what vendors export no handle of: memory of pools, of cuMemCreate, and
// what this process has imported itself.
Status Memory::Adopt(const void* pointer, const gpu::PointerInfo& info) {
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
            .id = next_region_++,
            .device = std::max(info.device, 0),
            .by_stream = true,
            .adopted = true};
  StatusOr<gpu::IpcHandle> handle = adopted.is_mapped
                                        ? Status(ErrorCode::kUnsupported, "mapped by the program")
                                        : backend()->ExportIpc(info.base);
  const Status announced =
      handle.ok() ? AnnounceDevice(*backend(), &region, *handle, info.direct) : handle.status();
  if (announced.code() == ErrorCode::kDaemonDied) {
    return announced;
  }
  if (announced.ok()) {
    adopted.handle = std::move(*handle);
    adopted.handle.fd.Reset();
  } else {
    region.hidden = true;
  }
  regions_.Add(region);
  adopted_[region.base] = std::move(adopted);
  return {};
}

// A driver that fails has not said that it is gone.
StatusOr<bool> Memory::IsStillThere(const Adopted& adopted, const void* pointer,
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
void Memory::WithdrawFreed(size_t most_looks) {
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
void Memory::MakeRoom() {
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
void Memory::NoteGone(Adopted* adopted) {
  if (adopted->is_gone) {
    return;
  }
  Withdraw(*adopted);
  adopted->is_gone = true;
  adopted->region.hidden = true;
  regions_.Add(adopted->region);
}

// All that begins or ends there, or lies around.
void Memory::WithdrawBetween(const std::byte* begin, const std::byte* end) {
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
void Memory::Withdraw(const Adopted& adopted) {
  if (!adopted.region.hidden) {
    (void)attach_->EndRegion(adopted.region.id, adopted.region.size_bytes);
  }
  regions_.Remove(adopted.region.id);
}

}  // namespace ferry::client
