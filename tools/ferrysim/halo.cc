#include "tools/ferrysim/halo.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "common/counted.h"

namespace ferry::sim {
namespace {

using Events = HaloEvents;

// SplitMix64's output function (Steele, Lea and Flood, OOPSLA 2014).
constexpr uint64_t Mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// A number from 0 to below 1 that looks random but depends only on the arguments. So a run with the
// same seed is the same run, in whatever order events come.
constexpr double Draw(uint64_t seed, uint64_t a, uint64_t b) {
  return static_cast<double>(Mixed(Mixed(Mixed(seed) ^ a) ^ b) >> 11) * 0x1p-53;
}

// The programs of more ranks do not fit in one machine's memory.
constexpr uint32_t kMostRanks = 1 << 20;

Status CheckPlan(const HaloPlan& plan) {
  const auto wrong = [](const std::string& what) {
    return Status(ErrorCode::kInvalidArgument, what);
  };
  FERRY_RETURN_IF_ERROR(CheckMachine(plan.machine));
  if (plan.ranks == 0 || plan.ranks > kMostRanks) {
    return wrong(Counted(plan.ranks, "rank") + ": 1 to " + std::to_string(kMostRanks) +
                 " can be simulated");
  }
  if (const Grid grid = GridOf(plan.ranks); plan.cells < std::max(grid.rows, grid.columns)) {
    return wrong("a grid of " + std::to_string(plan.cells) + " by " + std::to_string(plan.cells) +
                 " cells cannot be cut into " + std::to_string(grid.rows) + " by " +
                 std::to_string(grid.columns) + " blocks");
  }
  if (plan.cell_bytes == 0 || plan.iterations == 0) {
    return wrong("cells of 0 bytes and runs of 0 iterations say nothing");
  }
  if (plan.starts_ahead == 0 || plan.starts_ahead > EntryPool::kMostAhead) {
    return wrong(std::to_string(plan.starts_ahead) + " starts ahead: 1 to " +
                 std::to_string(EntryPool::kMostAhead) + " can be");
  }
  return {};
}

class Halo final : private Driver {
 public:
  explicit Halo(const HaloPlan& plan)
      : plan_(plan),
        machine_(plan.machine),
        total_(plan.warm_up + plan.iterations),
        world_(plan.machine, plan.ranks, this),
        ranks_(plan.ranks),
        finishes_(total_) {
    const double contention = 1 + plan.machine.contention_percent / 100 *
                                      (std::min(plan.machine.ranks_per_node, plan.ranks) - 1);
    launch_cost_ = Scaled(machine_.launch_cost, contention);
    arm_cost_ = Scaled(machine_.arm_cost, contention);
    compute_ = machine_.compute_kernel +
               Scaled(1, CellsOf(GridOf(plan.ranks), plan.cells) * plan.ps_per_cell);
  }

  void Install();
  HaloResult Run();

 private:
  struct RankState {
    uint32_t iteration = 0;
    bool waits = false;
    Time waits_from = 0;
    Time stream = 0;             // when what is enqueued will be over
    Time cpu = 0;                // when the CPU has made the calls that are known
    std::vector<Time> finished;  // the last iterations, in turn
  };

  static Time Scaled(Time time, double factor) {
    return static_cast<Time>(std::llround(static_cast<double>(time) * factor));
  }
  static Action Then(void (*call)(void*, uint64_t, uint64_t), Halo* self, uint64_t rank,
                     uint64_t b = 0) {
    return {call, self, rank, b};
  }
  bool IsCpu() const { return plan_.send == SendKind::kCpu; }

  void OnProgress(uint32_t rank) override;
  void Enqueue(RankState* state, Time duration);
  void EnqueueKernels(uint32_t rank, RankState* state, uint64_t draw);
  void EnqueueAdd(uint32_t rank, RankState* state, StepId event);
  void BeginIteration(uint32_t rank);
  void BeginStream(uint32_t rank, RankState* state);
  void BeginCpu(uint32_t rank, RankState* state);
  void Synchronise(RankState* state) const;
  void EndIteration(uint32_t rank);
  Time Compute(uint32_t rank, uint32_t iteration) const;

