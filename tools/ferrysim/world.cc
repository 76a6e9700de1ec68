#include "tools/ferrysim/world.h"

#include <utility>

namespace ferry::sim {
namespace {

using engine::Placement;

constexpr uint64_t kRequestBytes = 64;  // a request to send

uint32_t NodesFor(const Machine& machine, uint32_t ranks) {
  return (ranks + machine.ranks_per_node - 1) / machine.ranks_per_node;
}

}  // namespace

World::World(const Machine& machine, uint32_t ranks, Driver* driver)
    : machine_(machine),
      driver_(driver),
      network_(&machine_, &queue_, NodesFor(machine, ranks) * machine.nics_per_node),
      executors_{Placed(this, Placement::kStream), Placed(this, Placement::kRank),
                 Placed(this, Placement::kNic), Placed(this, Placement::kDaemon)},
      daemons_(NodesFor(machine, ranks)) {
  for (uint32_t nic = 0; nic < daemons_.size() * machine.nics_per_node; ++nic) {
    pools_.emplace_back(machine.entries);
  }
  const engine::ProgramEngine::Executors executors = {&executors_[0], &executors_[1],
                                                      &executors_[2], &executors_[3]};
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    ranks_.emplace_back(executors);
  }
}

uint32_t World::NicOf(uint32_t rank) const {
  const uint32_t place = rank % machine_.ranks_per_node;
  return NodeOf(rank) * machine_.nics_per_node +
         place * machine_.nics_per_node / machine_.ranks_per_node;
}

Status World::Install(uint32_t rank, std::vector<engine::Operation> operations,
                      std::vector<Work> works, const std::vector<uint64_t>& counters_per_start) {
  Rank& self = ranks_[rank];
  self.works = std::move(works);
  self.counters = std::vector<shm::CounterLayout>(counters_per_start.size());
  engine::ProgramSpec spec;
  for (size_t i = 0; i < counters_per_start.size(); ++i) {
    spec.counters.push_back({.word = &self.counters[i], .per_start = counters_per_start[i]});
  }
  for (uint32_t i = 0; i < operations.size(); ++i) {
    operations[i].body = rank;
    if (i < self.works.size()) {
      operations[i].remote_done = self.works[i].remote;
    }
    if (operations[i].placement == Placement::kNic) {
      self.deferred.push_back(i);
    }
  }
  spec.operations = std::move(operations);
  StatusOr<engine::ProgramId> program = self.engine.Install(spec);
  if (!program.ok()) {
    return program.status();
  }
  self.program = *program;
  return {};
}

void World::Start(uint32_t rank) {
  Rank& self = ranks_[rank];
  for (const uint32_t operation : self.deferred) {
    pools_[NicOf(rank)].Start(&self.works[operation].slot);
  }
  starts_++;
  self.engine.Start(self.program);
}

void World::Add(uint32_t rank, uint32_t counter) {
  Rank& self = ranks_[rank];
  shm::Counter(&self.counters[counter]).Add(1);
  self.engine.Poll(ToNanoseconds(queue_.now()));
  driver_->OnProgress(rank);
}

void World::AddNamed(uint64_t name) {
  if (name != 0) {
    Add(static_cast<uint32_t>(name >> 32) - 1, static_cast<uint32_t>(name));
  }
}

uint64_t World::Value(uint32_t rank, uint32_t counter) const {
  return ranks_[rank].counters[counter].value;
}

WorldCounts World::Counts() {
  WorldCounts counts;
  counts.starts = starts_;
  counts.messages = network_.sent();
  counts.undelivered = network_.sent() - network_.delivered();
  for (Rank& rank : ranks_) {
    for (size_t i = 0; i < engine::kPlacements; ++i) {
      counts.begun[i] += rank.engine.counts().begun[i];
    }
    counts.overflowed += rank.engine.counts().overflowed;
    counts.busy += rank.engine.IsBusy(rank.program) ? 1 : 0;
  }
  for (const EntryPool& pool : pools_) {
    counts.peak_entries = std::max(counts.peak_entries, pool.peak());
  }
  return counts;
}

