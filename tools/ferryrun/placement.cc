#include "tools/ferryrun/placement.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>
#include <string>

#include "common/counted.h"
#include "common/number_text.h"
#include "common/topology/shares.h"

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
      if (!mapping_.wraps) {
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

StatusOr<Mapping> ParsePerNode(std::string_view text) {
  Mapping mapping{.by = Mapping::By::kCount, .wraps = false};
  const size_t colon = text.find(':');
  const std::string_view number = text.substr(0, colon);
  mapping.count = NumberIn<decltype(mapping.count)>(number).value_or(0);
  if (mapping.count == 0) {
    return Refuse("--map-by ppr:" + std::string(text) + ": '" + std::string(number) +
                  "' is no number of ranks per node");
  }
  if (colon == text.npos || text.substr(colon + 1) != "node") {
    return Refuse("--map-by ppr:" + std::string(text) +
                  ": Ferry counts ranks per node only, as in ppr:2:node");
  }
  return mapping;
}

// The allowed part of each set; sets without one are left out.
std::vector<topology::CpuSet> Allowed(const std::vector<topology::CpuSet>& sets,
                                      const topology::CpuSet& allowed) {
  std::vector<topology::CpuSet> usable;
  for (const topology::CpuSet& set : sets) {
    if (set.Intersects(allowed)) {
      usable.push_back(set.Intersection(allowed));
    }
  }
  return usable;
}

// Those of cores of which no other job has a part.
topology::CpuSet FreeCpus(const topology::Machine& machine, const UsableCpus& usable) {
  topology::CpuSet taken = usable.taken;
  for (const topology::CpuSet& core : machine.cores) {
    if (core.Intersects(usable.taken)) {
      taken.Add(core);
    }
  }
  return usable.allowed.Without(taken);
}

// Why ranks are not bound: "3 ranks, but 2 cores".
std::string WhyNot(const UsableCpus& usable, uint64_t ranks, size_t all, size_t free) {
  if (ranks + usable.daemons > all) {
    return Counted(ranks, "rank") +
           (usable.daemons == 0 ? "" : " and " + Counted(usable.daemons, "daemon")) + ", but " +
           Counted(all, "core");
  }
  return "other jobs have " + std::to_string(all - free) + " of its " + Counted(all, "core");
}

}  // namespace

StatusOr<Mapping> ParseMapping(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view rest = lower;
  for (const std::string_view modifier : {":oversubscribe", ":nooversubscribe"}) {
    if (rest.ends_with(modifier)) {
      rest.remove_suffix(modifier.size());
    }
  }
  if (rest == "node") {
    return Mapping{.by = Mapping::By::kNode};
  }
  // Inside a node, ranks next to each other are neighbours in any case; --bind-to places them.
  if (rest == "slot" || rest == "core" || rest == "socket" || rest == "numa" ||
      rest == "hwthread") {
    return Mapping{};
  }
  if (rest.starts_with("ppr:")) {
    return ParsePerNode(rest.substr(4));
  }
  return Refuse("--map-by " + std::string(text) +
                ": it knows slot, node, ppr:N:node, and core, socket, numa and hwthread, which "
                "deal ranks out as slot does");
}

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
    dealer.BeginPart();
    for (uint64_t rank = 0; rank < part.ranks; ++rank) {
      const std::optional<uint32_t> node = dealer.Next(nodes);
      if (!node) {
        return Refuse("-n " + std::to_string(part.ranks) + ": " +
                      Counted(static_cast<int64_t>(nodes.size()), "node") +
                      " with ppr:" + std::to_string(mapping.count) + ":node: room for " +
                      Counted(static_cast<int64_t>(mapping.count * nodes.size()), "rank"));
      }
      node_of_rank.push_back(*node);
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

Binding ParseBinding(std::string_view name) {
  return name == "none"     ? Binding::kNone
         : name == "core"   ? Binding::kCore
         : name == "socket" ? Binding::kSocket
                            : Binding::kAuto;
}

StatusOr<RankPlaces> BindRanks(const topology::Machine& machine, const UsableCpus& usable,
                               Binding binding, uint64_t count) {
  RankPlaces places;
  if (binding == Binding::kNone) {
    return places;
  }
  const topology::CpuSet free = FreeCpus(machine, usable);
  if (binding == Binding::kAuto) {
    places.cpus = topology::ShareCores(machine, free, count, topology::CpusNearGpus(machine, count),
                                       usable.daemons);
    if (places.cpus.empty()) {
      places.why_not = WhyNot(usable, count, topology::CoresOf(machine, usable.allowed).size(),
                              topology::CoresOf(machine, free).size());
    }
  } else {
    const bool by_core = binding == Binding::kCore;
    std::vector<topology::CpuSet> from =
        by_core ? topology::CoresOf(machine, free) : Allowed(machine.sockets, usable.allowed);
    if (by_core && from.size() < count) {
      from = topology::CoresOf(machine, usable.allowed);  // asked for: then jobs share cores
    }
    if (from.empty() || (by_core && from.size() < count)) {
      return Refuse("--bind-to " + std::string(by_core ? "core: " : "socket: ") +
                    Counted(static_cast<int64_t>(count), "rank") + " here, but " +
                    Counted(static_cast<int64_t>(from.size()), by_core ? "core" : "socket") +
                    (by_core ? " (use --bind-to none, or fewer ranks)"
                             : " that they may use (use --bind-to none)"));
    }
    for (uint64_t rank = 0; rank < count; ++rank) {
      places.cpus.push_back(from[rank % from.size()]);
    }
  }
  for (const topology::CpuSet& cpus : places.cpus) {
    if (binding != Binding::kSocket && free.Contains(cpus)) {
      places.claimed.Add(cpus);
    }
  }
  return places;
}

}  // namespace ferry::tools
