#include "tools/ferrysim/allreduce.h"

#include <algorithm>

#include "coll/algorithms/algorithm.h"
#include "coll/algorithms/selection.h"
#include "common/counted.h"

namespace ferry::sim {
namespace {

constexpr uint64_t kElementBytes = 8;
constexpr uint32_t kMostRanks = 1 << 20;
// The limit for all ranks together: a few gigabytes of programs.
constexpr uint64_t kMostSteps = 20'000'000;

Status Wrong(const std::string& what) { return {ErrorCode::kInvalidArgument, what}; }

Status CheckPlan(const AllreducePlan& plan) {
  FERRY_RETURN_IF_ERROR(CheckMachine(plan.machine));
  if (plan.ranks < 2 || plan.ranks > kMostRanks) {
    return Wrong(Counted(plan.ranks, "rank") + ": 2 to " + std::to_string(kMostRanks) +
                 " can be simulated");
  }
  if (plan.bytes == 0 || plan.bytes % kElementBytes != 0) {
    return Wrong("a vector of " + std::to_string(plan.bytes) + " bytes: it must be of whole " +
                 std::to_string(kElementBytes) + "-byte elements, and of one at least");
  }
  if (plan.iterations == 0) {
    return Wrong("a run of 0 iterations says nothing");
  }
  return {};
}

collective::Problem ProblemOf(const AllreducePlan& plan) {
  collective::Problem problem;
  problem.collective = collective::Collective::kAllreduce;
  problem.size = static_cast<int>(plan.ranks);
  problem.block_bytes = plan.bytes;
  problem.element_bytes = kElementBytes;
  problem.node_of = NumberList::Of(plan.ranks, [&](size_t rank) {
    return static_cast<int>(rank / plan.machine.ranks_per_node);
  });
  return problem;
}

StatusOr<collective::Choice> Choose(const AllreducePlan& plan, const collective::Problem& problem) {
  collective::Choice choice = collective::SelectionTable().Choose(problem);
  if (plan.algorithm.empty()) {
    return choice;
  }
  const collective::Algorithm* algorithm =
      collective::FindAlgorithm(collective::Collective::kAllreduce, plan.algorithm);
  if (algorithm == nullptr) {
    std::string known;
    for (const collective::Algorithm& other :
         collective::AlgorithmsOf(collective::Collective::kAllreduce)) {
      known += (known.empty() ? "" : ", ") + std::string(other.name);
    }
    return Wrong("there is no algorithm \"" + plan.algorithm +
                 "\" of allreduce; there are: " + known);
  }
  if (!collective::Fits(*algorithm, problem)) {
    return Wrong("the algorithm " + plan.algorithm + " cannot be used among " +
                 Counted(plan.ranks, "rank") + ", " + std::to_string(plan.machine.ranks_per_node) +
                 " on a node");
  }
  choice.algorithm = algorithm;
  return choice;
}

class Allreduce final : private Driver {
 public:
  explicit Allreduce(const AllreducePlan& plan)
      : plan_(plan),
        total_(plan.warm_up + plan.iterations),
        world_(plan.machine, plan.ranks, this),
        starts_(plan.ranks),
        finishes_(total_) {}

  Status Install(const collective::Choice& choice, collective::Problem problem);
  AllreduceResult Run();

 private:
  Work WorkOf(uint32_t rank, const collective::Step& step) const;
  Placement PlacementOf(collective::StepKind kind) const;
  void OnProgress(uint32_t rank) override;
  static void StartOne(void* self, uint64_t rank, uint64_t);

