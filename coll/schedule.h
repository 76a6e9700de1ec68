// A schedule: what one rank does in a collective, as a graph of steps on numbered ranges of bytes.
//
// A schedule names the ranks to send to and receive from, and the ranges to copy and to reduce, but
// not the user's buffers: those are bound when it is started, so one schedule serves many calls.
// After the schedules of MPI-native partitioned collectives (Temucin and others, ExaMPI 2024): per
// step what comes in, from whom, the reduction, what goes out, to whom. Here the steps need no
// rounds in lockstep: each waits only for those whose bytes it needs.
//
// Plain data: any thread, nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/schedule/schedule.h"

namespace ferry::collective {

// The memory in which a range lies. kInput is only read.
enum class Place : uint8_t { kInput, kOutput, kScratch };
inline constexpr size_t kPlaces = 3;

struct Range {
  Place place = Place::kInput;
  size_t offset_bytes = 0;
  size_t size_bytes = 0;

  // Bytes [offset_bytes, offset_bytes + size_bytes) of this range.
  Range Part(size_t offset, size_t size) const { return {place, offset_bytes + offset, size}; }
  bool operator==(const Range&) const = default;
};

enum class StepKind : uint8_t {
  kSend,     // `left` to `peer`
  kReceive,  // from `peer` into `to`
  kCopy,     // `left` into `to`
  kReduce,   // left (operation) right into `to`, which is `left`, `right` or apart from both
  kJoin      // nothing: waits for earlier steps in place of those that wait for it
};

using engine::StepId;

struct Step {
  StepKind kind = StepKind::kJoin;
  int peer = -1;     // rank in the communicator
  uint32_t tag = 0;  // number of the message between the two in this direction
  Range left = {};
  Range right = {};
  Range to = {};
  uint32_t operation = 0;  // of a reduction: which of the reducer's
};

struct Schedule {
  std::vector<Step> steps;
  engine::StepGraph graph;  // the steps that each step waits for
  size_t scratch_bytes = 0;
  size_t element_bytes = 1;  // the unit of reductions
};

}  // namespace ferry::collective
