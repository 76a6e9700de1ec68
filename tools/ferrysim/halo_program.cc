#include "tools/ferrysim/halo_program.h"

#include <cmath>
#include <utility>

namespace ferry::sim {
namespace {

// (row, column) of the eight directions.
constexpr std::array<std::pair<int, int>, kDirections> kSteps = {
    {{-1, -1}, {-1, 0}, {-1, 1}, {0, -1}, {0, 1}, {1, -1}, {1, 0}, {1, 1}}};

uint32_t Wrapped(uint32_t place, int step, uint32_t size) {
  return (place + size + static_cast<uint32_t>(step)) % size;
}

uint64_t DividedUp(uint64_t value, uint64_t by) { return (value + by - 1) / by; }

using Events = HaloEvents;

constexpr uint64_t kWordBytes = 8;

class Maker {
 public:
  Maker(const Machine& machine, SendKind kind, uint32_t rank) : machine_(machine), kind_(kind) {
    rank_ = rank;
    for (StepId event = 0; event < Events::kCount; ++event) {
      program_.program.Add({.move = Move::kEvent}, {});
    }
  }

  HaloProgram Make(const std::array<Neighbour, kDirections>& neighbours) {
    for (uint32_t d = 0; d < kDirections; ++d) {
      if (kind_ == SendKind::kCpu) {
        AddCpuReceive(d, neighbours[d]);
        AddCpuSend(d, neighbours[d]);
      } else {
        AddStreamReceive(d, neighbours[d]);
        AddStreamSend(d, neighbours[d]);
      }
    }
    return std::move(program_);
  }

 private:
  bool IsRegular(uint64_t bytes) const {
    return kind_ == SendKind::kRegular ||
           (kind_ == SendKind::kBounce && bytes > machine_.eager_bytes);
  }
  bool InNode(uint32_t peer) const {
    return peer / machine_.ranks_per_node == rank_ / machine_.ranks_per_node;
  }
  // Returns true if the CPU sends the message at once: inside a node only one that its CPUs copy
  // themselves.
  bool IsEager(const Neighbour& peer) const {
    return peer.bytes < (InNode(peer.rank) ? machine_.device_copy_bytes : machine_.eager_bytes);
  }

  StepId Add(const Work& work, StepId waits_for) {
    program_.done_per_start += work.completes ? 1 : 0;
    program_.deferred += work.placement == Placement::kNic ? 1 : 0;
    return program_.program.Add(work, {waits_for});
  }
  // The event takes `adds` for each start.
  StepId Await(StepId event, uint32_t adds) {
    program_.program.works[event].adds = adds;
    return event;
  }
  // The atomic on the completion word, once a message is over.
  void AddCompletion(StepId message) {
    Add({.move = Move::kAtomic, .placement = Placement::kNic, .completes = true}, message);
  }

  void AddStreamSend(uint32_t d, const Neighbour& peer) {
    StepId trigger = Events::kSend;
    if (IsRegular(peer.bytes)) {
      trigger = Await(Events::kRegular + d, 2);
      program_.regular.push_back(trigger);
    } else {
      Await(Events::kSend, 1);
      program_.has_ready = true;
    }
    AddCompletion(Add({.move = Move::kPut,
                       .placement = Placement::kNic,
                       .peer = peer.rank,
                       .bytes = peer.bytes,
                       .remote = NameOf(peer.rank, Events::kArrived + peer.direction)},
                      trigger));
  }

  void AddStreamReceive(uint32_t d, const Neighbour& peer) {
    if (IsRegular(peer.bytes)) {
      Add({.move = Move::kSignal,
           .placement = Placement::kNic,
           .peer = peer.rank,
           .bytes = kWordBytes,
           .remote = NameOf(peer.rank, Events::kRegular + peer.direction)},
          Await(Events::kReceive, 1));
    }
    AddCompletion(Await(Events::kArrived + d, 1));
  }

  // A short message itself, or the request to send.
  void AddCpuSend(uint32_t d, const Neighbour& peer) {
    const bool eager = IsEager(peer);
    Add({.move = Move::kSignal,
         .in_node = InNode(peer.rank),
         .completes = eager,
         .peer = peer.rank,
         .bytes = eager ? peer.bytes : kWordBytes,
         .remote = NameOf(peer.rank, Events::kArrived + peer.direction),
         .cost = machine_.nic.overhead},
        Await(Events::kSend, 1));
    if (!eager) {
      Add({.completes = true}, Await(Events::kRead + d, 1));
    }
  }

  void AddCpuReceive(uint32_t d, const Neighbour& peer) {
    Work work{.completes = true, .cost = machine_.match_cost};
    if (!IsEager(peer)) {
      work.in_node = InNode(peer.rank);
      work.move = work.in_node ? Move::kCopy : Move::kGet;
      work.peer = peer.rank;
      work.bytes = peer.bytes;
      work.remote = NameOf(peer.rank, Events::kRead + peer.direction);
      work.cost += work.in_node ? machine_.device_copy_cost : 0;
    }
    Add(work, Await(Events::kArrived + d, 1));
  }

  const Machine& machine_;
  const SendKind kind_;
  uint32_t rank_ = 0;
  HaloProgram program_;
};

}  // namespace

Grid GridOf(uint32_t ranks) {
  auto rows = static_cast<uint32_t>(std::sqrt(static_cast<double>(ranks)));
  while (rows > 1 && ranks % rows != 0) {
    --rows;
  }
  return {.rows = rows, .columns = ranks / rows};
}

std::array<Neighbour, kDirections> NeighboursOf(const Grid& grid, uint32_t rank, uint64_t cells,
                                                uint64_t cell_bytes) {
  const uint64_t height = DividedUp(cells, grid.rows);
  const uint64_t width = DividedUp(cells, grid.columns);
  std::array<Neighbour, kDirections> neighbours;
  for (uint32_t d = 0; d < kDirections; ++d) {
    const auto [down, right] = kSteps[d];
    const uint32_t row = Wrapped(rank / grid.columns, down, grid.rows);
    const uint32_t column = Wrapped(rank % grid.columns, right, grid.columns);
    neighbours[d] = {.rank = row * grid.columns + column,
                     .direction = kDirections - 1 - d,
                     .bytes = (down == 0 ? height : 1) * (right == 0 ? width : 1) * cell_bytes};
  }
  return neighbours;
}

double CellsOf(const Grid& grid, uint64_t cells) {
  const auto side = static_cast<double>(cells);
  return side / grid.rows * (side / grid.columns);
}

double MeanEdgeBytes(uint32_t ranks, uint64_t cells, uint64_t cell_bytes) {
  return static_cast<double>(cells) / std::sqrt(ranks) * static_cast<double>(cell_bytes);
}

const char* SendKindName(SendKind kind) {
  switch (kind) {
    case SendKind::kRegular:
      return "regular";
    case SendKind::kReady:
      return "ready";
    case SendKind::kBounce:
      return "bounce";
    case SendKind::kCpu:
      break;
  }
  return "cpu";
}

HaloProgram MakeHaloProgram(const Machine& machine, SendKind kind, uint32_t rank,
                            const std::array<Neighbour, kDirections>& neighbours) {
  return Maker(machine, kind, rank).Make(neighbours);
}

}  // namespace ferry::sim
