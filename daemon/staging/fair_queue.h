// Decides who gets the next of something scarce: start-time fair queueing (Goyal, Vin and Cheng,
// SIGCOMM 1996).
//
// Each flow (a rank) has a line of its own, first come first served. A grant costs its flow bytes /
// weight of virtual time, and the flow that is furthest behind is next. So flows that want more
// than there is move bytes by their weights, to within a block or two, however many wait in each
// line and however long their blocks are; none waits for ever; and one that wanted nothing for a
// while has saved up nothing.
//
// Pure: no clock, no memory but its own. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace ferry::daemon {

using FlowWeights = std::map<uint32_t, uint32_t>;  // by flow, 1 or more; 1 for others

class FairQueue {
 public:
  explicit FairQueue(FlowWeights weights = {});

  // `id`, the user's own name, waits behind the others of its flow.
  void Push(uint32_t flow, uint64_t id);
  // Takes out the one whose turn it is. There must be one.
  uint64_t Pop();
  // All that wait, in the order of their turns.
  std::vector<uint64_t> PopAll();
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // The flow was given `bytes`, whether it waited for them or not.
  void Charge(uint32_t flow, uint64_t bytes);

  // The flow holds one more, or one less, of what is shared.
  void Hold(uint32_t flow) { ++FlowOf(flow).held; }
  void Drop(uint32_t flow) { --FlowOf(flow).held; }
  // Its part of `total` among the flows that hold or want some, itself among them; rounded down.
  uint32_t ShareOf(uint32_t flow, uint32_t total);

 private:
  struct Flow {
    uint64_t weight = 1;
    uint64_t start = 0;   // of what it is given next, while somebody waits; virtual time
    uint64_t finish = 0;  // of what it was given last
    uint32_t held = 0;
    std::deque<uint64_t> line;
  };

  Flow& FlowOf(uint32_t flow);

  const FlowWeights weights_;
  std::map<uint32_t, Flow> flows_;
  uint64_t now_ = 0;  // virtual: the start of what was given last
  size_t size_ = 0;
};

}  // namespace ferry::daemon
