// The simulated job: each rank has a program, a schedule whose steps take simulated time.
//
// The steps of a program are carried out by the rank's NIC, its node's daemon, its GPU's stream or
// its own CPU, by the placement of each step. A step that finds no entry in the NIC goes to the
// daemon, as in ferryd. Starts may be made ahead: they run side by side, but each step does its
// runs in turn.
//
// Calling thread: one. Nothing blocks.
#pragma once

#include <array>
#include <deque>
#include <initializer_list>
#include <map>
#include <unordered_map>
#include <vector>

#include "engine/schedule/schedule.h"
#include "tools/ferrysim/machine.h"
#include "tools/ferrysim/network.h"

namespace ferry::sim {

using engine::StepId;

enum class Move : uint8_t {
  kPut,      // bytes into the peer's memory; over when they are acknowledged
  kSignal,   // a word of the peer's; over when it is there
  kAtomic,   // a word of this rank's own, by its NIC
  kGet,      // bytes out of the peer's memory
  kCopy,     // bytes between memories of this node, by the one that begins it
  kSend,     // a message, which the peer's kReceive of the same tag matches
  kReceive,  // ditto
  kNothing,  // only time of the CPU
  kEvent     // nothing: waits until it was added to often enough
};

// The place where a step runs.
enum class Placement : uint8_t { kStream, kRank, kNic, kDaemon };
inline constexpr size_t kPlacements = 4;

// The work of one step of a rank's program.
struct Work {
  Move move = Move::kNothing;
  Placement placement = Placement::kRank;
  bool in_node = false;     // through memory instead of the NIC
  bool completes = false;   // its end adds 1 to the rank's completion word
  bool rendezvous = false;  // of a kSend: the receive fetches its bytes
  uint32_t peer = 0;
  uint32_t tag = 0;
  uint32_t adds = 0;  // of a kEvent: how many end it in each start
  uint64_t bytes = 0;
  uint64_t remote = 0;  // the event to which it adds at the peer: NameOf, or 0
  Time cost = 0;        // of the rank's CPU or stream before it begins, by its placement
  Time match_cost = 0;  // of the rank's CPU when a message has met this receive
};

struct Program {
  engine::StepGraph graph;
  std::vector<Work> works;  // one for each step

  StepId Add(const Work& work, std::initializer_list<StepId> waits) {
    works.push_back(work);
    return graph.Add(std::span(waits.begin(), waits.size()));
  }
};

// The name of an event of a rank's program, never 0: Work::remote.
constexpr uint64_t NameOf(uint32_t rank, StepId event) {
  return (uint64_t{rank} + 1) << 32 | event;
}

// The object that drives the ranks.
class Driver {
 public:
  virtual ~Driver() = default;
  // Steps of `rank` may have ended.
  virtual void OnProgress(uint32_t rank) = 0;
};

struct WorldCounts {
  std::array<uint64_t, kPlacements> begun{};  // steps, by where they ran
  uint64_t overflowed = 0;                    // steps that found no entry in the NIC
  uint64_t starts = 0;                        // of programs
  uint64_t busy = 0;                          // ranks whose program has not ended
  uint64_t messages = 0;                      // of the network
  uint64_t undelivered = 0;
  uint32_t peak_entries = 0;  // of any NIC

  // kInternal: a message or a run is still under way.
  Status CheckEnded() const;
};

class World {
 public:
  // `machine` must be valid (CheckMachine). `driver` outlives it.
  World(const Machine& machine, uint32_t ranks, Driver* driver);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Gives the rank its program, once.
  void Install(uint32_t rank, Program program);
  // Starts the rank's program, and asks for the entries of its steps in the NIC.
  void Start(uint32_t rank);
  // Adds 1 to an event of the rank's program.
  void Add(uint32_t rank, StepId event);
  // How often the event was added to.
  uint64_t Added(uint32_t rank, StepId event) const { return ranks_[rank].states[event].added; }
  // The rank's completion word.
  uint64_t Completed(uint32_t rank) const { return ranks_[rank].completed; }
  // Returns true if all starts of the rank's program have ended.
  bool IsIdle(uint32_t rank) const { return ranks_[rank].runs.empty(); }

  EventQueue& queue() { return queue_; }
  // The rank's core, which steps placed there and its own calls share.
  FifoServer& cpu(uint32_t rank) { return ranks_[rank].cpu; }
  uint32_t NodeOf(uint32_t rank) const { return rank / machine_.ranks_per_node; }
  uint32_t NicOf(uint32_t rank) const;
  uint32_t size() const { return static_cast<uint32_t>(ranks_.size()); }
  WorldCounts Counts() const;

 private:
  // The runs of one step.
  struct State {
    uint32_t ended = 0;
    uint32_t waiting = 0;       // those that could begin, but for the run before
    bool is_under_way = false;  // a run
    bool has_entry = false;     // the run under way
    uint64_t added = 0;         // to an event
    EntryPool::Slot slot;
  };
  struct Rank {
    Program program;
    std::vector<State> states;             // by step
    std::deque<engine::ScheduleRun> runs;  // starts that have not ended
    uint64_t first_run = 0;                // how many have
    uint64_t completed = 0;
    FifoServer cpu;
    FifoServer stream;
  };
  // A run of a step, as in events.
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

  // Encodes a run in an event: rank and step, then the number of the start.
  static uint64_t IdOf(uint32_t rank, StepId step) { return uint64_t{rank} << 32 | step; }
  static uint32_t RankOf(uint64_t id) { return static_cast<uint32_t>(id >> 32); }
  static StepId StepOf(uint64_t id) { return static_cast<StepId>(id); }
  const Work& WorkOf(uint64_t id) const { return ranks_[RankOf(id)].program.works[StepOf(id)]; }
  State& StateOf(uint64_t id) { return ranks_[RankOf(id)].states[StepOf(id)]; }
  template <void (World::*member)(uint64_t, uint64_t)>
  Action Then(uint64_t id, uint64_t run) {
    return {[](void* self, uint64_t a, uint64_t b) { (static_cast<World*>(self)->*member)(a, b); },
            this, id, run};
  }

  void BeginReady(uint32_t rank, uint64_t run);
  void Begin(uint64_t id, uint64_t run);
  Time Place(uint64_t id);
  void Finish(uint64_t id, uint64_t run);
  void Retire(uint32_t rank);
  bool HasHappened(uint64_t id);

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
  void End(uint64_t id, uint64_t run);
  void AddNamed(uint64_t name);

  const Machine machine_;
  Driver* const driver_;
  EventQueue queue_;
  Network network_;
  std::deque<Rank> ranks_;
  std::deque<EntryPool> pools_;                                      // by NIC
  std::vector<FifoServer> daemons_;                                  // by node
  std::unordered_map<uint64_t, std::map<uint32_t, Match>> matches_;  // by pair, by tag
  WorldCounts counts_;  // those that are counted as they happen
};

}  // namespace ferry::sim
