#include "tools/ferryrun/placement.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>

#include "common/counted.h"

namespace ferry::tools {
namespace {

Status Refuse(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// Deals the ranks of all parts out, one after the other.
class Dealer {
 public:
  Dealer(const std::vector<uint64_t>& slots, const Mapping& mapping)
      : slots_(slots), mapping_(mapping), used_(slots.size(), 0), in_part_(slots.size(), 0) {}

  void BeginPart() {
    std::fill(in_part_.begin(), in_part_.end(), 0);
    rounds_ = 1;
  }
  // The node of the part's next rank; nothing if there is no room for it.
  std::optional<uint32_t> Next(const std::vector<uint32_t>& nodes) {
    while (true) {
      const size_t begin = mapping_.by == Mapping::By::kNode ? FirstAfterLast(nodes) : 0;
      for (size_t i = 0; i < nodes.size(); ++i) {
        const uint32_t node = nodes[(begin + i) % nodes.size()];
        if (HasRoom(node)) {
          ++used_[node];
          ++in_part_[node];
          last_ = node;
          return node;
        }
      }
      const bool by_count = mapping_.by == Mapping::By::kCount;
      if (by_count ? !mapping_.wraps : !mapping_.oversubscribes) {
        return std::nullopt;
      }
      ++rounds_;
    }
  }

 private:
  bool HasRoom(uint32_t node) const {
    return mapping_.by == Mapping::By::kCount ? in_part_[node] < mapping_.count * rounds_
                                              : used_[node] < slots_[node] * rounds_;
  }
  // Where the turn continues: behind the node that had it last, among those of this part.
  size_t FirstAfterLast(const std::vector<uint32_t>& nodes) const {
    const auto last = std::find(nodes.begin(), nodes.end(), last_);
    return last == nodes.end() ? 0 : static_cast<size_t>(last - nodes.begin()) + 1;
  }

  const std::vector<uint64_t>& slots_;
  const Mapping mapping_;
  std::vector<uint64_t> used_;     // by all parts
  std::vector<uint64_t> in_part_;  // by this one
  uint64_t rounds_ = 1;            // so often each node may be filled by now
  uint32_t last_ = UINT32_MAX;
};

// Numbers the ranks of a part, which are in the order in which they were dealt out, anew.
void Renumber(const Mapping& mapping, std::vector<uint32_t>* node_of_rank, size_t begin) {
  const auto first = node_of_rank->begin() + static_cast<ptrdiff_t>(begin);
  std::vector<uint32_t> order;  // nodes, in the order in which they have their first rank
  std::unordered_map<uint32_t, uint32_t> counts;
  for (auto node = first; node != node_of_rank->end(); ++node) {
    if (counts[*node]++ == 0) {
      order.push_back(*node);
    }
  }
  const bool in_turn = mapping.order == Mapping::Order::kUnit;
  for (auto next = first; next != node_of_rank->end();) {
    for (const uint32_t node : order) {
      const uint32_t take = std::min(counts[node], in_turn ? 1U : counts[node]);
      next = std::fill_n(next, take, node);
      counts[node] -= take;
    }
  }
}

// Why a part's ranks are too many for its nodes.
std::string NoRoom(const PartPlace& part, const std::vector<uint32_t>& nodes,
                   const std::vector<uint64_t>& slots, const Mapping& mapping) {
  uint64_t room = 0;
  for (const uint32_t node : nodes) {
    room += mapping.by == Mapping::By::kCount ? mapping.count : slots[node];
  }
  const std::string unit(mapping.per_unit > 0 ? NameOf(*mapping.unit) : "node");
  const std::string rule =
      mapping.by == Mapping::By::kCount
          ? "ppr:" + std::to_string(mapping.per_unit > 0 ? mapping.per_unit : mapping.count) + ":" +
                unit
          : "nooversubscribe";
  return "-n " + std::to_string(part.ranks) + ": " +
         Counted(static_cast<int64_t>(nodes.size()), "node") + " with " + rule + ": room for " +
         Counted(static_cast<int64_t>(room), "rank");
}

}  // namespace

Status CheckCounts(uint64_t ranks, uint64_t nodes, const config::Options& options) {
  const std::string n = std::to_string(ranks);
  if (ranks == 0) {
    return Refuse("-n 0: a job has at least one rank");
  }
  if (ranks > options.max_ranks) {
    return Refuse("-n " + n + ": a job has at most " +
                  Counted(static_cast<int64_t>(options.max_ranks), "rank") +
                  " (raise it with --max_ranks)");
  }
  if (nodes == 0) {
    return Refuse("--nodes 0: a job has at least one node");
  }
  if (nodes > ranks) {
    return Refuse("--nodes " + std::to_string(nodes) + " for -n " + n +
                  ": every node needs at least one rank");
  }
  return {};
}

StatusOr<std::vector<uint32_t>> PlaceRanks(const std::vector<PartPlace>& parts,
                                           const std::vector<uint64_t>& slots,
                                           const Mapping& mapping) {
  std::vector<uint32_t> all(slots.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<uint32_t> node_of_rank;
  Dealer dealer(slots, mapping);
  for (const PartPlace& part : parts) {
    const std::vector<uint32_t>& nodes = part.nodes.empty() ? all : part.nodes;
    const size_t begin = node_of_rank.size();
    dealer.BeginPart();
    for (uint64_t rank = 0; rank < part.ranks; ++rank) {
      const std::optional<uint32_t> node = dealer.Next(nodes);
      if (!node) {
        return Refuse(NoRoom(part, nodes, slots, mapping));
      }
      node_of_rank.push_back(*node);
    }
    if (mapping.order == Mapping::Order::kSlot ||
        (mapping.order == Mapping::Order::kUnit && mapping.order_unit == Unit::kNode)) {
      Renumber(mapping, &node_of_rank, begin);
    }
  }
  return node_of_rank;
}

Status CheckLocalCounts(const std::vector<uint32_t>& node_of_rank, uint64_t nodes,
                        const config::Options& options) {
  std::vector<uint64_t> counts(nodes, 0);
  for (const uint32_t node : node_of_rank) {
    ++counts[node];
  }
  const uint64_t largest = *std::max_element(counts.begin(), counts.end());
  if (largest > options.max_local_ranks) {
    return Refuse("-n " + std::to_string(node_of_rank.size()) + " on " +
                  Counted(static_cast<int64_t>(nodes), "node") + " puts " +
                  Counted(static_cast<int64_t>(largest), "rank") +
                  " on one, but a daemon serves at most " +
                  std::to_string(options.max_local_ranks) +
                  " (add nodes, or raise it with --max_local_ranks)");
  }
  return {};
}

std::vector<uint64_t> EvenSlots(uint64_t ranks, uint64_t nodes) {
  std::vector<uint64_t> slots;
  for (uint64_t node = 0; node < nodes; ++node) {
    slots.push_back(ranks / nodes + (node < ranks % nodes ? 1 : 0));
  }
  return slots;
}

}  // namespace ferry::tools
