// Counting a rank's messages by size and its waits by function and length, and reading the counts
// (shm/layout/histogram_layout.h).
//
// Calling thread: CountSize by the holder of the rank's lease; CountWait by any of the rank;
// reading by any, of any process that maps the session. Nothing blocks. A rank may write anything:
// a reader copies each word once, and takes no function for another.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>

#include "shm/atomic.h"
#include "shm/layout/call_names.h"
#include "shm/layout/histogram_layout.h"

namespace ferry::shm {

// ---- Counting -----------------------------------------------------------------------------------

// The entry of HistogramLayout::sizes for such a message: an empty one is 2^64 - 1 bytes too long.
inline uint32_t SizeEntry(uint64_t size_bytes) {
  return 63 - static_cast<uint32_t>(std::countl_zero((size_bytes - 1) | 1));
}
// The entry of WaitLineLayout::counts for such a wait.
uint32_t WaitEntry(uint64_t waited_ns);

inline void CountSize(HistogramLayout& histograms, uint64_t size_bytes) {
  uint64_t& word = histograms.sizes[SizeEntry(size_bytes)];
  StoreRelaxed(word, LoadRelaxed(word) + 1);
}
// Takes a free line for a function that has none.
void CountWait(HistogramLayout& histograms, CallName name, uint64_t waited_ns);

// CallBoard finds the histograms behind its own layout only where this has said that they are
// there: once, before the first call.
void OfferHistograms(SessionLayout& session);
// Null: none are there.
HistogramLayout* HistogramsBehind(CallBoardLayout& board);

// ---- Reading ------------------------------------------------------------------------------------

// The waits of one function.
struct WaitHistogram {
  uint64_t waited_ns = 0;
  std::array<uint64_t, kWaitCounts> counts{};

  uint64_t Count() const;
};

// Sums over several ranks.
struct Histograms {
  std::array<uint64_t, kSizeCounts> sizes{};
  std::map<CallName, WaitHistogram> waits;  // kNone: of functions that found no line

  void Add(const HistogramLayout& layout);
  void AddWait(CallName name, uint64_t waited_ns);
  void Add(const Histograms& other);
  // Of all functions together.
  uint64_t WaitedNs() const;
};

}  // namespace ferry::shm
