// The operations that a job has under way with one other node, and the limits on what each node may
// ask of the other. No process of the other node can make this daemon keep more than these limits,
// and an operation that stands still with one node never holds up those with others.
//
// A daemon asks only for as much as the other one may keep for it (kMost...Asked). So a daemon that
// has asked for more, and does not take the answers, is no correct one: its link is cut, and the
// log names it.
//
// Thread: the progress thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "internode/staging/slot_shares.h"

namespace ferry::progress {

// ---- Limits on requests to another node, shared by all jobs of a link

// Bytes of answers that carry results of operations. A link that is long and wide (100 Gbit/s, 300
// us) holds as much.
inline constexpr uint64_t kMostBytesAsked = 4ULL << 20;
// Bytes that an answer costs beside its data, in packets and in the memory of the daemons that keep
// them.
inline constexpr uint64_t kAnswerBytes = 256;
// Long operations, each of which the other one has notes of.
inline constexpr uint64_t kMostLongAsked = 1024;
// Requests that each job may have under way, whatever the other jobs ask.
inline constexpr uint64_t kLeastAsked = 4;

// ---- Limits on what another node may make this one keep, beyond which its link is cut

// Bytes of packets that wait because the other node does not take those before them: four times
// what it may ask for.
inline constexpr uint64_t kMostBytesWaiting = 4 * kMostBytesAsked;
// RTSs that answer the long gets of one job, and its long puts that are being fetched.
inline constexpr uint64_t kMostLongKept = 4 * kMostLongAsked;

// Adds `much` to a count for as long as it lives. The count outlives it.
class CountedUse {
 public:
  CountedUse() = default;
  CountedUse(uint64_t* count, uint64_t much) : count_(count), much_(much) { *count_ += much; }
  CountedUse(CountedUse&& other) noexcept
      : count_(std::exchange(other.count_, nullptr)), much_(std::exchange(other.much_, 0)) {}
  CountedUse& operator=(CountedUse&& other) noexcept {
    std::swap(count_, other.count_);
    std::swap(much_, other.much_);
    return *this;
  }
  ~CountedUse() {
    if (count_ != nullptr) {
      *count_ -= much_;
    }
  }
  void Grow(uint64_t much) {
    *count_ += much;
    much_ += much;
  }
  void Shrink(uint64_t much) {
    *count_ -= much;
    much_ -= much;
  }

 private:
  uint64_t* count_ = nullptr;
  uint64_t much_ = 0;
};

struct NodeUse {
  // Slots of the network: reads and writes of large messages. Parked ones want no slot, but wait in
  // a line of their own.
  SlotFlow reads;
  SlotFlow writes;
  SlotFlow parked;
  // Blocks of the job's two stages, of private and of device memory, by StagingUse.
  SlotFlow private_blocks[2];
  SlotFlow device_blocks[2];

  uint64_t bytes_asked = 0;
  uint64_t long_asked = 0;
  uint64_t rts_lent = 0;      // with the long gets that wait for their memory
  uint64_t puts_fetched = 0;  // long ones

  // Return true if the job may ask for that much more, or one more long operation, on a link that
  // `jobs` jobs use.
  bool MayAskBytes(uint64_t bytes, uint32_t jobs) const {
    return bytes_asked + bytes <=
           std::max(kMostBytesAsked / std::max(jobs, 1U), kLeastAsked * (kAnswerBytes + 8192));
  }
  bool MayAskLong(uint32_t jobs) const {
    return long_asked < std::max(kMostLongAsked / std::max(jobs, 1U), kLeastAsked);
  }
};

}  // namespace ferry::progress
