#include "tools/ferrysim/halo_program.h"

namespace ferry::sim {
namespace {

using engine::kNoCounter;
using engine::OperationKind;
using engine::Placement;
using Counters = HaloCounters;

constexpr uint64_t kWordBytes = 8;

class Maker {
 public:
  Maker(const Machine& machine, SendKind kind, uint32_t rank) : machine_(machine), kind_(kind) {
    rank_ = rank;
    program_.counters_per_start.resize(Counters::kCount);
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
  // Whether the CPU sends it at once. Inside a node only what its CPUs copy themselves.
  bool IsEager(const Neighbour& peer) const {
    return peer.bytes < (InNode(peer.rank) ? machine_.device_copy_bytes : machine_.eager_bytes);
  }

  void Add(OperationKind kind, Placement placement, uint32_t trigger, uint64_t threshold,
           uint32_t local_done, const Work& work) {
    program_.operations.push_back({.kind = kind,
                                   .placement = placement,
                                   .trigger = {.counter = trigger, .threshold = threshold},
                                   .local_done = local_done});
    program_.works.push_back(work);
    program_.done_per_start += local_done == Counters::kDone ? 1 : 0;
    program_.deferred += placement == Placement::kNic ? 1 : 0;
  }
  void OthersAdd(uint32_t counter, uint64_t per_start) {
    program_.counters_per_start[counter] = per_start;
  }
  Work RemoteWork(Move move, const Neighbour& peer, uint64_t bytes, uint32_t counter) const {
    Work work;
    work.move = move;
    work.peer = peer.rank;
    work.bytes = bytes;
    work.remote = NameOf(peer.rank, counter);
    return work;
  }
  static Work AtomicWork() {
    Work work;
    work.move = Move::kAtomic;
    return work;
  }

  void AddStreamSend(uint32_t d, const Neighbour& peer) {
    const Work write =
        RemoteWork(Move::kPut, peer, peer.bytes, Counters::kArrived + peer.direction);
    if (IsRegular(peer.bytes)) {
      OthersAdd(Counters::kRegular + d, 2);
      program_.regular.push_back(Counters::kRegular + d);
      Add(OperationKind::kPut, Placement::kNic, Counters::kRegular + d, 2, Counters::kSent + d,
          write);
    } else {
      OthersAdd(Counters::kSend, 1);
      program_.has_ready = true;
      Add(OperationKind::kPut, Placement::kNic, Counters::kSend, 1, Counters::kSent + d, write);
    }
    Add(OperationKind::kAtomic, Placement::kNic, Counters::kSent + d, 1, Counters::kDone,
        AtomicWork());
  }

  void AddStreamReceive(uint32_t d, const Neighbour& peer) {
    OthersAdd(Counters::kArrived + d, 1);
    if (IsRegular(peer.bytes)) {
      OthersAdd(Counters::kReceive, 1);
      Add(OperationKind::kAtomic, Placement::kNic, Counters::kReceive, 1, kNoCounter,
          RemoteWork(Move::kSignal, peer, kWordBytes, Counters::kRegular + peer.direction));
    }
    Add(OperationKind::kAtomic, Placement::kNic, Counters::kArrived + d, 1, Counters::kDone,
        AtomicWork());
  }

  // A short message itself, or the request to send.
  void AddCpuSend(uint32_t d, const Neighbour& peer) {
    OthersAdd(Counters::kSend, 1);
    const bool eager = IsEager(peer);
    Work work = RemoteWork(Move::kSignal, peer, eager ? peer.bytes : kWordBytes,
                           Counters::kArrived + peer.direction);
    work.in_node = InNode(peer.rank);
    work.cost = machine_.nic.overhead;
    Add(OperationKind::kPut, Placement::kRank, Counters::kSend, 1,
        eager ? Counters::kDone : kNoCounter, work);
    if (!eager) {  // until the receiver has read
      OthersAdd(Counters::kSent + d, 1);
      Add(OperationKind::kNotify, Placement::kRank, Counters::kSent + d, 1, Counters::kDone, {});
    }
  }

  void AddCpuReceive(uint32_t d, const Neighbour& peer) {
    OthersAdd(Counters::kArrived + d, 1);
    Work work;
    work.cost = machine_.match_cost;
    OperationKind kind = OperationKind::kCopy;
    if (!IsEager(peer)) {
      const bool in_node = InNode(peer.rank);
      work = RemoteWork(in_node ? Move::kCopy : Move::kGet, peer, peer.bytes,
                        Counters::kSent + peer.direction);
      work.in_node = in_node;
      work.cost = machine_.match_cost + (in_node ? machine_.device_copy_cost : 0);
      kind = OperationKind::kGet;
    }
    Add(kind, Placement::kRank, Counters::kArrived + d, 1, Counters::kDone, work);
  }

  const Machine& machine_;
  const SendKind kind_;
  uint32_t rank_ = 0;
  HaloProgram program_;
};

}  // namespace

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
