#include "shmem/rma/call_comparison.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "shmem/base/fail.h"
#include "shmem/base/pieces.h"
#include "shmem/rma/checks.h"
#include "shmem/rma/reach.h"

namespace ferry::shmem {
namespace {

// Where symmetric memory begins, for all PEs alike.
struct SymmetricPlace {
  // A heap is kFirstHeap and its number (Segment::heap).
  enum Segment : uint64_t { kNowhere, kFirstHeap, kFirstStatic = kFirstHeap + 1 + kMostSpaces };
  uint64_t segment;
  uint64_t offset;

  bool operator==(const SymmetricPlace&) const = default;
  bool is_nowhere() const { return segment == kNowhere; }
  std::string Text() const {
    return "offset " + std::to_string(offset) + " of " +
           (segment < kFirstStatic ? NameOfHeap(segment - kFirstHeap)
                                   : job.statics[segment - kFirstStatic].name);
  }
  static std::string NameOfHeap(uint64_t heap) {
    const auto* const space =
        heap == 0 ? nullptr : job.spaces[heap - 1].load(std::memory_order_acquire);
    return space == nullptr ? HeapName(static_cast<int>(heap)) : space->name;
  }
};

// Without what says that a queue makes the call: some PEs may enqueue a collective, and others call
// it.
std::string_view NameOf(std::string_view call) {
  constexpr std::string_view kOnQueue = "_on_queue";
  if (call.ends_with(kOnQueue)) {
    call.remove_suffix(kOnQueue.size());
  }
  return call.substr(std::min(call.find('_'), call.size()));  // behind shmem and shmemx
}

// The record of a call that PEs exchange.
struct CallRecord {
  char call[56];
  uint64_t amount;
  uint64_t counts_elements;
  int64_t root;
  int64_t dest_stride;
  int64_t source_stride;
  SymmetricPlace dest;
  SymmetricPlace source;

  bool IsLike(const CallRecord& other) const {
    return NameOf(call) == NameOf(other.call) && amount == other.amount && root == other.root &&
           dest_stride == other.dest_stride && source_stride == other.source_stride;
  }
  std::string Text() const {
    std::string text = call;
    if (amount != 0) {
      text += " of " + std::to_string(amount) + (counts_elements != 0 ? " element" : " byte") +
              (amount == 1 ? "" : "s");
    }
    if (root >= 0) {
      text += " from root " + std::to_string(root);
    }
    if (dest_stride != 0) {
      text +=
          " with strides " + std::to_string(dest_stride) + " and " + std::to_string(source_stride);
    }
    return text;
  }
};

SymmetricPlace PlaceOf(const void* address, size_t bytes) {
  const Segment* const segment = bytes == 0 ? nullptr : job.FindSegment(address, bytes);
  if (segment == nullptr) {
    return {SymmetricPlace::kNowhere, 0};
  }
  const uint64_t number =
      segment->is_heap()
          ? SymmetricPlace::kFirstHeap + static_cast<uint64_t>(segment->heap)
          : SymmetricPlace::kFirstStatic + static_cast<uint64_t>(segment - job.statics.data());
  return {number, static_cast<uint64_t>(static_cast<const std::byte*>(address) - segment->base)};
}

CallRecord RecordOf(const char* call, const CollectiveCall& own) {
  CallRecord record{};
  std::snprintf(record.call, sizeof(record.call), "%s", call);
  record.amount = own.amount;
  record.counts_elements = own.counts_elements ? 1 : 0;
  record.root = own.root;
  record.dest_stride = own.dest_stride;
  record.source_stride = own.source_stride;
  record.dest = PlaceOf(own.dest, own.dest_bytes);
  record.source = PlaceOf(own.source, own.source_bytes);
  return record;
}

void CheckMemory(const char* call, const CollectiveCall& own) {
  CheckSymmetric(call, "dest", own.dest, own.dest_bytes);
  CheckSymmetric(call, "source", own.source, own.source_bytes);
  if (own.dest != own.source || !own.may_be_in_place) {
    CheckApart(call, {"dest", own.dest, own.dest_bytes}, {"source", own.source, own.source_bytes});
  }
}

void ComparePlaces(const char* call, int pe, const char* argument, const SymmetricPlace& theirs,
                   const SymmetricPlace& own) {
  if (theirs != own && !theirs.is_nowhere() && !own.is_nowhere()) {
    Fail(call, "PE " + std::to_string(pe) + " has passed " + theirs.Text() + " as " + argument +
                   ", this one " + own.Text() + ": all PEs must pass the same symmetric memory");
  }
}

}  // namespace

void CompareCalls(const char* call, Assembly& assembly, const CollectiveCall& own) {
  CheckMemory(call, own);
  const CallRecord record = RecordOf(call, own);
  std::vector<CallRecord> all(static_cast<size_t>(assembly.size()));
  assembly.Gather(call, &record, sizeof(record), all.data());
  for (int member = 0; member < assembly.size(); ++member) {
    const CallRecord& theirs = all[static_cast<size_t>(member)];
    const int pe = assembly.PeOf(member);
    if (!theirs.IsLike(record)) {
      Fail(call, "PE " + std::to_string(pe) + " is in " + theirs.Text() + ", this one in " +
                     record.Text() +
                     ": all PEs of a team must make the same calls, in the same order");
    }
    ComparePlaces(call, pe, "dest", theirs.dest, record.dest);
    ComparePlaces(call, pe, "source", theirs.source, record.source);
  }
}

}  // namespace ferry::shmem
