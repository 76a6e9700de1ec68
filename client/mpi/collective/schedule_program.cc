#include "client/mpi/collective/schedule_program.h"

#include <map>

namespace ferry::mpi {
namespace {

using engine::kNoCounter;
using engine::Operation;
using engine::OperationKind;
using engine::Placement;

OperationKind KindOf(StepKind kind) {
  switch (kind) {
    case StepKind::kSend:
      return OperationKind::kPut;
    case StepKind::kReceive:
      return OperationKind::kGet;
    case StepKind::kCopy:
      return OperationKind::kCopy;
    case StepKind::kReduce:
      return OperationKind::kReduce;
    case StepKind::kJoin:
      break;
  }
  return OperationKind::kNotify;
}

}  // namespace

ScheduleProgram MakeProgram(const Schedule& schedule) {
  ScheduleProgram program;
  std::map<std::vector<StepId>, uint32_t> counter_of;  // by what is waited for
  std::vector<std::vector<uint32_t>> feeds(
      schedule.steps.size());  // which counters a step is to raise
  for (StepId id = 0; id < schedule.steps.size(); ++id) {
    Operation operation;
    operation.kind = KindOf(schedule.steps[id].kind);
    operation.placement = Placement::kRank;
    const auto begin = schedule.dependencies.begin() + schedule.first_dependency[id];
    const auto end = schedule.dependencies.begin() + schedule.first_dependency[id + 1];
    if (begin != end) {
      const std::vector<StepId> waits(begin, end);
      const auto [it, is_new] = counter_of.try_emplace(waits, program.counter_count);
      if (is_new) {
        program.counter_count++;
        for (const StepId wait : waits) {
          feeds[wait].push_back(it->second);
        }
      }
      operation.trigger = {.counter = it->second, .threshold = waits.size()};
    }
    program.operations.push_back(operation);
  }
  for (StepId id = 0; id < schedule.steps.size(); ++id) {
    if (feeds[id].size() == 1) {
      program.operations[id].local_done = feeds[id].front();
    } else if (!feeds[id].empty()) {
      const auto alone = counter_of.find({id});
      const uint32_t own = alone != counter_of.end() ? alone->second : program.counter_count++;
      program.operations[id].local_done = own;
      for (const uint32_t counter : feeds[id]) {
        if (counter != own) {
          program.operations.push_back({.kind = OperationKind::kNotify,
                                        .placement = Placement::kRank,
                                        .trigger = {.counter = own, .threshold = 1},
                                        .local_done = counter});
        }
      }
    }
  }
  return program;
}

}  // namespace ferry::mpi
