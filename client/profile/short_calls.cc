#include "client/profile/short_calls.h"

#include <algorithm>

#include "shm/call_board.h"

namespace ferry::client {
namespace {

constexpr uint64_t kMostLooksNs = 10'000;  // longer: the thread was interrupted
constexpr uint32_t kLooksMemory = 8;       // calls by which the mean changes

}  // namespace

ShortCalls::ShortCalls(Profile* profile)
    : profile_(profile), calls_(std::make_unique<ShortCall[]>(kPlaces)) {}

// Calls of the kind that had the place before count on, and are measured anew when they come back.
ShortCall& ShortCalls::Replace(ShortCall* call, Caller caller, int32_t peer, const CallNote& note) {
  AddSkipped(*call, call->time.TakeRest());
  shm::CallDescription description;
  note.describe(note, &description);
  *call = {};
  call->function = caller.function;
  call->group = caller.group;
  call->peer = peer;
  call->name = description.name;
  call->flags = description.flags;
  call->counted = profile_ != nullptr ? profile_->PlaceOf(description) : nullptr;
  return *call;
}

void ShortCalls::AddLooks(ShortCall* call, uint64_t looks_ns) {
  const auto taken_ns = static_cast<uint32_t>(std::min(looks_ns, kMostLooksNs));
  call->looks_ns = call->looks_ns == 0
                       ? taken_ns
                       : (call->looks_ns * (kLooksMemory - 1) + taken_ns) / kLooksMemory;
}

void ShortCalls::AddRest() {
  for (uint32_t i = 0; i < kPlaces; ++i) {
    AddSkipped(calls_[i], calls_[i].time.TakeRest());
  }
}

}  // namespace ferry::client