  const AllreducePlan plan_;
  const uint32_t total_;
  World world_;
  std::vector<uint32_t> starts_;
  std::vector<Time> finishes_;  // of the last rank, by iteration
};

Placement Allreduce::PlacementOf(collective::StepKind kind) const {
  if (!plan_.on_nic) {
    return Placement::kRank;
  }
  return kind == collective::StepKind::kSend ? Placement::kNic : Placement::kStream;
}

Work Allreduce::WorkOf(uint32_t rank, const collective::Step& step) const {
  const Machine& machine = plan_.machine;
  Work work{.placement = PlacementOf(step.kind), .tag = step.tag};
  switch (step.kind) {
    case collective::StepKind::kSend:
    case collective::StepKind::kReceive: {
      const bool sends = step.kind == collective::StepKind::kSend;
      work.move = sends ? Move::kSend : Move::kReceive;
      work.peer = static_cast<uint32_t>(step.peer);
      work.bytes = sends ? step.left.size_bytes : step.to.size_bytes;
      work.in_node = !plan_.on_nic && world_.NodeOf(rank) == world_.NodeOf(work.peer);
      work.cost = sends && !plan_.on_nic ? machine.nic.overhead : 0;
      work.match_cost = plan_.on_nic ? 0 : machine.match_cost;
      work.rendezvous = sends && !plan_.on_nic && work.bytes >= machine.eager_bytes;
      break;
    }
    case collective::StepKind::kCopy:
    case collective::StepKind::kReduce:
      work.cost = (plan_.on_nic ? machine.stream_operation : machine.reduce_cost) +
                  step.to.size_bytes * machine.reduce_ps_per_byte;
      break;
    case collective::StepKind::kJoin:
      break;
  }
  return work;
}

Status Allreduce::Install(const collective::Choice& choice, collective::Problem problem) {
  problem.segment_bytes = choice.segment_bytes;
  for (uint32_t rank = 0; rank < plan_.ranks; ++rank) {
    problem.rank = static_cast<int>(rank);
    collective::Schedule schedule = collective::MakeSchedule(*choice.algorithm, problem);
    if (schedule.steps.size() * plan_.ranks > kMostSteps) {
      return Wrong("the algorithm " + std::string(choice.algorithm->name) + " takes " +
                   Counted(static_cast<int64_t>(schedule.steps.size()), "step") + " of each of " +
                   Counted(plan_.ranks, "rank") + ": more than can be simulated");
    }
    Program program{.graph = std::move(schedule.graph), .works = {}};
    for (const collective::Step& step : schedule.steps) {
      program.works.push_back(WorkOf(rank, step));
    }
    world_.Install(rank, std::move(program));
  }
  return {};
}

AllreduceResult Allreduce::Run() {
  for (uint32_t rank = 0; rank < plan_.ranks; ++rank) {
    world_.queue().At(0, {StartOne, this, rank, 0});
  }
  world_.queue().Run();
  AllreduceResult result;
  const Time measured_from = plan_.warm_up == 0 ? 0 : finishes_[plan_.warm_up - 1];
  result.iteration_us = ToMicroseconds(finishes_[total_ - 1] - measured_from) / plan_.iterations;
  result.counts = world_.Counts();
  result.events = world_.queue().ran();
  return result;
}

void Allreduce::StartOne(void* self, uint64_t rank, uint64_t) {
  auto& run = *static_cast<Allreduce*>(self);
  run.starts_[rank]++;
  run.world_.Start(static_cast<uint32_t>(rank));
}

void Allreduce::OnProgress(uint32_t rank) {
  if (!world_.IsIdle(rank)) {
    return;
  }
  const uint32_t iteration = starts_[rank] - 1;
  finishes_[iteration] = std::max(finishes_[iteration], world_.queue().now());
  if (starts_[rank] < total_) {
    world_.queue().At(world_.queue().now(), {StartOne, this, rank, 0});
  }
}

}  // namespace

StatusOr<AllreduceResult> RunAllreduce(const AllreducePlan& plan) {
  FERRY_RETURN_IF_ERROR(CheckPlan(plan));
  const collective::Problem problem = ProblemOf(plan);
  const StatusOr<collective::Choice> choice = Choose(plan, problem);
  FERRY_RETURN_IF_ERROR(choice.status());
  Allreduce run(plan);
  FERRY_RETURN_IF_ERROR(run.Install(*choice, problem));
  AllreduceResult result = run.Run();
  result.algorithm = choice->algorithm->name;
  FERRY_RETURN_IF_ERROR(result.counts.CheckEnded());
  return result;
}

}  // namespace ferry::sim
