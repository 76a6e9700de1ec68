// The wake-ups and copies that must follow a step of the engine, outside the lease.
//
// The engine never wakes, copies or enters the kernel itself; it notes the need here, and the
// thread that held the lease acts on it after the release. Fixed size: filling it never allocates.
#pragma once

#include <array>
#include <cstdint>

#include "shm/layout/wake_layout.h"

namespace ferry::engine {

// A set of lanes (each < kMaxLanes). An empty one is one word: a step makes several of them, and
// hardly ever puts in more than a lane or two.
class LaneSet {
 public:
  LaneSet() {}  // NOLINT: leaves `words_` uninitialised on purpose
  LaneSet(const LaneSet& other) { *this = other; }
  LaneSet& operator=(const LaneSet& other) {
    used_ = other.used_;
    for (uint32_t used = used_; used != 0; used &= used - 1) {
      const auto word = static_cast<uint32_t>(__builtin_ctz(used));
      words_[word] = other.words_[word];
    }
    return *this;
  }

  void Add(uint32_t lane) { AddWord(lane / 64, uint64_t{1} << (lane % 64)); }
  void AddWord(uint32_t word, uint64_t lanes) {
    if (lanes != 0) {
      words_[word] = Word(word) | lanes;
      used_ |= 1U << word;
    }
  }
  bool Has(uint32_t lane) const { return (Word(lane / 64) >> (lane % 64)) & 1U; }
  bool empty() const { return used_ == 0; }
  void Clear() { used_ = 0; }

  template <typename Visitor>
  void ForEach(Visitor&& visit) const {
    for (uint32_t used = used_; used != 0; used &= used - 1) {
      const auto word = static_cast<uint32_t>(__builtin_ctz(used));
      for (uint64_t bits = words_[word]; bits != 0; bits &= bits - 1) {
        visit(word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits)));
      }
    }
  }

 private:
  uint64_t Word(uint32_t word) const { return (used_ >> word) & 1U ? words_[word] : 0; }

  uint32_t used_ = 0;  // bit i: words_[i] holds lanes; the other words have no value
  std::array<uint64_t, shm::kActivityWords> words_;
};
static_assert(shm::kActivityWords <= 32);

inline constexpr uint32_t kMaxTransfersPerStep = 64;

// Made anew at every step, so the array is left as it is (its zeros would cost more than the step).
struct Effects {
  Effects() {}  // NOLINT: leaves `transfers` uninitialised on purpose

  LaneSet lanes;   // local peers (by local index) whose lane from us has something new
  LaneSet wakes;   // local peers to wake: room in a lane, a transfer matched or done
  LaneSet urgent;  // of both: peers for whom the progress worker must step in if they compute
  bool to_daemon = false;  // our lane to the daemon has something new
  bool to_link = false;    // our lane to the rank's own core has something new
  bool self = false;       // a request of this rank changed: another thread of it may sleep
  // Receive requests that became transfers inside the node: copies may start.
  std::array<uint32_t, kMaxTransfersPerStep> transfers;  // the first transfer_count are valid
  uint32_t transfer_count = 0;

  // True if some peer has to be told of anything.
  bool reaches_peers() const { return !(lanes.empty() && wakes.empty() && urgent.empty()); }
  void AddTransfer(uint32_t request) {
    if (transfer_count < kMaxTransfersPerStep) {
      transfers[transfer_count++] = request;
    }
  }
};

}  // namespace ferry::engine
