// Orders the steps of a schedule for one stream, one after the other.
//
// A stream cannot wait for whichever message comes first: it waits where it is told to, and all
// later operations wait, too. So messages are started as soon as their data are there, receives
// before sends, and the stream waits only when nothing else is left to start: then for the data
// that the first step still to come needs (in the order in which the algorithm was written). Two
// ranks never wait for each other in a circle: tests play all algorithms.
//
// Chains. The network may pass messages on by itself: a send then follows the receives that it
// waits for (client/api/program_step.h), and is started together with the first of them. The
// stream's own waits stay in the order above, so no circle arises: a send that follows is a send
// that was started early and whose data come later, as those of a slow sender do.
//
// Pure functions: any thread, nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "coll/schedule.h"

namespace ferry::collective {

enum class StreamAction : uint8_t {
  kStart,    // a send or a receive, which goes on by itself
  kWait,     // until that is over
  kCompute,  // a copy or a reduction, which is over when the stream goes on
};

struct OrderedStep {
  StreamAction action = StreamAction::kStart;
  StepId step = 0;
  std::vector<StepId> follows = {};  // kStart of a send: receives, started before their waits
};

// The rules for steps that may be parts of chains.
struct ChainRules {
  // Returns true if that send or receive may be part of a chain; null: no step may.
  std::function<bool(StepId)> may_chain;
  size_t most_followed = 0;   // by one send; with more it waits for its stream
  size_t most_followers = 0;  // of one receive; further ones wait
};

// Every message of the schedule is started once and waited for once; joins leave nothing behind.
std::vector<OrderedStep> OrderForStream(const Schedule& schedule, const ChainRules& rules = {});

}  // namespace ferry::collective