  const HaloPlan plan_;
  const Machine machine_;
  const uint32_t total_;
  Time launch_cost_ = 0;
  Time arm_cost_ = 0;
  Time compute_ = 0;
  World world_;
  HaloProgram shape_;  // of rank 0's program: all are alike but for their peers
  std::vector<uint64_t> message_bytes_;
  std::vector<RankState> ranks_;
  std::vector<Time> finishes_;  // of the last rank, by iteration
};

void Halo::Install() {
  const Grid grid = GridOf(plan_.ranks);
  for (uint32_t rank = 0; rank < plan_.ranks; ++rank) {
    const auto neighbours = NeighboursOf(grid, rank, plan_.cells, plan_.cell_bytes);
    HaloProgram program = MakeHaloProgram(machine_, plan_.send, rank, neighbours);
    if (rank == 0) {
      shape_ = program;
      for (const Neighbour& neighbour : neighbours) {
        message_bytes_.push_back(neighbour.bytes);
      }
    }
    // The kinds of messages inside nodes differ from rank to rank, and so do the events.
    world_.Install(rank, std::move(program.program));
    ranks_[rank].finished.resize(plan_.starts_ahead);
  }
}

HaloResult Halo::Run() {
  for (uint32_t rank = 0; rank < plan_.ranks; ++rank) {
    for (uint32_t i = 0; !IsCpu() && i < std::min(plan_.starts_ahead, total_); ++i) {
      world_.Start(rank);
    }
    world_.queue().At(0, Then(
                             [](void* self, uint64_t a, uint64_t) {
                               static_cast<Halo*>(self)->BeginIteration(static_cast<uint32_t>(a));
                             },
                             this, rank));
  }
  world_.queue().Run();
  HaloResult result;
  const Time measured_from = plan_.warm_up == 0 ? 0 : finishes_[plan_.warm_up - 1];
  result.iteration_us = ToMicroseconds(finishes_[total_ - 1] - measured_from) / plan_.iterations;
  result.counts = world_.Counts();
  result.events = world_.queue().ran();
  return result;
}

// ---- The stream, and the CPU that fills it ------------------------------------------------------

void Halo::Enqueue(RankState* state, Time duration) {
  state->cpu += launch_cost_;
  state->stream = std::max(state->stream, state->cpu + machine_.launch_latency) + duration;
}

Time Halo::Compute(uint32_t rank, uint32_t iteration) const {
  return Scaled(compute_, 1 + 2 * plan_.jitter_percent / 100 *
                                  Draw(plan_.seed, rank, uint64_t{iteration} << 8));
}

// One for each message.
void Halo::EnqueueKernels(uint32_t rank, RankState* state, uint64_t draw) {
  for (size_t i = 0; i < message_bytes_.size(); ++i) {
    const double noise =
        1 + 2 * plan_.jitter_percent / 100 *
                Draw(plan_.seed, rank, uint64_t{state->iteration} << 8 | draw << 4 | i);
    const Time copy = Scaled(1, static_cast<double>(message_bytes_[i]) * machine_.pack_ps_per_byte);
    Enqueue(state, Scaled(machine_.pack_kernel + copy, noise));
  }
}

void Halo::EnqueueAdd(uint32_t rank, RankState* state, StepId event) {
  Enqueue(state, machine_.stream_operation);
  world_.queue().At(state->stream, Then(
                                       [](void* self, uint64_t a, uint64_t b) {
                                         static_cast<Halo*>(self)->world_.Add(
                                             static_cast<uint32_t>(a), static_cast<uint32_t>(b));
                                       },
                                       this, rank, event));
}

void Halo::BeginIteration(uint32_t rank) {
  RankState& state = ranks_[rank];
  if (state.iteration < total_) {
    IsCpu() ? BeginCpu(rank, &state) : BeginStream(rank, &state);
  }
}

void Halo::BeginStream(uint32_t rank, RankState* state) {
  const uint32_t n = state->iteration;
  if (n >= plan_.starts_ahead) {
    state->cpu = std::max(state->cpu, state->finished[n % plan_.starts_ahead]);
  }
  if (n != 0 && n + plan_.starts_ahead <= total_) {
    world_.Start(rank);  // another one ahead
  }
  Enqueue(state, Compute(rank, n));
  state->cpu += arm_cost_ * shape_.deferred;
  if (!shape_.regular.empty()) {
    EnqueueAdd(rank, state, Events::kReceive);
  }
  EnqueueKernels(rank, state, 1);
  if (shape_.has_ready) {
    EnqueueAdd(rank, state, Events::kSend);
  }
  for (const StepId event : shape_.regular) {
    EnqueueAdd(rank, state, event);
  }
  // A wait for each send and receive.
  for (uint64_t i = 0; i < shape_.done_per_start; ++i) {
    Enqueue(state, machine_.stream_operation);
  }
  state->waits = true;
  state->waits_from = state->stream;
}

void Halo::Synchronise(RankState* state) const {
  state->cpu = std::max(state->cpu, state->stream) + machine_.synchronise_cost;
}

void Halo::BeginCpu(uint32_t rank, RankState* state) {
  Enqueue(state, Compute(rank, state->iteration));
  Synchronise(state);  // the receives' buffers may still be read
  state->cpu += machine_.nic.overhead * kDirections;
  const Time posted = state->cpu;
  EnqueueKernels(rank, state, 1);
  Synchronise(state);
  world_.queue().At(posted, Then(
                                [](void* self, uint64_t a, uint64_t cpu) {
                                  auto& halo = *static_cast<Halo*>(self);
                                  const auto r = static_cast<uint32_t>(a);
                                  // It makes no progress before it is inside MPI again.
                                  halo.world_.cpu(r).HoldUntil(cpu);
                                  halo.world_.Start(r);
                                },
                                this, rank, state->cpu));
  world_.queue().At(state->cpu, Then(
                                    [](void* self, uint64_t a, uint64_t) {
                                      static_cast<Halo*>(self)->world_.Add(static_cast<uint32_t>(a),
                                                                           Events::kSend);
                                    },
                                    this, rank));
  state->waits = true;
  state->waits_from = state->cpu;
}

void Halo::OnProgress(uint32_t rank) {
  RankState& state = ranks_[rank];
  const uint64_t needed = shape_.done_per_start * (state.iteration + 1);
  if (!state.waits || world_.Completed(rank) < needed) {
    return;
  }
  state.waits = false;
  const Time now = world_.queue().now();
  const Time seen =
      IsCpu() ? std::max(now, world_.cpu(rank).free_at())
              : std::max(state.waits_from, now + machine_.poll_latency + machine_.stream_operation);
  world_.queue().At(
      seen, Then([](void* self, uint64_t a,
                    uint64_t) { static_cast<Halo*>(self)->EndIteration(static_cast<uint32_t>(a)); },
                 this, rank));
}

void Halo::EndIteration(uint32_t rank) {
  RankState& state = ranks_[rank];
  const Time now = world_.queue().now();
  (IsCpu() ? state.cpu : state.stream) = now;
  EnqueueKernels(rank, &state, 2);
  finishes_[state.iteration] = std::max(finishes_[state.iteration], state.stream);
  state.finished[state.iteration % plan_.starts_ahead] = state.stream;
  state.iteration++;
  BeginIteration(rank);
}

}  // namespace

StatusOr<HaloResult> RunHalo(const HaloPlan& plan) {
  FERRY_RETURN_IF_ERROR(CheckPlan(plan));
  Halo halo(plan);
  halo.Install();
  HaloResult result = halo.Run();
  FERRY_RETURN_IF_ERROR(result.counts.CheckEnded());
  return result;
}

}  // namespace ferry::sim
