// The kinds of short calls that a measured rank makes, by function, communicator and peer: where
// each counts in the rank's profile, and the time of each, of which only some are measured
// (sampled_time.h).
//
// A short call sends or receives one message, and has not waited. It is counted with its bytes
// where it ends; only its time may be an estimate. Calls that have waited are none: they read the
// clock while they do.
//
// Calling thread: any of the rank, one at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "client/api/calls.h"
#include "client/api/measured_calls.h"
#include "client/profile/profile.h"
#include "client/profile/sampled_time.h"
#include "shm/layout/call_names.h"

namespace ferry::client {

struct alignas(64) ShortCall {
  bool Is(Caller caller, int32_t with) const {
    return function == caller.function && group == caller.group && peer == with;
  }

  uint64_t function = 0;  // 0: the place is free
  uint32_t group = 0;
  int32_t peer = 0;
  shm::ProfileCall* counted = nullptr;  // null: the profile has no place for it, or there is none
  SampledTime time;
  // The time of a call's first looks, in which it does not read the clock yet: the mean of those
  // that were measured.
  uint32_t looks_ns = 0;
  shm::CallName name = shm::CallName::kNone;
  uint16_t flags = 0;  // of its description
};

class ShortCalls {
 public:
  // `profile` outlives it, and may be null.
  explicit ShortCalls(Profile* profile);
  ShortCalls(const ShortCalls&) = delete;
  ShortCalls& operator=(const ShortCalls&) = delete;

  // Returns the kind of a call that `note` describes; until the next Find. `peer`: of its message.
  ShortCall& Find(Caller caller, int32_t peer, const CallNote& note) {
    ShortCall& call = calls_[PlaceOf(caller, peer)];
    return call.Is(caller, peer) ? call : Replace(&call, caller, peer, note);
  }
  // Null: such calls are not known yet.
  ShortCall* FindKnown(Caller caller, int32_t peer) {
    ShortCall& call = calls_[PlaceOf(caller, peer)];
    return call.Is(caller, peer) ? &call : nullptr;
  }
  // A call has taken so long, and has been counted with that time.
  void AddMeasured(ShortCall* call, uint64_t time_ns) {
    AddSkipped(*call, call->time.Add(time_ns, &distances_));
  }
  // A call has read the clock after its first looks, which took so long.
  static void AddLooks(ShortCall* call, uint64_t looks_ns);
  // Counts the time of all calls that no measured one has followed yet.
  void AddRest();

 private:
  static constexpr uint32_t kPlaces = 256;  // a power of two

  static uint32_t PlaceOf(Caller caller, int32_t peer) {
    const uint64_t key =
        caller.function ^ (uint64_t{caller.group} << 32 | static_cast<uint32_t>(peer));
    return static_cast<uint32_t>((key * 0x9e37'79b9'7f4a'7c15) >> 40) % kPlaces;
  }
  ShortCall& Replace(ShortCall* call, Caller caller, int32_t peer, const CallNote& note);
  void AddSkipped(const ShortCall& call, uint64_t time_ns) {
    if (profile_ != nullptr && time_ns != 0) {
      profile_->AddTime(call.counted, time_ns);
    }
  }

  Profile* const profile_;
  SampleDistances distances_;
  const std::unique_ptr<ShortCall[]> calls_;
};

}  // namespace ferry::client
