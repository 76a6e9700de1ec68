#include "common/topology/shares.h"

#include <algorithm>
#include <optional>
#include <string>

namespace ferry::topology {
namespace {

// The cores of one NUMA node or socket.
struct Domain {
  std::vector<CpuSet> cores;
  size_t used = 0;  // so many belong to ranks, of a choice that is being made
};

// How many cores each rank wants at least, and how many it wants at most; 0: as many as it gets.
struct Wish {
  size_t least = 1;
  size_t most = 0;

  size_t Granted(size_t share) const { return most == 0 ? share : most; }
};

std::vector<CpuSet> DomainCpus(const Machine& machine) {
  std::vector<CpuSet> cpus;
  for (const NumaNode& node : machine.nodes) {
    if (!node.cpus.empty()) {
      cpus.push_back(node.cpus);
    }
  }
  return cpus.size() > 1 ? cpus : machine.sockets;
}

// Every free core is in one of them.
std::vector<Domain> DomainsOf(const Machine& machine, const CpuSet& free) {
  const std::vector<CpuSet> cpus = DomainCpus(machine);
  std::vector<Domain> domains(cpus.size() + 1);  // the last one: of none of them
  for (const CpuSet& core : CoresOf(machine, free)) {
    const auto own = std::find_if(cpus.begin(), cpus.end(),
                                  [&core](const CpuSet& one) { return one.Intersects(core); });
    domains[static_cast<size_t>(own - cpus.begin())].cores.push_back(core);
  }
  return domains;
}

CpuSet Union(std::span<const CpuSet> cores) {
  CpuSet all;
  for (const CpuSet& core : cores) {
    all.Add(core);
  }
  return all;
}

// Chooses the domain of each rank, which is to have sizes[rank] cores of it: of those that want
// one, that one while it has room; the others go where the most cores are left, neighbours that
// want as many together. Nothing: some rank finds no room.
std::optional<std::vector<size_t>> ChooseDomains(std::vector<Domain>* domains,
                                                 std::span<const size_t> sizes,
                                                 std::span<const CpuSet> near) {
  const auto room = [](const Domain& domain) { return domain.cores.size() - domain.used; };
  for (Domain& domain : *domains) {
    domain.used = 0;
  }
  std::vector<size_t> chosen(sizes.size(), domains->size());
  for (size_t rank = 0; rank < std::min(sizes.size(), near.size()); ++rank) {
    for (size_t i = 0; i < domains->size() && chosen[rank] == domains->size(); ++i) {
      Domain& domain = (*domains)[i];
      if (room(domain) >= sizes[rank] && Union(domain.cores).Intersects(near[rank])) {
        chosen[rank] = i;
        domain.used += sizes[rank];
      }
    }
  }
  for (size_t begin = 0, end = 0; begin < sizes.size(); begin = end) {
    std::vector<size_t> others;
    for (end = begin; end < sizes.size() && sizes[end] == sizes[begin]; ++end) {
      if (chosen[end] != domains->size()) {
        continue;
      }
      const auto most =
          std::max_element(domains->begin(), domains->end(),
                           [&](const Domain& a, const Domain& b) { return room(a) < room(b); });
      if (room(*most) < sizes[end]) {
        return std::nullopt;
      }
      most->used += sizes[end];
      others.push_back(static_cast<size_t>(most - domains->begin()));
    }
    std::sort(others.begin(), others.end());
    auto next = others.begin();
    for (size_t rank = begin; rank < end; ++rank) {
      chosen[rank] = chosen[rank] == domains->size() ? *next++ : chosen[rank];
    }
  }
  return chosen;
}

// The wishes that `cores` are enough for: those of ranks, or else a share each.
std::vector<Wish> WishesOf(std::span<const uint64_t> wanted, size_t ranks, size_t cores) {
  std::vector<Wish> wishes(ranks);
  size_t sum = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const uint64_t want = rank < wanted.size() ? wanted[rank] : 0;
    if (want > cores) {
      return std::vector<Wish>(ranks);
    }
    wishes[rank] = {std::max<size_t>(want, 1), want};
    sum += wishes[rank].least;
  }
  return sum <= cores ? wishes : std::vector<Wish>(ranks);
}

// So many cores more than it wants at least for each rank.
std::vector<size_t> SizesOf(const std::vector<Wish>& wishes, size_t more) {
  std::vector<size_t> sizes;
  for (const Wish& wish : wishes) {
    sizes.push_back(wish.least + more);
  }
  return sizes;
}

// As many of these cores as the rank is granted, of one domain if there are.
CpuSet Trim(std::span<const CpuSet> share, size_t granted, const std::vector<CpuSet>& domains) {
  for (size_t first = 0; first + granted <= share.size(); ++first) {
    const std::span<const CpuSet> part = share.subspan(first, granted);
    if (std::any_of(domains.begin(), domains.end(), [part](const CpuSet& domain) {
          return domain.Intersects(part.front()) && domain.Intersects(part.back());
        })) {
      return Union(part);
    }
  }
  return Union(share.first(granted));
}

// For each rank so many of the cores of its domain as `sizes` says, and of these what it wants.
std::vector<CpuSet> SharesIn(const std::vector<Domain>& domains,
                             const std::vector<size_t>& domain_of_rank,
                             const std::vector<Wish>& wishes, const std::vector<size_t>& sizes,
                             const std::vector<CpuSet>& edges) {
  std::vector<size_t> used(domains.size(), 0);
  std::vector<CpuSet> shares;
  for (size_t rank = 0; rank < wishes.size(); ++rank) {
    const size_t domain = domain_of_rank[rank];
    const auto share = std::span(domains[domain].cores).subspan(used[domain], sizes[rank]);
    shares.push_back(Trim(share, wishes[rank].Granted(sizes[rank]), edges));
    used[domain] += sizes[rank];
  }
  return shares;
}

}  // namespace

