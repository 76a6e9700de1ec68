#include "shm/histograms.h"

#include <algorithm>
#include <numeric>

#include "shm/call_record.h"

namespace ferry::shm {
namespace {

void AddTo(uint64_t& word, uint64_t value) { StoreRelaxed(word, LoadRelaxed(word) + value); }

// That of the function, or a free one, which is its own from now on; else that of all others.
WaitLineLayout& LineOf(HistogramLayout& histograms, CallName name) {
  const auto number = static_cast<uint64_t>(name);
  for (uint32_t i = 0; i + 1 < kWaitLines; ++i) {
    WaitLineLayout& line = histograms.waits[i];
    uint64_t found = LoadRelaxed(line.name);
    // Another thread may take it at the same time, for this function or another.
    if (found == 0 && CompareExchange(line.name, found, number, std::memory_order_acq_rel)) {
      found = number;
    }
    if (found == number) {
      return line;
    }
  }
  return histograms.waits[kWaitLines - 1];
}

}  // namespace

uint32_t WaitEntry(uint64_t waited_ns) {
  const uint64_t units = waited_ns / kShortestWaitNs + (waited_ns % kShortestWaitNs != 0 ? 1 : 0);
  const auto entry = static_cast<uint32_t>(std::bit_width(units - std::min<uint64_t>(units, 1)));
  return std::min(entry, kWaitCounts - 1);
}

void CountWait(HistogramLayout& histograms, CallName name, uint64_t waited_ns) {
  WaitLineLayout& line = LineOf(histograms, name);
  AddTo(line.waited_ns, waited_ns);
  AddTo(line.counts[WaitEntry(waited_ns)], 1);
}

// ---- The way from a board -----------------------------------------------------------------------

void OfferHistograms(SessionLayout& session) {
  StoreRelaxed(session.calls.reserved[0], uint64_t{sizeof(CallBoardLayout)});
}

HistogramLayout* HistogramsBehind(CallBoardLayout& board) {
  const uint64_t offset = LoadRelaxed(board.reserved[0]);
  return offset == sizeof(CallBoardLayout)
             ? reinterpret_cast<HistogramLayout*>(reinterpret_cast<std::byte*>(&board) + offset)
             : nullptr;
}

// ---- Reading ------------------------------------------------------------------------------------

uint64_t WaitHistogram::Count() const {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

void Histograms::Add(const HistogramLayout& layout) {
  for (uint32_t i = 0; i < kSizeCounts; ++i) {
    sizes[i] += LoadRelaxed(layout.sizes[i]);
  }
  for (uint32_t i = 0; i < kWaitLines; ++i) {
    const WaitLineLayout& line = layout.waits[i];
    const uint64_t name = LoadRelaxed(line.name);
    const bool is_of_others = i + 1 == kWaitLines;
    if (!is_of_others && (name >= kMostCallNames || !IsCallName(static_cast<uint16_t>(name)))) {
      continue;
    }
    WaitHistogram read;
    read.waited_ns = LoadRelaxed(line.waited_ns);
    for (uint32_t j = 0; j < kWaitCounts; ++j) {
      read.counts[j] = LoadRelaxed(line.counts[j]);
    }
    if (read.Count() == 0) {
      continue;
    }
    WaitHistogram& sum = waits[is_of_others ? CallName::kNone : static_cast<CallName>(name)];
    sum.waited_ns += read.waited_ns;
    for (uint32_t j = 0; j < kWaitCounts; ++j) {
      sum.counts[j] += read.counts[j];
    }
  }
}

void Histograms::AddWait(CallName name, uint64_t waited_ns) {
  WaitHistogram& sum = waits[name];
  sum.waited_ns += waited_ns;
  ++sum.counts[WaitEntry(waited_ns)];
}

void Histograms::Add(const Histograms& other) {
  for (uint32_t i = 0; i < kSizeCounts; ++i) {
    sizes[i] += other.sizes[i];
  }
  for (const auto& [name, histogram] : other.waits) {
    WaitHistogram& sum = waits[name];
    sum.waited_ns += histogram.waited_ns;
    for (uint32_t i = 0; i < kWaitCounts; ++i) {
      sum.counts[i] += histogram.counts[i];
    }
  }
}

uint64_t Histograms::WaitedNs() const {
  uint64_t sum_ns = 0;
  for (const auto& [name, histogram] : waits) {
    sum_ns += histogram.waited_ns;
  }
  return sum_ns;
}

}  // namespace ferry::shm
