#include "shmem/rma/checks.h"

#include <algorithm>

#include "common/counted.h"
#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/pieces.h"

namespace ferry::shmem {
namespace {

std::string PlaceText(const MemoryArgument& bytes) {
  return Counted(bytes.size, "byte") + " from " + AddressText(bytes.address) + " on (" +
         bytes.name + ")";
}

// Blocks in ascending order. Strides that go backwards, or into the block before, are none of
// ours to judge.
struct Blocks {
  const std::byte* first;
  ptrdiff_t stride_bytes;

  bool ascend(const Stride& stride) const {
    return stride.blocks == 1 || stride_bytes >= static_cast<ptrdiff_t>(stride.block_bytes);
  }
  const std::byte* At(size_t i) const { return first + stride_bytes * static_cast<ptrdiff_t>(i); }
};

// Returns true if a block of `one` shares a byte with a block of `other`: walks along both.
bool DoMeet(const Blocks& one, const Blocks& other, const Stride& stride) {
  size_t i = 0;
  size_t j = 0;
  while (i < stride.blocks && j < stride.blocks) {
    if (one.At(i) + stride.block_bytes <= other.At(j)) {
      ++i;
    } else if (other.At(j) + stride.block_bytes <= one.At(i)) {
      ++j;
    } else {
      return true;
    }
  }
  return false;
}

}  // namespace

void CheckGiven(const char* call, const MemoryArgument& bytes) {
  const Segment* const segment = job.FindSegment(bytes.address, 1);
  if (bytes.size == 0 || segment == nullptr || !segment->is_heap() || segment->is_programs) {
    return;
  }
  const auto offset = static_cast<uint64_t>(bytes.begin() - segment->base);
  if (const std::string fault = FindPieceFault(segment->heap, offset, bytes.size); !fault.empty()) {
    Fail(call, PlaceText(bytes) + " " + fault);
  }
}

void CheckApart(const char* call, const MemoryArgument& one, const MemoryArgument& other) {
  const std::byte* const begin = std::max(one.begin(), other.begin());
  const std::byte* const end = std::min(one.end(), other.end());
  if (one.size != 0 && other.size != 0 && begin < end) {
    Fail(call, PlaceText(one) + " and " + PlaceText(other) + " have " +
                   Counted(static_cast<size_t>(end - begin), "byte") +
                   " in common: they must not overlap");
  }
}

void CheckMove(const char* call, const PeAddress& there, const MemoryArgument& local) {
  CheckGiven(call, local);
  if (!there.is_remote()) {
    CheckApart(call, {"the other PE's memory", there.address(), local.size}, local);
  }
}

void CheckStridedMove(const char* call, const PeAddress& there, const char* local_name,
                      const void* local, const Stride& stride) {
  const bool is_put = local_name[0] == 's';
  const Blocks here{static_cast<const std::byte*>(local),
                    is_put ? stride.source_stride_bytes : stride.dest_stride_bytes};
  const Blocks remote{there.address(),
                      is_put ? stride.dest_stride_bytes : stride.source_stride_bytes};
  for (size_t i = 0; i < stride.blocks; ++i) {
    CheckGiven(call, {local_name, here.At(i), stride.block_bytes});
  }
  if (!there.is_remote() && here.ascend(stride) && remote.ascend(stride) &&
      DoMeet(here, remote, stride)) {
    Fail(call, "a block from " + AddressText(remote.first) +
                   " on (the other PE's memory) and one " + "from " + AddressText(local) + " on (" +
                   local_name + ") have bytes in common: they must not overlap");
  }
}

void CheckSignal(const char* call, const PeAddress& to, size_t bytes, const PeAddress& signal) {
  if (!to.is_remote() && !signal.is_remote()) {
    CheckApart(call, {"dest", to.address(), bytes},
               {"the signal's address", signal.address(), sizeof(uint64_t)});
  }
}

}  // namespace ferry::shmem