// ---- Beginning ----------------------------------------------------------------------------------

ErrorCode World::Placed::Begin(const engine::Operation& operation, engine::Token token) {
  World& world = *world_;
  const auto rank = static_cast<uint32_t>(operation.body);
  const uint64_t id = IdOf(rank, token.operation);
  const Time now = world.queue_.now();
  if (token.operation >= world.ranks_[rank].works.size()) {
    world.queue_.At(now, world.Then<&World::Relay>(id, token.run));
    return ErrorCode::kOk;
  }
  Work& work = world.WorkOf(id);
  Time at = now;
  switch (placement_) {
    case Placement::kStream:
      at = world.ranks_[rank].stream.Reserve(now, work.cost) + work.cost;
      break;
    case Placement::kRank:
      at = world.ranks_[rank].cpu.Reserve(now, work.cost) + work.cost;
      break;
    case Placement::kNic:
      if (!world.pools_[world.NicOf(rank)].Begin(&work.slot)) {
        return ErrorCode::kWouldBlock;
      }
      work.has_entry = true;
      at = now + world.machine_.trigger_latency;
      break;
    case Placement::kDaemon:
      at = world.daemons_[world.NodeOf(rank)].Reserve(now + world.machine_.daemon_delay,
                                                      world.machine_.daemon_cost) +
           world.machine_.daemon_cost;
      break;
  }
  world.queue_.At(at, world.Then<&World::Carry>(id, token.run));
  return ErrorCode::kOk;
}

void World::Placed::Renounce(const engine::Operation&, ErrorCode) {
  // Nothing fails here.
}

void World::Placed::Abandon(const engine::Operation&, engine::Token) {
  // No operation has a deadline.
}

// ---- On the way ---------------------------------------------------------------------------------

Time World::LatencyTo(uint64_t id) const {
  const Work& work = ranks_[RankOf(id)].works[static_cast<uint32_t>(id)];
  return work.in_node ? machine_.memory_latency
                      : network_.AcknowledgementLatency(NicOf(RankOf(id)), NicOf(work.peer));
}

void World::Carry(uint64_t id, uint64_t run) {
  const Work& work = WorkOf(id);
  const uint32_t rank = RankOf(id);
  switch (work.move) {
    case Move::kPut:
    case Move::kSignal:
    case Move::kSend: {
      const uint64_t bytes = work.rendezvous ? kRequestBytes : work.bytes;
      if (work.in_node) {
        queue_.At(queue_.now() + machine_.memory_latency + bytes * machine_.device_copy_ps_per_byte,
                  Then<&World::Deliver>(id, run));
      } else {
        network_.Send(NicOf(rank), NicOf(work.peer), bytes, Then<&World::Deliver>(id, run));
      }
      break;
    }
    case Move::kAtomic:
      network_.Atomic(NicOf(rank), Then<&World::End>(id, run));
      break;
    case Move::kGet:
      queue_.At(queue_.now() + LatencyTo(id), Then<&World::Serve>(id, run));
      break;
    case Move::kCopy:
      queue_.At(queue_.now() + work.bytes * machine_.device_copy_ps_per_byte,
                Then<&World::GotBytes>(id, run));
      break;
    case Move::kReceive:
      Receive(id, run);
      break;
    case Move::kNothing:
      End(id, run);
      break;
  }
}

// The bytes are at the peer.
void World::Deliver(uint64_t id, uint64_t run) {
  const Work& work = WorkOf(id);
  if (work.move == Move::kPut) {
    queue_.At(queue_.now() + LatencyTo(id), Then<&World::End>(id, run));
    AddNamed(work.remote);
    return;
  }
  if (work.move == Move::kSend) {
    Arrive(id, run);
    return;
  }
  AddNamed(work.remote);
  End(id, run);
}

