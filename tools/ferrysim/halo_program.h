// The programs of a halo exchange: each rank's sends and receives, as the engine sees them.
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

#include "engine/program/operation.h"
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

// The counters of a rank. Add the direction to the number of a message's counter.
struct HaloCounters {
  static constexpr uint32_t kDone = 0;      // the completion word: all sends and receives
  static constexpr uint32_t kSend = 1;      // triggers of ready sends, and of the CPU's
  static constexpr uint32_t kReceive = 2;   // triggers clear-to-send
  static constexpr uint32_t kArrived = 3;   // of a receive: its data, or its request to send
  static constexpr uint32_t kSent = 11;     // of a send: its data are there
  static constexpr uint32_t kRegular = 19;  // of a send: trigger and clear-to-send
  static constexpr uint32_t kCount = 27;
};

struct HaloProgram {
  std::vector<engine::Operation> operations;
  std::vector<Work> works;  // one for each operation
  std::vector<uint64_t> counters_per_start;
  uint64_t done_per_start = 0;    // how far kDone grows
  std::vector<uint32_t> regular;  // their counters
  bool has_ready = false;
  uint32_t deferred = 0;  // operations that need an entry of the NIC
};

// The program of `rank`, whose neighbours these are (NeighboursOf).
HaloProgram MakeHaloProgram(const Machine& machine, SendKind kind, uint32_t rank,
                            const std::array<Neighbour, kDirections>& neighbours);

}  // namespace ferry::sim
