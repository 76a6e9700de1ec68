// What a job has under way with one other node, and what each may ask of the other: nobody there
// can make this daemon keep more than is said here, and nothing that stands still with one node
// keeps the work with others from going on.
//
// Daemons ask only for what the other one may keep for them (kMost...Asked), so one that has asked
// for more, and does not take the answers, is no correct one: its link is cut, by name.
//
// Thread: the progress thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "internode/staging/slot_shares.h"

namespace ferry::progress {

// ---- What is asked of another node: all jobs' of a link share it

// Bytes of answers that carry what operations have found. A link that is long and wide (100 Gbit/s,
// 300 us) holds as much.
inline constexpr uint64_t kMostBytesAsked = 4ULL << 20;
// What an answer costs beside its data, in packets and in who keeps them.
inline constexpr uint64_t kAnswerBytes = 256;
// Long operations, each of which the other one has notes of.
inline constexpr uint64_t kMostLongAsked = 1024;
// Whatever the other jobs ask, each may have so many under way.
inline constexpr uint64_t kLeastAsked = 4;

// ---- What another node may make this one keep, beyond which its link is cut

// Packets that wait because it does not take those before them: four times what it may ask for.
inline constexpr uint64_t kMostBytesWaiting = 4 * kMostBytesAsked;
// Of one job: RTSs that answer its long gets, and long puts of it that are fetched.
inline constexpr uint64_t kMostLongKept = 4 * kMostLongAsked;

// Has a part of a count, for as long as it lives. The count outlives it.
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

  // Whether the job may ask for so much more, of a link that so many jobs use.
  bool MayAskBytes(uint64_t bytes, uint32_t jobs) const {
    return bytes_asked + bytes <=
           std::max(kMostBytesAsked / std::max(jobs, 1U), kLeastAsked * (kAnswerBytes + 8192));
  }
  bool MayAskLong(uint32_t jobs) const {
    return long_asked < std::max(kMostLongAsked / std::max(jobs, 1U), kLeastAsked);
  }
};

}  // namespace ferry::progress
