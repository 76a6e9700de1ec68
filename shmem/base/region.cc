#include "shmem/base/region.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

#include "shmem/base/message_contexts.h"
#include "shmem/base/settings.h"

namespace ferry::shmem {
namespace {

using client::Completion;
using client::FrontEnd;
using client::Message;

constexpr int kGatherTag = 1;
constexpr int kSpreadTag = 2;

Status EndOf(FrontEnd* front_end, ErrorCode started, const Completion& completion) {
  const ErrorCode error = started != ErrorCode::kOk ? started : completion.error;
  return error == ErrorCode::kOk ? Status() : front_end->peers->Explain(error);
}

Status SendTo(FrontEnd* front_end, int pe, int tag, const void* data, size_t size_bytes) {
  Completion completion;
  const ErrorCode started = front_end->messages->Send({.buffer = const_cast<void*>(data),
                                                       .size_bytes = size_bytes,
                                                       .peer = pe,
                                                       .tag = tag,
                                                       .context = kExchangeContext},
                                                      &completion);
  return EndOf(front_end, started, completion);
}

Status ReceiveFrom(FrontEnd* front_end, int pe, int tag, void* data, size_t size_bytes) {
  Completion completion;
  const ErrorCode started = front_end->messages->Receive({.buffer = data,
                                                          .size_bytes = size_bytes,
                                                          .peer = pe,
                                                          .tag = tag,
                                                          .context = kExchangeContext},
                                                         &completion);
  return EndOf(front_end, started, completion);
}

// Returns ok if addresses in a mapping of a region are aligned where its offsets are.
Status CheckAlignment(const std::byte* base) {
  static_assert(kHeapAlignment <= shm::kMostMappingAlignment && kHeapOffset % kHeapAlignment == 0);
  return reinterpret_cast<uintptr_t>(base) % kHeapAlignment == 0
             ? Status()
             : Status(ErrorCode::kOutOfMemory,
                      "the symmetric heap of a PE does not fit into what is left of this process's "
                      "addresses: raise their limit (ulimit -v), or lower SHMEM_SYMMETRIC_SIZE");
}

std::string ProgramsHeapText(uint64_t bytes) {
  return bytes == 0 ? "no memory" : std::to_string(bytes) + " bytes";
}

Status CompareProgramsHeaps(uint32_t pe, uint64_t theirs, uint64_t own) {
  return theirs == own ? Status()
                       : Status(ErrorCode::kInvalidArgument,
                                "PE " + std::to_string(pe) + " has named " +
                                    ProgramsHeapText(theirs) + " by shmemx_heap_create, this one " +
                                    ProgramsHeapText(own) + ": all PEs must name as much");
}

}  // namespace

Status ExchangeByMessages(FrontEnd* front_end, const void* own, size_t size_bytes, void* all) {
  const auto size = static_cast<int>(front_end->size());
  const auto self = static_cast<int>(front_end->rank());
  auto* const blocks = static_cast<std::byte*>(all);
  std::memcpy(blocks + static_cast<size_t>(self) * size_bytes, own, size_bytes);
  if (self != 0) {
    FERRY_RETURN_IF_ERROR(SendTo(front_end, 0, kGatherTag, own, size_bytes));
    return ReceiveFrom(front_end, 0, kSpreadTag, all, size_bytes * static_cast<size_t>(size));
  }
  for (int pe = 1; pe < size; ++pe) {
    FERRY_RETURN_IF_ERROR(ReceiveFrom(front_end, pe, kGatherTag,
                                      blocks + static_cast<size_t>(pe) * size_bytes, size_bytes));
  }
  for (int pe = 1; pe < size; ++pe) {
    FERRY_RETURN_IF_ERROR(
        SendTo(front_end, pe, kSpreadTag, all, size_bytes * static_cast<size_t>(size)));
  }
  return {};
}

StatusOr<std::unique_ptr<Region>> Region::Make(FrontEnd* front_end, uint64_t heap_bytes) {
  std::unique_ptr<Region> region(new Region(front_end, heap_bytes));
  const uint64_t size_bytes = kHeapOffset + heap_bytes;
  if (size_bytes > MachineBytes()) {
    return Status(ErrorCode::kConfiguration,
                  "a symmetric heap of " + std::to_string(heap_bytes) +
                      " bytes for each PE is more than this machine's memory of " +
                      std::to_string(MachineBytes()) + ": lower SHMEM_SYMMETRIC_SIZE");
  }
  StatusOr<UniqueFd> fd = shm::CreateSegment("ferry-shmem", size_bytes);
  FERRY_RETURN_IF_ERROR(fd.status());
  StatusOr<shm::Mapping> mapping = shm::MapSegment(fd->get(), 0);
  FERRY_RETURN_IF_ERROR(mapping.status());
  region->mapping_ = std::move(*mapping);
  FERRY_RETURN_IF_ERROR(CheckAlignment(region->base()));
  region->system_ = client::OffsetAllocator(kSystemBytes);
  region->place().heap_bytes = heap_bytes;
  FERRY_RETURN_IF_ERROR(
      front_end->memory->ShareMemory(fd->get(), region->base(), region->mapping_.size_bytes()));
  return region;
}

Status Region::MeetOthers() {
  const auto size = static_cast<size_t>(front_end_->size());
  // A PE's description of its part, from which the others map it.
  struct Offer {
    shm::Location where;
    uint64_t size_bytes;
    uint64_t is_checking;
    uint64_t programs_heap_bytes;
  };
  const Offer own{front_end_->one_sided->Locate(base(), 1), mapping_.size_bytes(),
                  is_checking_ ? 1U : 0U, programs_heap_bytes_};
  std::vector<Offer> offers(size);
  FERRY_RETURN_IF_ERROR(ExchangeByMessages(front_end_, &own, sizeof(own), offers.data()));
  is_checking_ = offers[0].is_checking != 0;
  bases_.assign(size, nullptr);
  bases_[front_end_->rank()] = base();
  for (uint32_t pe = 0; pe < size; ++pe) {
    numbers_.push_back(offers[pe].where.region);
    if (offers[pe].size_bytes != own.size_bytes) {
      return {ErrorCode::kConfiguration, "PE " + std::to_string(pe) + " has a symmetric heap of " +
                                             std::to_string(offers[pe].size_bytes - kHeapOffset) +
                                             " bytes, this one of " + std::to_string(heap_bytes_) +
                                             ": give all of them one SHMEM_SYMMETRIC_SIZE"};
    }
    FERRY_RETURN_IF_ERROR(
        CompareProgramsHeaps(pe, offers[pe].programs_heap_bytes, programs_heap_bytes_));
    const bool is_local = front_end_->NodeOf(pe) == front_end_->NodeOf(front_end_->rank());
    if (is_local && pe != front_end_->rank()) {
      StatusOr<std::shared_ptr<std::byte>> mapped =
          front_end_->peers->MapPeer(pe, offers[pe].where, offers[pe].size_bytes);
      FERRY_RETURN_IF_ERROR(mapped.status());
      bases_[pe] = mapped->get();
      FERRY_RETURN_IF_ERROR(CheckAlignment(bases_[pe]));
      mapped_.push_back(std::move(*mapped));
    }
  }
  return {};
}

Status Region::End() {
  FERRY_RETURN_IF_ERROR(front_end_->memory->UnshareMemory(base()));
  mapped_.clear();
  bases_.clear();
  numbers_.clear();
  mapping_ = {};
  return {};
}

uint64_t Region::AllocateSystem(size_t size_bytes) {
  std::lock_guard lock(mutex_);
  const uint64_t offset = system_.Allocate(size_bytes);
  return offset == client::OffsetAllocator::kNone ? 0 : kPlaceBytes + offset;
}

// Gives whole pages of the kernel back, so that they are zero the next time; clears the rest.
void Region::FreeSystem(uint64_t offset, size_t size_bytes) {
  std::lock_guard lock(mutex_);
  std::byte* const begin = base() + offset;
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first = (offset + page_bytes - 1) / page_bytes * page_bytes;
  const uint64_t end = (offset + size_bytes) / page_bytes * page_bytes;
  if (first < end && madvise(base() + first, end - first, MADV_REMOVE) == 0) {
    std::memset(begin, 0, first - offset);
    std::memset(base() + end, 0, offset + size_bytes - end);
  } else {
    std::memset(begin, 0, size_bytes);
  }
  (void)system_.Free(offset - kPlaceBytes);
}

}  // namespace ferry::shmem
