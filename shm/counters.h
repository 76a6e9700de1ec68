// The statistics of one rank: the meaning of each word of SessionLayout::counters.
//
// The words lie in shared memory so that `ferryctl` and the metrics page read them without asking
// the rank. An id is a place in shared memory: it is never given a new meaning; new ones go to the
// end.
//
// Calling thread: Add by the holder of the rank's lease (one writer at a time), AddShared by any;
// reading by any. Nothing blocks; a reader may see related words at slightly different times.
#pragma once

#include <array>
#include <cstdint>

#include "shm/atomic.h"
#include "shm/layout/session_layout.h"

namespace ferry::shm {

enum class Statistic : uint32_t {
  kMessagesSent = 0,
  kMessagesReceived = 1,
  kBytesSent = 2,
  kBytesReceived = 3,
  // Two words per Path, in the order of Path: see Statistics::AddMessage.
  kPathInlineMessages = 4,
  kPathInlineBytes = 5,
  kPathCellMessages = 6,
  kPathCellBytes = 7,
  kPathHeapCopyMessages = 8,
  kPathHeapCopyBytes = 9,
  kPathProcessVmMessages = 10,
  kPathProcessVmBytes = 11,
  kPathBounceMessages = 12,
  kPathBounceBytes = 13,
  kPathRdmaMessages = 14,
  kPathRdmaBytes = 15,
  kPathStagedMessages = 16,
  kPathStagedBytes = 17,
  kPathPacketMessages = 18,
  kPathPacketBytes = 19,
  kChunksCopiedByRank = 20,
  kChunksCopiedByWorker = 21,
  kSendsQueued = 22,
  kUnexpectedMessages = 23,
  kWorkerMatches = 24,
  kLeaseHandovers = 25,
  kErrors = 26,
  kRtrs = 27,
  kWrittenMessages = 28,
  kWrittenBytes = 29,
  kOffloadCopies = 30,
  kOffloadBytes = 31,
  // Messages of matched pairs, counted at their send's end, by their mover.
  kMatchedByRank = 32,
  kMatchedByStream = 33,
  kMatchedByDaemon = 34,
  kMatchedByNic = 35,
  // Requests of devices through rings: taken by the daemon; of those, refused or failed.
  kRingRequests = 36,
  kRingErrors = 37,
  // One-sided operations in memory of other nodes' ranks, by piece, and the bytes that they put or
  // get.
  kOneSidedOperations = 38,
  kOneSidedBytes = 39,
  // Direct links, counted by the rank's own core. kLinksOpen is how many there are now.
  kLinkMessagesSent = 40,
  kLinkMessagesReceived = 41,
  kLinkBytesSent = 42,
  kLinkBytesReceived = 43,
  kLinksOpen = 44,
  kLinkErrors = 45,
};

inline constexpr uint32_t kStatisticCount = 46;
static_assert(kStatisticCount <= kCounterWords,
              "SessionLayout::counters is full: bump kLayoutVersion");

struct StatisticLabel {
  Statistic id;
  const char*
      name;  // as metrics are named: snake_case, the unit last where it is not a plain count
  const char* unit;
  const char* help;
};

// In the order of the ids: entry i describes word i.
const std::array<StatisticLabel, kStatisticCount>& StatisticLabels();

// How the data of a message travelled.
enum class Path : uint32_t {
  kInline = 0,     // in the descriptor
  kCell = 1,       // through a slab cell of the lane
  kHeapCopy = 2,   // same node, from a heap: memcpy by chunks
  kProcessVm = 3,  // same node, from private memory: process_vm_readv or writev
  kBounce = 4,     // other node: into a heap block that stands in for private memory
  kRdma = 5,       // other node: straight between the buffers
  kStaged = 6,     // other node: through pinned staging memory
  kPacket = 7,     // other node: with the packet that announces it
};

class Statistics {
 public:
  Statistics() = default;
  explicit Statistics(uint64_t* words) : words_(words) {}

  // Adds to a counter. For the one writer (the lease holder): a plain load and store, both relaxed.
  void Add(Statistic id, uint64_t n = 1) {
    uint64_t& word = Word(id);
    StoreRelaxed(word, LoadRelaxed(word) + n);
  }
  // Stores a number that is no sum: how many there are now. For the one writer, as Add.
  void Store(Statistic id, uint64_t n) { StoreRelaxed(Word(id), n); }
  // Adds to a counter, for threads without the lease. An id has either all its adds through this
  // one, or none.
  void AddShared(Statistic id, uint64_t n = 1) { FetchAdd(Word(id), n, std::memory_order_relaxed); }
  // Counts one message of `size_bytes` that went by `path` (as Add).
  void AddMessage(Path path, uint64_t size_bytes) {
    Add(MessagesOf(path));
    Add(BytesOf(path), size_bytes);
  }
  uint64_t Read(Statistic id) const { return LoadRelaxed(words_[static_cast<uint32_t>(id)]); }

  static constexpr Statistic MessagesOf(Path path) {
    return static_cast<Statistic>(static_cast<uint32_t>(Statistic::kPathInlineMessages) +
                                  2 * static_cast<uint32_t>(path));
  }
  static constexpr Statistic BytesOf(Path path) {
    return static_cast<Statistic>(static_cast<uint32_t>(MessagesOf(path)) + 1);
  }

 private:
  uint64_t& Word(Statistic id) { return words_[static_cast<uint32_t>(id)]; }

  uint64_t* words_ = nullptr;
};

// Sums over several ranks.
struct Tally {
  std::array<uint64_t, kStatisticCount> values{};

  void Add(const Statistics& statistics) {
    for (uint32_t i = 0; i < kStatisticCount; ++i) {
      values[i] += statistics.Read(static_cast<Statistic>(i));
    }
  }
  void Add(const Tally& other) {
    for (uint32_t i = 0; i < kStatisticCount; ++i) {
      values[i] += other.values[i];
    }
  }
  uint64_t Read(Statistic id) const { return values[static_cast<uint32_t>(id)]; }
};

static_assert(Statistics::BytesOf(Path::kPacket) == Statistic::kPathPacketBytes);

}  // namespace ferry::shm