// The peer's NIC has the request for its bytes.
void World::Serve(uint64_t id, uint64_t run) {
  const Work& work = WorkOf(id);
  network_.Send(NicOf(work.peer), NicOf(RankOf(id)), work.bytes, Then<&World::GotBytes>(id, run));
}

void World::GotBytes(uint64_t id, uint64_t run) {
  if (WorkOf(id).move == Move::kReceive) {
    GotMessage(id, run);
    return;
  }
  if (WorkOf(id).remote != 0) {
    queue_.At(queue_.now() + LatencyTo(id), Then<&World::TellPeer>(id, run));
  }
  End(id, run);
}

void World::TellPeer(uint64_t id, uint64_t /*run*/) { AddNamed(WorkOf(id).remote); }

void World::Receive(uint64_t id, uint64_t run) {
  const Work& work = WorkOf(id);
  Match& match = MatchOf(work.peer, RankOf(id), work.tag);
  match.posted = true;
  match.receiver = {id, run};
  TryMatch(&match);
}

void World::Arrive(uint64_t id, uint64_t run) {
  const Work& work = WorkOf(id);
  Match& match = MatchOf(RankOf(id), work.peer, work.tag);
  match.arrived.push_back({id, run});
  TryMatch(&match);
  if (!work.rendezvous) {
    End(id, run);
  }
}

// Lets the first message there is meet the receive, if it is there too.
void World::TryMatch(Match* match) {
  if (!match->posted || match->arrived.empty()) {
    return;
  }
  const RunId receiver = match->receiver;
  match->sender = match->arrived.front();
  match->arrived.erase(match->arrived.begin());
  match->posted = false;
  const Time cost = WorkOf(receiver.id).match_cost;
  const Time begin = ranks_[RankOf(receiver.id)].cpu.Reserve(queue_.now(), cost);
  queue_.At(begin + cost, Then<&World::Matched>(receiver.id, receiver.run));
}

void World::Matched(uint64_t id, uint64_t run) {
  const Work& work = WorkOf(id);
  const RunId sender = MatchOf(work.peer, RankOf(id), work.tag).sender;
  if (!WorkOf(sender.id).rendezvous) {
    GotMessage(id, run);
  } else if (work.in_node) {
    queue_.At(queue_.now() + work.bytes * machine_.device_copy_ps_per_byte,
              Then<&World::GotMessage>(id, run));
  } else {
    queue_.At(queue_.now() + LatencyTo(id), Then<&World::Serve>(id, run));
  }
}

// The bytes of a message are where its receive wants them.
void World::GotMessage(uint64_t id, uint64_t run) {
  const Work& work = WorkOf(id);
  const auto pair = matches_.find(uint64_t{work.peer} << 32 | RankOf(id));
  const auto match = pair->second.find(work.tag);
  const RunId sender = match->second.sender;
  if (match->second.arrived.empty()) {
    pair->second.erase(match);
    if (pair->second.empty()) {
      matches_.erase(pair);
    }
  }
  if (WorkOf(sender.id).rendezvous) {
    queue_.At(queue_.now() + LatencyTo(id), Then<&World::End>(sender.id, sender.run));
  }
  End(id, run);
}

// An operation that moves nothing.
void World::Relay(uint64_t id, uint64_t run) {
  Rank& rank = ranks_[RankOf(id)];
  rank.ended++;
  rank.engine.Completed({rank.program, static_cast<uint32_t>(id), static_cast<uint32_t>(run)},
                        ErrorCode::kOk);
  driver_->OnProgress(RankOf(id));
}

void World::End(uint64_t id, uint64_t run) {
  Work& work = WorkOf(id);
  if (work.has_entry) {
    work.has_entry = false;
    pools_[NicOf(RankOf(id))].End();
  }
  Relay(id, run);
}

}  // namespace ferry::sim
