// The programs of a halo exchange: each rank's sends and receives.
//
// Stream-triggered, after the paper's sections V-A and V-B: each send is a deferred write,
// triggered by a counter that the stream adds to, and a deferred atomic on the completion word;
// each receive an atomic on the completion word, triggered by the counter of what has arrived. A
// regular send waits for its counter to reach an even number: for the stream and for the receiver's
// clear-to-send, a further deferred atomic that the receiver's stream triggers. Ready sends share
// one counter.
//
// CPU-triggered: the CPU begins each send; short ones go at once, for longer ones the receiver's
// CPU reads the data when the request to send has met the receive, and tells the sender.
//
// Pure functions: any thread.
#pragma once

#include <vector>

#include "tools/ferrysim/grid.h"
#include "tools/ferrysim/world.h"

namespace ferry::sim {

enum class SendKind : uint8_t {
  kRegular,  // waits for clear-to-send
  kReady,    // the application knows that the receive is started
  kBounce,   // regular, but short ones go to bounce cells of the receive at once (section VIII)
  kCpu       // started by the CPU once it has synchronised with the stream
};
// "regular", "ready", "bounce", "cpu".
const char* SendKindName(SendKind kind);

// The events of a rank's program, which are its first steps. Add the direction to the number of a
// message's event.
struct HaloEvents {
  static constexpr StepId kSend = 0;      // triggers ready sends, and those of the CPU
  static constexpr StepId kReceive = 1;   // triggers clear-to-send
  static constexpr StepId kArrived = 2;   // of a receive: its data, or its request to send
  static constexpr StepId kRead = 10;     // of a CPU's send: its data were fetched
  static constexpr StepId kRegular = 18;  // of a send: trigger and clear-to-send
  static constexpr StepId kCount = 26;
};

struct HaloProgram {
  Program program;
  uint64_t done_per_start = 0;  // how far the completion word grows: all sends and receives
  std::vector<StepId> regular;  // their events
  bool has_ready = false;
  uint32_t deferred = 0;  // steps that need an entry of the NIC
};

// The program of `rank`, whose neighbours these are (NeighboursOf).
HaloProgram MakeHaloProgram(const Machine& machine, SendKind kind, uint32_t rank,
                            const std::array<Neighbour, kDirections>& neighbours);

}  // namespace ferry::sim
