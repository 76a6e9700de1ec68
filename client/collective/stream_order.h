// A schedule as the steps of one stream, one after the other.
//
// A stream cannot wait for whichever message comes first: it waits where it is told to, and
// whatever stands behind that waits too. So messages are started as soon as what they need is
// there, receives before sends, and the stream waits only when nothing else is left to start: then
// for what the first step that is still to come (in the order in which the algorithm was written)
// needs. Two ranks never wait for each other in a circle: tests play all algorithms.
//
// Pure functions: any thread, nothing blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "client/collective/schedule.h"

namespace ferry::collective {

enum class StreamAction : uint8_t {
  kStart,    // a send or a receive, which goes on by itself
  kWait,     // until that is over
  kCompute,  // a copy or a reduction, which is over when the stream goes on
};

struct OrderedStep {
  StreamAction action = StreamAction::kStart;
  StepId step = 0;
};

// Every message of the schedule is started once and waited for once; joins leave nothing behind.
std::vector<OrderedStep> OrderForStream(const Schedule& schedule);

}  // namespace ferry::collective
