#include "tools/ferryrun/exchange_hub.h"

#include <set>
#include <utility>

namespace ferry::tools {

ExchangeHub::ExchangeHub(std::vector<uint32_t> machine_of_rank)
    : machine_of_rank_(std::move(machine_of_rank)),
      machines_(std::set(machine_of_rank_.begin(), machine_of_rank_.end()).size()) {}

size_t ExchangeHub::MachinesOf(const std::vector<uint32_t>& ranks) const {
  if (ranks.empty()) {
    return machines_;
  }
  std::set<uint32_t> machines;
  for (const uint32_t rank : ranks) {
    if (rank < machine_of_rank_.size()) {
      machines.insert(machine_of_rank_[rank]);
    }
  }
  return machines.size();
}

std::vector<ExchangeHub::Outgoing> ExchangeHub::TakePart(uint32_t machine,
                                                         const ExchangeMessage& message) {
  Fence& fence = fences_[message.fence];
  if (!fence.parts.emplace(machine, message).second) {
    return {};
  }
  if (fence.why_not.empty()) {
    fence.why_not = message.why;
  }
  std::vector<Outgoing> out;
  const bool is_complete = fence.parts.size() >= MachinesOf(message.ranks);
  if (!is_complete && fence.why_not.empty()) {
    return out;
  }
  ExchangeMessage whole{.kind = ExchangeMessage::Kind::kWhole, .fence = message.fence};
  whole.why = fence.why_not;
  if (whole.why.empty()) {
    size_t bytes = 0;
    for (const auto& [from, part] : fence.parts) {
      bytes += part.data.size();
    }
    if (bytes > kMostExchangeBytes) {
      whole.why = std::to_string(bytes) +
                  " bytes that the ranks have put for each other; ferryrun passes on " +
                  std::to_string(kMostExchangeBytes) + " at most";
    } else {
      whole.data.reserve(bytes);
      for (const auto& [from, part] : fence.parts) {
        whole.data += part.data;
      }
    }
  }
  // A machine that has itself said that there will be no such fence does not wait for it.
  for (auto& [to, part] : fence.parts) {
    if (part.why.empty()) {
      out.push_back({to, whole});
      part.why = whole.why;  // it has been told
    }
  }
  if (is_complete) {
    fences_.erase(message.fence);
  }
  return out;
}

std::vector<ExchangeHub::Outgoing> ExchangeHub::Take(uint32_t machine,
                                                     const ExchangeMessage& message) {
  switch (message.kind) {
    case ExchangeMessage::Kind::kPart:
      return TakePart(machine, message);
    case ExchangeMessage::Kind::kAsk:
      if (message.rank < machine_of_rank_.size()) {
        ExchangeMessage ask = message;
        ask.machine = machine;
        return {{machine_of_rank_[message.rank], std::move(ask)}};
      }
      return {};
    case ExchangeMessage::Kind::kAnswer:
      return {{message.machine, message}};
    default:
      return {};
  }
}

}  // namespace ferry::tools