std::vector<CpuSet> CoresOf(const Machine& machine, const CpuSet& allowed) {
  std::vector<CpuSet> cores;
  for (const CpuSet& core : machine.cores) {
    if (core.Intersects(allowed)) {
      cores.push_back(core.Intersection(allowed));
    }
  }
  return cores;
}

std::vector<CpuSet> ShareCores(const Machine& machine, const CpuSet& free, size_t ranks,
                               std::span<const CpuSet> near, size_t spare,
                               std::span<const uint64_t> wanted) {
  std::vector<Domain> domains = DomainsOf(machine, free);
  Domain whole;
  for (const Domain& domain : domains) {
    whole.cores.insert(whole.cores.end(), domain.cores.begin(), domain.cores.end());
  }
  if (ranks == 0 || whole.cores.size() < spare + ranks) {
    return {};
  }
  const size_t cores = whole.cores.size() - spare;
  const std::vector<Wish> wishes = WishesOf(wanted, ranks, cores);
  size_t least = 0;
  bool all_say = true;  // how many cores they want
  for (const Wish& wish : wishes) {
    least += wish.least;
    all_say &= wish.most > 0;
  }
  const size_t even = (cores - least) / ranks;
  // A rank that is near its device loses nothing that it wants.
  const bool is_content = all_say && !near.empty();
  const std::vector<CpuSet> edges = DomainCpus(machine);
  for (size_t more = even + 1; more-- > 0 && (is_content || (more + 1) * 4 >= (even + 1) * 3);) {
    const std::vector<size_t> sizes = SizesOf(wishes, more);
    if (const auto chosen = ChooseDomains(&domains, sizes, near)) {
      return SharesIn(domains, *chosen, wishes, sizes, edges);
    }
  }
  return SharesIn({whole}, std::vector<size_t>(ranks, 0), wishes, SizesOf(wishes, even), edges);
}

std::vector<CpuSet> CpusNearGpus(const Machine& machine, size_t ranks) {
  const auto begins = [](const char* with) {
    return [with](const std::string& name) { return name.starts_with(with); };
  };
  std::vector<CpuSet> cpus;
  for (const Device& device : machine.devices) {
    // The display of a server's management controller has a card, but nothing that computes.
    const bool is_display =
        std::any_of(device.names.begin(), device.names.end(), begins("card")) &&
        std::none_of(device.names.begin(), device.names.end(), begins("renderD"));
    if (device.kind == DeviceKind::kGpu && !is_display) {
      cpus.push_back(device.cpus);
    }
  }
  std::vector<CpuSet> near;
  for (size_t rank = 0; rank < ranks && !cpus.empty(); ++rank) {
    near.push_back(cpus[rank % cpus.size()]);
  }
  return near;
}

}  // namespace ferry::topology
