// The starts of one end of a matched pair, as its rank or a stream has told them: by the end's own
// doorbell, or by one that several ends share, so that one store of a stream starts all of them
// (ChannelLayout::shares).
//
// The rank changes which doorbell it is while none of the end's starts is under way, or for starts
// that it makes later, and says so before `armed` grows. So what is read after `armed` has grown
// holds for all starts up to that one.
//
// Calling thread: the progress thread. Nothing blocks or allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/error_code.h"
#include "shm/layout/channel_layout.h"
#include "shm/layout/counter_layout.h"

namespace ferry::daemon {

// A doorbell that several ends share.
struct SharedDoorbell {
  const shm::CounterLayout* word = nullptr;  // null: there is none
  uint64_t base = 0;                         // added to it (modulo 2^64): the end's starts
  uint64_t until = 0;                        // the last start that it counts

  bool Counts(uint64_t start) const { return word != nullptr && start <= until; }
  bool operator==(const SharedDoorbell& other) const {
    return word == other.word && base == other.base;
  }
};

class Starts {
 public:
  // `region`: in which `end` lies, and the shared doorbell. Both outlive it.
  Starts(const shm::ChannelLayout* end, std::span<const std::byte> region)
      : end_(end), region_(region) {}

  // Takes over what the rank has said since the last call; what it may not yet stays for a later
  // one. `is_idle`: none of the starts that the caller has seen is under way. kCorrupt: the shared
  // doorbell is none.
  ErrorCode Refresh(bool is_idle);
  // Starts that the rank has made, or enqueued, as far as was taken over.
  uint64_t announced() const { return announced_; }
  // Starts that have been made. A failure of the doorbell shows, too.
  uint64_t Made() const;
  const SharedDoorbell& shared() const { return shared_; }

  // Whether more was announced than `done`. An announced start may not have been made yet.
  bool IsArmed(uint64_t done) const;

 private:
  ErrorCode ReadShared(SharedDoorbell* shared) const;

  const shm::ChannelLayout* end_;
  std::span<const std::byte> region_;
  uint64_t announced_ = 0;
  SharedDoorbell shared_;
};

}  // namespace ferry::daemon
