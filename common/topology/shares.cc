#include "common/topology/shares.h"

#include <algorithm>
#include <string>

namespace ferry::topology {
namespace {

// The cores of one NUMA node or socket.
struct Domain {
  std::vector<CpuSet> cores;
  size_t ranks = 0;  // that get a share of it
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

size_t CountShares(const std::vector<Domain>& domains, size_t share) {
  size_t count = 0;
  for (const Domain& domain : domains) {
    count += domain.cores.size() / share;
  }
  return count;
}

CpuSet Union(std::span<const CpuSet> cores) {
  CpuSet all;
  for (const CpuSet& core : cores) {
    all.Add(core);
  }
  return all;
}

// The domain of each rank: of those that want one, that one while it has room; the others go where
// the most cores are left, neighbours together.
std::vector<size_t> ChooseDomains(std::vector<Domain>* domains, size_t share, size_t ranks,
                                  std::span<const CpuSet> near) {
  const auto room = [&](const Domain& domain) {
    return domain.cores.size() - domain.ranks * share;
  };
  std::vector<size_t> chosen(ranks, domains->size());
  for (size_t rank = 0; rank < std::min(ranks, near.size()); ++rank) {
    for (size_t i = 0; i < domains->size() && chosen[rank] == domains->size(); ++i) {
      Domain& domain = (*domains)[i];
      if (room(domain) >= share && Union(domain.cores).Intersects(near[rank])) {
        chosen[rank] = i;
        ++domain.ranks;
      }
    }
  }
  const auto left = std::count(chosen.begin(), chosen.end(), domains->size());
  std::vector<size_t> others;
  for (auto i = left; i > 0; --i) {
    const auto most =
        std::max_element(domains->begin(), domains->end(),
                         [&](const Domain& a, const Domain& b) { return room(a) < room(b); });
    ++most->ranks;
    others.push_back(static_cast<size_t>(most - domains->begin()));
  }
  std::sort(others.begin(), others.end());
  auto next = others.begin();
  for (size_t& domain : chosen) {
    domain = domain == domains->size() ? *next++ : domain;
  }
  return chosen;
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
                               std::span<const CpuSet> near, size_t spare) {
  std::vector<Domain> domains = DomainsOf(machine, free);
  const size_t cores = CountShares(domains, 1);
  const size_t even = ranks == 0 || cores < spare ? 0 : (cores - spare) / ranks;
  std::vector<CpuSet> shares;
  if (even == 0) {
    return shares;
  }
  size_t inside = even;
  while (CountShares(domains, inside) < ranks) {
    --inside;
  }
  if (inside * 4 < even * 3) {
    std::vector<CpuSet> cores;
    for (const Domain& domain : domains) {
      cores.insert(cores.end(), domain.cores.begin(), domain.cores.end());
    }
    for (size_t rank = 0; rank < ranks; ++rank) {
      shares.push_back(Union(std::span(cores).subspan(rank * even, even)));
    }
    return shares;
  }
  std::vector<size_t> used(domains.size(), 0);
  for (const size_t domain : ChooseDomains(&domains, inside, ranks, near)) {
    shares.push_back(Union(std::span(domains[domain].cores).subspan(used[domain], inside)));
    used[domain] += inside;
  }
  return shares;
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
