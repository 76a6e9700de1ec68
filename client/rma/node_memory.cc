#include "client/rma/node_memory.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "client/memory/failure_words.h"
#include "common/per_thread.h"
#include "common/status.h"
#include "shm/word_copy.h"

namespace ferry::client {
namespace {

// How many of a rank's older segments are looked at when another one is mapped.
constexpr size_t kLooksAtOthers = 4;

}  // namespace

struct NodeMemory::Readers {
  std::mutex mutex;
  std::vector<Reader*> all;

  static Readers& OfProcess() {
    static Readers& readers = *new Readers;  // threads may end while the process does
    return readers;
  }
  bool AnyIsInside() {
    const std::lock_guard lock(mutex);
    return std::any_of(all.begin(), all.end(), [](const Reader* reader) {
      return reader->is_inside.load(std::memory_order_acquire);  // Pairs with ~Use.
    });
  }
};

NodeMemory::Reader::Reader() {
  Readers& readers = Readers::OfProcess();
  const std::lock_guard lock(readers.mutex);
  readers.all.push_back(this);
}

NodeMemory::Reader::~Reader() {
  Readers& readers = Readers::OfProcess();
  const std::lock_guard lock(readers.mutex);
  std::erase(readers.all, this);
}

NodeMemory::Reader& NodeMemory::OfThisThread() { return ferry::OfThisThread<Reader>(); }

NodeMemory::NodeMemory(const Progress* progress, const Memory* memory, PeerMemory* peer_memory)
    : own_rank_(progress->view().rank),
      progress_(*progress),
      peers_(progress->peers()),
      memory_(*memory),
      peer_memory_(*peer_memory),
      of_(std::make_unique<std::atomic<const Segments*>[]>(peers_.rank_of_local.size())),
      current_(peers_.rank_of_local.size()) {}

NodeMemory::~NodeMemory() = default;

NodeMemory::Reached NodeMemory::Refuse(ErrorCode error, std::string words) {
  return {.error = FailureWords::Tell(error, std::move(words))};
}

NodeMemory::Reached NodeMemory::FindSlowly(uint32_t rank, uint32_t segment, uint64_t offset,
                                           uint64_t size_bytes) {
  if (segment == 0) {  // private memory, which no place names
    return Refuse(ErrorCode::kInvalidBuffer);
  }
  if (rank == own_rank_) {
    return FindOwn(segment, offset, size_bytes);
  }
  StatusOr<PeerMemory::ForGood> mapped = peer_memory_.MapForGood(rank, {segment, 0, 0}, 0);
  if (!mapped.ok()) {
    // The words for kInvalidBuffer speak of regions, which callers call otherwise.
    const bool is_told = mapped.status().code() != ErrorCode::kInvalidBuffer;
    return Refuse(mapped.status().code(), is_told ? mapped.status().message() : std::string());
  }
  const Segment found{segment, mapped->by_stream, mapped->region_bytes, mapped->memory};
  Add(rank, found);
  return found.At(offset, size_bytes);
}

// The region table is the list, and tells which regions are freed.
NodeMemory::Reached NodeMemory::FindOwn(uint32_t segment, uint64_t offset,
                                        uint64_t size_bytes) const {
  const OwnRegion region = memory_.regions().ById(segment);
  if (!region || region.lent || region.hidden || offset > region.size_bytes ||
      size_bytes > region.size_bytes - offset) {
    return Refuse(ErrorCode::kInvalidBuffer);
  }
  return {ErrorCode::kOk, region.base + offset, region.by_stream};
}

void NodeMemory::Add(uint32_t rank, Segment segment) {
  const std::lock_guard lock(mutex_);
  RetireEnded();
  RetireWithdrawn(rank);
  const uint32_t lane = LaneOf(rank);
  Segments longer = current_[lane] == nullptr ? Segments() : *current_[lane];
  const bool is_known = std::any_of(longer.begin(), longer.end(), [&](const Segment& other) {
    return other.id == segment.id;  // another thread was first
  });
  if (!is_known) {
    longer.push_back(std::move(segment));
    Replace(lane, std::move(longer));
  }
}

// The caller of this function, and of those below, holds the lock.
void NodeMemory::Replace(uint32_t lane, Segments segments) {
  std::unique_ptr<const Segments> next;
  if (!segments.empty()) {
    next = std::make_unique<const Segments>(std::move(segments));
  }
  of_[lane].store(next.get(), std::memory_order_release);  // Pairs with Find.
  if (current_[lane] != nullptr) {
    retired_.push_back(std::move(current_[lane]));
    has_retired_.store(true, std::memory_order_relaxed);
  }
  current_[lane] = std::move(next);
}

// Returns true if the rank has left or died, so that its memory has no owner any more. A cut link
// ends no rank of this node.
bool NodeMemory::HasEnded(uint32_t rank) const {
  return progress_.poison() == ErrorCode::kOk && progress_.PeerState(rank) != ErrorCode::kOk;
}

void NodeMemory::RetireEnded() {
  for (uint32_t lane = 0; lane < current_.size(); ++lane) {
    if (current_[lane] != nullptr && HasEnded(peers_.rank_of_local[lane])) {
      Replace(lane, {});
    }
  }
}

// Looks at the segments that were mapped first. Those that stay go to the end of the list, and are
// looked at again later.
void NodeMemory::RetireWithdrawn(uint32_t rank) {
  const uint32_t lane = LaneOf(rank);
  if (current_[lane] == nullptr) {
    return;
  }
  const Segments& known = *current_[lane];
  const auto looked_at =
      known.begin() + static_cast<ptrdiff_t>(std::min(kLooksAtOthers, known.size()));
  Segments stays(looked_at, known.end());
  std::copy_if(known.begin(), looked_at, std::back_inserter(stays),
               [&](const Segment& segment) { return !peer_memory_.IsWithdrawn(rank, segment.id); });
  Replace(lane, std::move(stays));
}

void NodeMemory::DropEnded() {
  std::vector<uint32_t> ended;
  for (const uint32_t rank : peers_.rank_of_local) {
    if (rank != own_rank_ && HasEnded(rank)) {
      ended.push_back(rank);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    RetireEnded();
  }
  for (const uint32_t rank : ended) {
    peer_memory_.Forget(rank);
  }
  Reap();
}

// Frees the retired lists if no reader is inside, since a reader that comes now finds newer ones.
// Otherwise a later call frees them.
void NodeMemory::Reap() {
  std::vector<std::unique_ptr<const Segments>> unused;
  const std::lock_guard lock(mutex_);
  if (progress_.threads()) {
    // Orders what has been stored in of_ before the looks at the readers (Use is the other side).
    if (shm::IsLightFenceEnabled() ? !shm::HeavyFence() : (shm::FullFence(), false)) {
      return;
    }
    if (Readers::OfProcess().AnyIsInside()) {
      return;
    }
  }
  unused.swap(retired_);
  has_retired_.store(false, std::memory_order_relaxed);
}

ErrorCode NodeMemory::Copy(void* to, bool is_to_by_stream, const void* from, bool is_from_by_stream,
                           uint64_t size_bytes) {
  if (!is_to_by_stream && !is_from_by_stream) [[likely]] {
    shm::CopyWords(to, from, size_bytes);
    return ErrorCode::kOk;
  }
  if (size_bytes == 0) {  // then either may be null
    return ErrorCode::kOk;
  }
  const Status copied = memory_.streams()->Copy(
      to, from, size_bytes, memory_.EndsOf(to, is_to_by_stream, from, is_from_by_stream));
  return copied.ok() ? ErrorCode::kOk : FailureWords::Tell(copied.code(), copied.message());
}

// Operands, and old values, go through a buffer in ordinary memory where only streams reach them.
ErrorCode NodeMemory::Accumulate(const Reached& there, const shm::Accumulation& what,
                                 const void* operands, void* found, uint64_t count) {
  const bool lends = what.takes_operands() && memory_.IsByStream(operands);
  const bool brings = found != nullptr && memory_.IsByStream(found);
  if (!lends && !brings) [[likely]] {
    what.Apply(there.address, operands, found, count);
    return ErrorCode::kOk;
  }
  constexpr uint64_t kPieceBytes = 4096;
  std::array<std::byte, kPieceBytes> piece;
  std::array<std::byte, kPieceBytes> piece_found;
  const uint64_t size = what.element_bytes();
  for (uint64_t done = 0; done < count;) {
    const uint64_t elements = std::min(count - done, kPieceBytes / size);
    const uint64_t bytes = elements * size;
    const std::byte* from =
        what.takes_operands() ? static_cast<const std::byte*>(operands) + done * size : nullptr;
    if (lends) {
      if (const ErrorCode error = Copy(piece.data(), false, from, true, bytes);
          error != ErrorCode::kOk) {
        return error;
      }
      from = piece.data();
    }
    std::byte* const to = found == nullptr ? nullptr : static_cast<std::byte*>(found) + done * size;
    what.Apply(there.address + done * size, from, brings ? piece_found.data() : to, elements);
    if (brings) {
      if (const ErrorCode error = Copy(to, true, piece_found.data(), false, bytes);
          error != ErrorCode::kOk) {
        return error;
      }
    }
    done += elements;
  }
  return ErrorCode::kOk;
}

}  // namespace ferry::client
