#include "tools/ferrysim/world.h"

#include <utility>

#include "common/counted.h"

namespace ferry::sim {
namespace {

constexpr uint64_t kRequestBytes = 64;  // a request to send

uint32_t NodesFor(const Machine& machine, uint32_t ranks) {
  return (ranks + machine.ranks_per_node - 1) / machine.ranks_per_node;
}

}  // namespace

World::World(const Machine& machine, uint32_t ranks, Driver* driver)
    : machine_(machine),
      driver_(driver),
      network_(&machine_, &queue_, NodesFor(machine, ranks) * machine.nics_per_node),
      ranks_(ranks),
      daemons_(NodesFor(machine, ranks)) {
  for (uint32_t nic = 0; nic < daemons_.size() * machine.nics_per_node; ++nic) {
    pools_.emplace_back(machine.entries);
  }
}

uint32_t World::NicOf(uint32_t rank) const {
  const uint32_t place = rank % machine_.ranks_per_node;
  return NodeOf(rank) * machine_.nics_per_node +
         place * machine_.nics_per_node / machine_.ranks_per_node;
}

void World::Install(uint32_t rank, Program program) {
  ranks_[rank].states.resize(program.works.size());
  ranks_[rank].program = std::move(program);
}

void World::Start(uint32_t rank) {
  Rank& self = ranks_[rank];
  for (StepId step = 0; step < self.states.size(); ++step) {
    if (self.program.works[step].placement == Placement::kNic) {
      pools_[NicOf(rank)].Start(&self.states[step].slot);
    }
  }
  counts_.starts++;
  self.runs.emplace_back(self.program.graph).Start();
  BeginReady(rank, self.first_run + self.runs.size() - 1);
  Retire(rank);
}

void World::Add(uint32_t rank, StepId event) {
  const uint64_t id = IdOf(rank, event);
  State& state = StateOf(id);
  state.added++;
  if (state.is_under_way && HasHappened(id)) {
    Finish(id, state.ended);
    Retire(rank);
  }
  driver_->OnProgress(rank);
}

void World::AddNamed(uint64_t name) {
  if (name != 0) {
    Add(static_cast<uint32_t>(name >> 32) - 1, static_cast<StepId>(name));
  }
}

Status WorldCounts::CheckEnded() const {
  if (busy == 0 && undelivered == 0) {
    return {};
  }
  return {ErrorCode::kInternal,
          Counted(static_cast<int64_t>(busy), "program of a rank has", "programs of ranks have") +
              " not ended, and " +
              Counted(static_cast<int64_t>(undelivered), "message has", "messages have") +
              " not arrived: the model is wrong"};
}

WorldCounts World::Counts() const {
  WorldCounts counts = counts_;
  counts.messages = network_.sent();
  counts.undelivered = network_.sent() - network_.delivered();
  for (uint32_t rank = 0; rank < size(); ++rank) {
    counts.busy += IsIdle(rank) ? 0 : 1;
  }
  for (const EntryPool& pool : pools_) {
    counts.peak_entries = std::max(counts.peak_entries, pool.peak());
  }
  return counts;
}

// ---- Beginning ----------------------------------------------------------------------------------

void World::BeginReady(uint32_t rank, uint64_t run) {
  Rank& self = ranks_[rank];
  engine::ScheduleRun& steps = self.runs[run - self.first_run];
  for (StepId step = steps.Next(); step != engine::kNoStep; step = steps.Next()) {
    Begin(IdOf(rank, step), run);
  }
}

// Returns true if enough was added to an event for the run that is next.
bool World::HasHappened(uint64_t id) {
  const State& state = StateOf(id);
  return state.added >= uint64_t{WorkOf(id).adds} * (state.ended + 1);
}

void World::Begin(uint64_t id, uint64_t run) {
  State& state = StateOf(id);
  if (state.ended != run) {
    state.waiting++;
    return;
  }
  state.is_under_way = true;
  if (WorkOf(id).move != Move::kEvent) {
    queue_.At(Place(id), Then<&World::Carry>(id, run));
  } else if (HasHappened(id)) {
    Finish(id, run);
  }
}

// When the run can begin where it is placed, or else in the daemon.
Time World::Place(uint64_t id) {
  const Work& work = WorkOf(id);
  Rank& rank = ranks_[RankOf(id)];
  const Time now = queue_.now();
  Placement placement = work.placement;
  if (placement == Placement::kNic && !pools_[NicOf(RankOf(id))].Begin(&StateOf(id).slot)) {
    placement = Placement::kDaemon;
    counts_.overflowed++;
  }
  counts_.begun[static_cast<size_t>(placement)]++;
  switch (placement) {
    case Placement::kStream:
      return rank.stream.Reserve(now, work.cost) + work.cost;
    case Placement::kRank:
      return rank.cpu.Reserve(now, work.cost) + work.cost;
    case Placement::kNic:
      StateOf(id).has_entry = true;
      return now + machine_.trigger_latency;
    case Placement::kDaemon:
      break;
  }
  return daemons_[NodeOf(RankOf(id))].Reserve(now + machine_.daemon_delay, machine_.daemon_cost) +
         machine_.daemon_cost;
}

// ---- On the way ---------------------------------------------------------------------------------

Time World::LatencyTo(uint64_t id) const {
  const Work& work = WorkOf(id);
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
    case Move::kEvent:
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

// ---- Ending -------------------------------------------------------------------------------------

void World::End(uint64_t id, uint64_t run) {
  const uint32_t rank = RankOf(id);
  if (std::exchange(StateOf(id).has_entry, false)) {
    pools_[NicOf(rank)].End();
  }
  Finish(id, run);
  Retire(rank);
  driver_->OnProgress(rank);
}

// Begins what has waited for the run: the next one, then its followers.
void World::Finish(uint64_t id, uint64_t run) {
  const uint32_t rank = RankOf(id);
  Rank& self = ranks_[rank];
  State& state = StateOf(id);
  state.is_under_way = false;
  state.ended++;
  self.completed += WorkOf(id).completes ? 1 : 0;
  self.runs[run - self.first_run].End(StepOf(id));
  if (state.waiting != 0) {
    state.waiting--;
    Begin(id, run + 1);
  }
  BeginReady(rank, run);
}

void World::Retire(uint32_t rank) {
  Rank& self = ranks_[rank];
  while (!self.runs.empty() && self.runs.front().is_done()) {
    self.runs.pop_front();
    self.first_run++;
  }
}

}  // namespace ferry::sim
