#include "daemon/staging/fair_queue.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace ferry::daemon {

FairQueue::FairQueue(FlowWeights weights) : weights_(std::move(weights)) {}

FairQueue::Flow& FairQueue::FlowOf(uint32_t flow) {
  const auto [found, is_new] = flows_.try_emplace(flow);
  if (is_new) {
    const auto weight = weights_.find(flow);
    found->second.weight = weight == weights_.end() ? 1 : std::max<uint32_t>(weight->second, 1);
  }
  return found->second;
}

void FairQueue::Push(uint32_t flow, uint64_t id) {
  Flow& one = FlowOf(flow);
  if (one.line.empty()) {
    one.start = std::max(now_, one.finish);
  }
  one.line.push_back(id);
  ++size_;
}

uint64_t FairQueue::Pop() {
  Flow* next = nullptr;
  for (auto& [number, flow] : flows_) {
    if (!flow.line.empty() && (next == nullptr || flow.start < next->start)) {
      next = &flow;
    }
  }
  assert(next != nullptr);
  const uint64_t id = next->line.front();
  next->line.pop_front();
  --size_;
  return id;
}

std::vector<uint64_t> FairQueue::PopAll() {
  std::vector<uint64_t> ids;
  while (!empty()) {
    ids.push_back(Pop());
  }
  return ids;
}

void FairQueue::Charge(uint32_t flow, uint64_t bytes) {
  Flow& one = FlowOf(flow);
  now_ = std::max(now_, one.finish);
  one.finish = now_ + bytes / one.weight;
  one.start = one.finish;
}

uint32_t FairQueue::ShareOf(uint32_t flow, uint32_t total) {
  const Flow& asked = FlowOf(flow);
  uint64_t weights = asked.weight;
  for (const auto& [number, one] : flows_) {
    weights += &one != &asked && (one.held != 0 || !one.line.empty()) ? one.weight : 0;
  }
  return static_cast<uint32_t>(total * asked.weight / weights);
}

}  // namespace ferry::daemon
