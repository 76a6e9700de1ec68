// The programs of a halo exchange: each rank's sends and receives.
//
// Stream-triggered, after the paper's sections V-A and V-B: each send is a deferred write,
// triggered by a counter that the stream adds to, and a deferred atomic on the completion word;
// each receive an atomic on the completion word, triggered by the counter of arrivals. A regular
// send waits for its counter to reach an even number: for the stream and for the receiver's
// clear-to-send, a further deferred atomic that the receiver's stream triggers. Ready sends share
// one counter.
//
// CPU-triggered: the CPU begins each send; short ones go at once, for longer ones the receiver's
// CPU reads the data when the request to send has met the receive, and tells the sender.
//
// Pure functions: any thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/ferrysim/world.h"

namespace ferry::sim {

inline constexpr uint32_t kDirections = 8;

// A periodic grid of cells, cut into one block for each rank, which has eight neighbours. As nearly
// square as the number of ranks allows; rows of ranks are consecutive.
struct Grid {
  uint32_t rows = 1;
  uint32_t columns = 1;
};
Grid GridOf(uint32_t ranks);

struct Neighbour {
  uint32_t rank = 0;
  uint32_t direction = 0;  // in which this rank lies, seen from there: where its message arrives
  uint64_t bytes = 0;      // to it, and as many from it
};

// The neighbours of a block of a grid of `cells` by `cells`, rounded up to whole cells. Neighbour d
// lies in direction d, and this rank in its direction 7 - d.
std::array<Neighbour, kDirections> NeighboursOf(const Grid& grid, uint32_t rank, uint64_t cells,
                                                uint64_t cell_bytes);
// Cells of a rank's block.
double CellsOf(const Grid& grid, uint64_t cells);
// The mean length of an edge, as figure 8 of the paper has it: that of a square block.
double MeanEdgeBytes(uint32_t ranks, uint64_t cells, uint64_t cell_bytes);

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
