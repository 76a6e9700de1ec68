// The simulated job: ranks with Ferry's own program engine each, and executors that take simulated
// time over what the engine begins.
//
// A rank's engine stands for whatever watches its counters: its NIC, its node's daemon, or its own
// CPU, by the placement of each operation. The NIC refuses an operation that finds no entry with
// kWouldBlock, and the engine itself moves it to the daemon, as it does in ferryd.
//
// Calling thread: one. Nothing blocks.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "common/status.h"
#include "engine/program/program_engine.h"
#include "tools/ferrysim/entry_pool.h"
#include "tools/ferrysim/machine.h"
#include "tools/ferrysim/network.h"

namespace ferry::sim {

enum class Move : uint8_t {
  kPut,      // bytes into the peer's memory; over when they are acknowledged
  kSignal,   // a word of the peer's; over when it is there
  kAtomic,   // a word of this rank's own, by its NIC
  kGet,      // bytes out of the peer's memory
  kCopy,     // bytes between memories of this node, by whoever begins it
  kSend,     // a message, which the peer's kReceive of the same tag matches
  kReceive,  // ditto
  kNothing   // only time of the CPU
};

// The work of one operation of a rank's program.
struct Work {
  Move move = Move::kNothing;
  bool in_node = false;  // through memory instead of the NIC
  bool has_entry = false;
  uint32_t peer = 0;
  uint32_t tag = 0;
  uint64_t bytes = 0;
  uint64_t remote = 0;  // which counter grows at the peer: NameOf, or 0
  Time cost = 0;        // of the rank's CPU or stream before it begins, by its placement
  Time match_cost = 0;  // of the rank's CPU when a message has met this receive
  bool rendezvous =
      false;  // of a kSend: its bytes stay until the receive is there, and fetches them
  EntryPool::Slot slot;
};

// The name of a counter of a rank, never 0: Operation::remote_done.
constexpr uint64_t NameOf(uint32_t rank, uint32_t counter) {
  return (uint64_t{rank} + 1) << 32 | counter;
}

// The object that drives the ranks.
class Driver {
 public:
  virtual ~Driver() = default;
  // Counters of `rank` may have grown.
  virtual void OnProgress(uint32_t rank) = 0;
};

struct WorldCounts {
  std::array<uint64_t, engine::kPlacements> begun{};
  uint64_t overflowed = 0;  // operations that found no entry in the NIC
  uint64_t starts = 0;      // of programs
  uint64_t busy = 0;        // ranks whose program has not ended
  uint64_t messages = 0;    // of the network
  uint64_t undelivered = 0;
  uint32_t peak_entries = 0;  // of any NIC
};

class World {
 public:
  // `machine` must be valid (CheckMachine). `driver` outlives it.
  World(const Machine& machine, uint32_t ranks, Driver* driver);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Installs a rank's program, once: operation i does works[i]; further operations only pass
  // counters on. Its counters are `counters` words of the world's own, which grow by their
  // `per_start`.
  Status Install(uint32_t rank, std::vector<engine::Operation> operations, std::vector<Work> works,
                 const std::vector<uint64_t>& counters_per_start);
  // Starts it, and asks for the entries of its deferred operations.
  void Start(uint32_t rank);
  // Adds 1 to a counter of the rank that others than its operations add to.
  void Add(uint32_t rank, uint32_t counter);
  uint64_t Value(uint32_t rank, uint32_t counter) const;
  // How many runs of the rank's operations have ended.
  uint64_t Ended(uint32_t rank) const { return ranks_[rank].ended; }

  EventQueue& queue() { return queue_; }
  // The rank's core, which operations placed there and its own calls share.
  FifoServer& cpu(uint32_t rank) { return ranks_[rank].cpu; }
  uint32_t NodeOf(uint32_t rank) const { return rank / machine_.ranks_per_node; }
  uint32_t NicOf(uint32_t rank) const;
  uint32_t size() const { return static_cast<uint32_t>(ranks_.size()); }
  WorldCounts Counts();

 private:
  class Placed final : public engine::Executor {
   public:
    Placed(World* world, engine::Placement placement) : world_(world), placement_(placement) {}
    ErrorCode Begin(const engine::Operation& operation, engine::Token token) override;
    void Renounce(const engine::Operation&, ErrorCode) override;
    void Abandon(const engine::Operation&, engine::Token) override;

   private:
    World* const world_;
    const engine::Placement placement_;
  };
  struct Rank {
    explicit Rank(const engine::ProgramEngine::Executors& executors) : engine(executors) {}
    engine::ProgramEngine engine;
    engine::ProgramId program{};
    std::vector<shm::CounterLayout> counters;
    std::vector<Work> works;
    std::vector<uint32_t> deferred;  // operations placed in the NIC
    FifoServer cpu;
    FifoServer stream;
    uint64_t ended = 0;
  };
  // A run, as in events.
  struct RunId {
    uint64_t id = 0;
    uint64_t run = 0;
  };
  // Messages that have arrived, of this start of the sender's and of later ones, and the receive
  // that waits for one.
  struct Match {
    std::vector<RunId> arrived;
    bool posted = false;
    RunId receiver;
    RunId sender;  // of the message that is being fetched
  };

  // Encodes a run in an event: rank and operation, then the number of the run.
  static uint64_t IdOf(uint32_t rank, uint32_t operation) {
    return uint64_t{rank} << 32 | operation;
  }
  static uint32_t RankOf(uint64_t id) { return static_cast<uint32_t>(id >> 32); }
  Work& WorkOf(uint64_t id) { return ranks_[RankOf(id)].works[static_cast<uint32_t>(id)]; }
  template <void (World::*member)(uint64_t, uint64_t)>
  Action Then(uint64_t id, uint64_t run) {
    return {[](void* self, uint64_t a, uint64_t b) { (static_cast<World*>(self)->*member)(a, b); },
            this, id, run};
  }

  Time LatencyTo(uint64_t id) const;
  void Carry(uint64_t id, uint64_t run);
  void Deliver(uint64_t id, uint64_t run);
  void Serve(uint64_t id, uint64_t run);
  void GotBytes(uint64_t id, uint64_t run);
  void TellPeer(uint64_t id, uint64_t run);
  void Receive(uint64_t id, uint64_t run);
  void Arrive(uint64_t id, uint64_t run);
  void TryMatch(Match* match);
  void Matched(uint64_t id, uint64_t run);
  void GotMessage(uint64_t id, uint64_t run);
  Match& MatchOf(uint32_t from, uint32_t to, uint32_t tag) {
    return matches_[uint64_t{from} << 32 | to][tag];
  }
  void Relay(uint64_t id, uint64_t run);
  void End(uint64_t id, uint64_t run);
  void AddNamed(uint64_t name);

  const Machine machine_;
  Driver* const driver_;
  EventQueue queue_;
  Network network_;
  std::array<Placed, engine::kPlacements> executors_;
  std::deque<Rank> ranks_;
  std::deque<EntryPool> pools_;                                      // by NIC
  std::vector<FifoServer> daemons_;                                  // by node
  std::unordered_map<uint64_t, std::map<uint32_t, Match>> matches_;  // by pair, by tag
  uint64_t starts_ = 0;
};

}  // namespace ferry::sim
