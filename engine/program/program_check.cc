#include "engine/program/program_check.h"

#include <string>

namespace ferry::engine {
namespace {

Status Wrong(size_t operation, const std::string& why) {
  return {ErrorCode::kInvalidArgument, "operation " + std::to_string(operation) + " " + why};
}

Status CheckReferences(const ProgramSpec& spec) {
  for (size_t i = 0; i < spec.counters.size(); ++i) {
    if (spec.counters[i].word == nullptr) {
      return {ErrorCode::kInvalidArgument, "counter " + std::to_string(i) + " has no word"};
    }
  }
  const auto is_counter = [&](uint32_t counter) {
    return counter == kNoCounter || counter < spec.counters.size();
  };
  for (size_t i = 0; i < spec.operations.size(); ++i) {
    const Operation& operation = spec.operations[i];
    if (!is_counter(operation.trigger.counter) || !is_counter(operation.local_done)) {
      return Wrong(i, "refers to a counter that the program does not have");
    }
    if (operation.trigger.threshold == 0 ||
        (operation.trigger.counter == kNoCounter && operation.trigger.threshold != 1)) {
      return Wrong(i, "has a threshold of " + std::to_string(operation.trigger.threshold) +
                          ": it must be at least 1, and 1 where the start is the trigger");
    }
  }
  return {};
}

}  // namespace

std::vector<uint64_t> Strides(const ProgramSpec& spec) {
  std::vector<uint64_t> strides;
  for (const ProgramCounter& counter : spec.counters) {
    strides.push_back(counter.per_start);
  }
  for (const Operation& operation : spec.operations) {
    if (operation.local_done != kNoCounter && spec.counters[operation.local_done].per_start == 0) {
      ++strides[operation.local_done];
    }
  }
  return strides;
}

// Plays one start: what others add is there at once, then operations run as long as one can.
Status CheckProgram(const ProgramSpec& spec) {
  FERRY_RETURN_IF_ERROR(CheckReferences(spec));
  const std::vector<uint64_t> strides = Strides(spec);
  std::vector<uint64_t> values;
  for (const ProgramCounter& counter : spec.counters) {
    values.push_back(counter.per_start);
  }
  std::vector<bool> ran(spec.operations.size());
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < spec.operations.size(); ++i) {
      const Operation& operation = spec.operations[i];
      const uint32_t trigger = operation.trigger.counter;
      if (ran[i] || (trigger != kNoCounter && values[trigger] < operation.trigger.threshold)) {
        continue;
      }
      ran[i] = more = true;
      if (operation.local_done != kNoCounter &&
          spec.counters[operation.local_done].per_start == 0) {
        ++values[operation.local_done];
      }
    }
  }
  for (size_t i = 0; i < spec.operations.size(); ++i) {
    if (ran[i]) {
      continue;
    }
    const Trigger& trigger = spec.operations[i].trigger;
    const std::string counter = "counter " + std::to_string(trigger.counter);
    return Wrong(i, strides[trigger.counter] < trigger.threshold
                        ? "waits for " + counter + " to grow by " +
                              std::to_string(trigger.threshold) + ", but it grows by " +
                              std::to_string(strides[trigger.counter]) + " for each start"
                        : "waits for " + counter + ", which waits for it");
  }
  return {};
}

}  // namespace ferry::engine
