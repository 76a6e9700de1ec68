#include "tools/ferryrun/cpu_places.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/counted.h"
#include "common/number_text.h"
#include "common/topology/shares.h"
#include "tools/ferryrun/rankfile.h"

namespace ferry::tools {
namespace {

using topology::CpuSet;
using topology::Machine;

constexpr size_t kUntilFull = std::numeric_limits<size_t>::max();

Status Refuse(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// The hardware threads of each unit of a kind that are among these, in the machine's order; units
// without any are left out.
std::vector<CpuSet> UnitsOf(const Machine& machine, Unit unit, const CpuSet& among) {
  std::vector<CpuSet> units;
  const auto add = [&](const CpuSet& cpus) {
    if (cpus.Intersects(among)) {
      units.push_back(cpus.Intersection(among));
    }
  };
  switch (unit) {
    case Unit::kThread:
      for (const CpuSet& core : topology::CoresOf(machine, among)) {
        for (const uint32_t cpu : core.Cpus()) {
          units.push_back({cpu});
        }
      }
      break;
    case Unit::kCore:
      units = topology::CoresOf(machine, among);
      break;
    case Unit::kCache: {
      if (machine.caches.empty()) {
        return UnitsOf(machine, Unit::kNuma, among);
      }
      CpuSet rest = among;
      for (const CpuSet& cache : machine.caches) {
        add(cache);
        rest = rest.Without(cache);
      }
      add(rest);  // cores without such a cache
      break;
    }
    case Unit::kNuma:
      for (const topology::NumaNode& node : machine.nodes) {
        add(node.cpus);
      }
      break;
    case Unit::kSocket:
      std::for_each(machine.sockets.begin(), machine.sockets.end(), add);
      break;
    case Unit::kNode:
      break;
  }
  if (units.empty() && !among.empty()) {
    units.push_back(among);  // a machine of one node, or socket
  }
  return units;
}

// The one of these units that has the first of these CPUs.
size_t UnitWith(const std::vector<CpuSet>& units, const CpuSet& cpus) {
  const uint32_t first = cpus.Cpus().front();
  return static_cast<size_t>(
      std::find_if(units.begin(), units.end(),
                   [first](const CpuSet& unit) { return unit.Contains(first); }) -
      units.begin());
}

// Returns the allowed CPUs of the cores of which no other job has a part.
CpuSet FreeCpus(const Machine& machine, const UsableCpus& usable) {
  CpuSet taken = usable.taken;
  for (const CpuSet& core : machine.cores) {
    if (core.Intersects(usable.taken)) {
      taken.Add(core);
    }
  }
  return usable.allowed.Without(taken);
}

// Why ranks are not bound: "3 ranks, but 2 cores".
std::string WhyNot(const UsableCpus& usable, uint64_t ranks, std::string_view noun, size_t all,
                   size_t free) {
  if (ranks + usable.daemons > all) {
    return Counted(ranks, "rank") +
           (usable.daemons == 0 ? "" : " and " + Counted(usable.daemons, "daemon")) + ", but " +
           Counted(all, noun);
  }
  return "other jobs have " + std::to_string(all - free) + " of its " + Counted(all, noun);
}

// One rank after the other gets `width` items of a group, and `turn` of them before the next group
// has its turn. With kUntilFull, groups are filled one after the other. Nothing: items are too few.
std::optional<std::vector<CpuSet>> GiveOut(const std::vector<std::vector<CpuSet>>& groups,
                                           size_t width, size_t ranks, size_t turn, bool may_skip) {
  std::vector<size_t> used(groups.size(), 0);
  std::vector<CpuSet> given;
  for (size_t group = 0, had = 0, skipped = 0; given.size() < ranks;) {
    const bool is_full = group < groups.size() && groups[group].size() - used[group] < width;
    if (groups.empty() || (is_full && (++skipped > groups.size() || !may_skip))) {
      return std::nullopt;
    }
    if (!is_full) {
      CpuSet& cpus = given.emplace_back();
      for (size_t i = 0; i < width; ++i) {
        cpus.Add(groups[group][used[group]++]);
      }
      ++had;
      skipped = 0;
    }
    if (is_full || had == turn) {
      group = (group + 1) % groups.size();
      had = 0;
    }
  }
  return given;
}

class Binder {
 public:
  Binder(const Machine& machine, const UsableCpus& usable, const BindingRules& rules)
      : machine_(machine),
        usable_(usable),
        rules_(rules),
        mapping_(rules.mapping),
        ranks_(rules.threads.size()),
        free_(FreeCpus(machine, usable)) {}

  StatusOr<RankPlaces> Bind();

 private:
  Status CheckUnits() const;
  Status Share();
  Status GiveCores();
  Status GiveUnits();
  void Reorder();
  std::optional<std::vector<CpuSet>> CoresAmong(const CpuSet& cpus, Unit cell, size_t width) const;
  std::vector<CpuSet> SharesOfUnits(const Machine& cells) const;
  // ppr wants all units; else those that have some of these CPUs are enough.
  bool HasAllUnits(const CpuSet& cpus) const {
    return mapping_.per_unit == 0 || CountUnits(machine_, *mapping_.unit, cpus) ==
                                         CountUnits(machine_, *mapping_.unit, usable_.allowed);
  }
  // Which of `units` units the rank of this index is mapped to.
  size_t UnitIndex(size_t rank, size_t units) const {
    return rank / std::max<uint64_t>(mapping_.per_unit, 1) % units;
  }

  const Machine& machine_;
  const UsableCpus& usable_;
  const BindingRules& rules_;
  const Mapping& mapping_;
  const size_t ranks_;
  const CpuSet free_;
  RankPlaces places_;
};

// ppr has dealt ranks out to nodes by the number of units that one has where ferryrun was called.
Status Binder::CheckUnits() const {
  if (mapping_.per_unit == 0) {
    return {};
  }
  const uint64_t here = CountUnits(machine_, *mapping_.unit, usable_.allowed);
  const uint64_t there = mapping_.count / mapping_.per_unit;
  const std::string noun(NounOf(*mapping_.unit));
  return here == there ? Status()
                       : Refuse("--map-by ppr:" + std::to_string(mapping_.per_unit) + ":" +
                                std::string(NameOf(*mapping_.unit)) + ": there is room on " +
                                Counted(here, noun) + " here, and on " + std::to_string(there) +
                                " where ferryrun was called; ppr:N:node puts N on each node");
}

// The shares that ranks have of their units; none if some unit has fewer cores than ranks.
std::vector<CpuSet> Binder::SharesOfUnits(const Machine& cells) const {
  if (!HasAllUnits(free_)) {
    return {};
  }
  const std::vector<CpuSet> units = UnitsOf(machine_, *mapping_.unit, free_);
  std::vector<std::vector<size_t>> ranks_of(units.size());
  for (size_t rank = 0; rank < ranks_ && !units.empty(); ++rank) {
    ranks_of[UnitIndex(rank, units.size())].push_back(rank);
  }
  std::vector<CpuSet> shares(units.empty() ? 0 : ranks_);
  for (size_t unit = 0; unit < units.size(); ++unit) {
    std::vector<uint64_t> threads;
    for (const size_t rank : ranks_of[unit]) {
      threads.push_back(rules_.threads[rank]);
    }
    const std::vector<CpuSet> own =
        topology::ShareCores(cells, units[unit], threads.size(), {}, 0, threads);
    if (own.size() < threads.size()) {
      return {};
    }
    for (size_t i = 0; i < own.size(); ++i) {
      shares[ranks_of[unit][i]] = own[i];
    }
  }
  return shares;
}

Status Binder::Share() {
  Machine cells = machine_;
  if (mapping_.threads_are_cpus) {
    cells.cores = UnitsOf(machine_, Unit::kThread, usable_.allowed);
  }
  places_.cpus = mapping_.unit ? SharesOfUnits(cells)
                               : topology::ShareCores(cells, free_, ranks_,
                                                      topology::CpusNearGpus(machine_, ranks_),
                                                      usable_.daemons, rules_.threads);
  if (!places_.cpus.empty()) {
    return {};
  }
  const size_t all = topology::CoresOf(cells, usable_.allowed).size();
  places_.why_not =
      WhyNot(usable_, ranks_, NounOf(mapping_.threads_are_cpus ? Unit::kThread : Unit::kCore), all,
             topology::CoresOf(cells, free_).size());
  if (mapping_.unit && ranks_ + usable_.daemons <= all && free_ == usable_.allowed) {
    places_.why_not = "a " + std::string(NounOf(*mapping_.unit)) + " has fewer cores than ranks";
  }
  if (!mapping_.oversubscribes && ranks_ > all) {
    return Refuse("--nooversubscribe: " + places_.why_not);
  }
  return {};
}

// `width` cells among these CPUs for each rank; nothing if there are too few.
std::optional<std::vector<CpuSet>> Binder::CoresAmong(const CpuSet& cpus, Unit cell,
                                                      size_t width) const {
  const auto cells_by = [&](Unit unit) {
    std::vector<std::vector<CpuSet>> groups;
    for (const CpuSet& one : UnitsOf(machine_, unit, cpus)) {
      groups.push_back(UnitsOf(machine_, cell, one));
    }
    return groups;
  };
  // Cores or threads in turn are the next ones, each.
  if (mapping_.unit && *mapping_.unit > cell) {
    if (!HasAllUnits(cpus)) {
      return std::nullopt;
    }
    return GiveOut(cells_by(*mapping_.unit), width, ranks_, std::max<size_t>(mapping_.per_unit, 1),
                   /*may_skip=*/mapping_.per_unit == 0);
  }
  // Crosses no NUMA node, unless it must.
  auto given = GiveOut(cells_by(Unit::kNuma), width, ranks_, kUntilFull, /*may_skip=*/true);
  return given ? std::move(given)
               : GiveOut(cells_by(Unit::kNode), width, ranks_, kUntilFull, /*may_skip=*/true);
}

Status Binder::GiveCores() {
  const Unit cell = rules_.binding == Binding::kThread ? Unit::kThread : Unit::kCore;
  const size_t width = std::max<uint64_t>(mapping_.width, 1);
  auto given = CoresAmong(free_, cell, width);
  if (!given) {
    given = CoresAmong(usable_.allowed, cell, width);  // asked for: then jobs share cores
  }
  if (given) {
    places_.cpus = std::move(*given);
    return {};
  }
  const std::string noun(NounOf(cell));
  const size_t there = UnitsOf(machine_, cell, usable_.allowed).size();
  std::string message = "--bind-to " + std::string(NameOf(cell)) + ": " + Counted(ranks_, "rank") +
                        " here" +
                        (width == 1 ? "" : " with " + Counted(width, noun) + " each (PE)") +
                        ", but " + Counted(there, noun);
  if (mapping_.unit && *mapping_.unit > cell) {
    message += " on " + Counted(CountUnits(machine_, *mapping_.unit, usable_.allowed),
                                NounOf(*mapping_.unit));
  }
  return Refuse(message + " (use --bind-to none, or fewer ranks" +
                (width == 1 ? ")" : " or " + noun + "s for each)"));
}

// Units that several ranks may share.
Status Binder::GiveUnits() {
  const Unit kind = rules_.binding == Binding::kCache  ? Unit::kCache
                    : rules_.binding == Binding::kNuma ? Unit::kNuma
                                                       : Unit::kSocket;
  const size_t width = std::max<uint64_t>(mapping_.width, 1);
  // `width` of them together.
  const auto sets_among = [&](const CpuSet& cpus) {
    const std::vector<CpuSet> units = UnitsOf(machine_, kind, cpus);
    std::vector<CpuSet> sets((units.size() + width - 1) / width);
    for (size_t i = 0; i < units.size(); ++i) {
      sets[i / width].Add(units[i]);
    }
    return sets;
  };
  const std::vector<CpuSet> all = sets_among(usable_.allowed);
  if (all.empty()) {
    return Refuse("--bind-to " + std::string(NameOf(kind)) + ": there is none that " +
                  Counted(ranks_, "rank") + " may use (use --bind-to none)");
  }
  const std::vector<CpuSet> units =
      mapping_.unit ? UnitsOf(machine_, *mapping_.unit, usable_.allowed) : all;
  std::vector<size_t> had(units.size(), 0);
  for (size_t rank = 0; rank < ranks_; ++rank) {
    const size_t unit = UnitIndex(rank, units.size());
    if (!mapping_.unit) {
      places_.cpus.push_back(all[unit]);
    } else if (*mapping_.unit <= kind) {
      places_.cpus.push_back(all[std::min(UnitWith(all, units[unit]), all.size() - 1)]);
    } else {
      const std::vector<CpuSet> inside = sets_among(units[unit]);
      places_.cpus.push_back(inside[had[unit]++ % inside.size()]);
    }
  }
  return {};
}

// Gives the places to other ranks, of those that have as many threads.
void Binder::Reorder() {
  const bool fills = mapping_.order == Mapping::Order::kFill;
  if (places_.cpus.empty() || (mapping_.order != Mapping::Order::kUnit && !fills) ||
      (fills && !mapping_.unit) || (!fills && mapping_.order_unit == Unit::kNode)) {
    return;
  }
  const std::vector<CpuSet> units =
      UnitsOf(machine_, fills ? *mapping_.unit : mapping_.order_unit, usable_.allowed);
  std::map<uint64_t, std::vector<size_t>> alike;
  for (size_t rank = 0; rank < ranks_; ++rank) {
    alike[rules_.threads[rank]].push_back(rank);
  }
  const std::vector<CpuSet> before = places_.cpus;
  for (const auto& [threads, ranks] : alike) {
    // By how many of its unit come before it, then by unit; to fill, by unit only.
    std::vector<size_t> had(units.size() + 1, 0);
    std::vector<std::pair<std::pair<size_t, size_t>, size_t>> order;
    for (const size_t rank : ranks) {
      const size_t unit = UnitWith(units, before[rank]);
      order.push_back({{fills ? 0 : had[unit]++, unit}, rank});
    }
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < ranks.size(); ++i) {
      places_.cpus[ranks[i]] = before[order[i].second];
    }
  }
}

StatusOr<RankPlaces> Binder::Bind() {
  FERRY_RETURN_IF_ERROR(CheckUnits());
  if (rules_.binding == Binding::kNone || ranks_ == 0) {
    places_.why_not = "as --bind-to none says";
    return std::move(places_);
  }
  const bool takes_units = rules_.binding == Binding::kCache || rules_.binding == Binding::kNuma ||
                           rules_.binding == Binding::kSocket;
  FERRY_RETURN_IF_ERROR(rules_.binding == Binding::kAuto ? Share()
                        : takes_units                    ? GiveUnits()
                                                         : GiveCores());
  Reorder();
  for (const CpuSet& cpus : places_.cpus) {
    if (!takes_units && free_.Contains(cpus)) {
      places_.claimed.Add(cpus);
    }
  }
  return std::move(places_);
}

StatusOr<RankPlaces> BindToSlots(const Machine& machine, const UsableCpus& usable,
                                 const BindingRules& rules) {
  RankPlaces places;
  places.why_not = "the rankfile gives it no slot";
  for (const std::string& slot : rules.slots) {
    StatusOr<CpuSet> cpus =
        slot.empty() ? CpuSet()
                     : CpusOfSlot(machine, usable.allowed, slot, rules.mapping.threads_are_cpus);
    FERRY_RETURN_IF_ERROR(cpus.status());
    places.claimed.Add(cpus->Without(usable.taken));
    places.cpus.push_back(std::move(*cpus));
  }
  return places;
}

}  // namespace

uint64_t OpenMpThreads(std::string_view value) {
  uint64_t threads = 1;
  for (size_t end = 0; end != value.npos;) {
    end = value.find(',');
    std::string number(value.substr(0, end));
    std::erase(number, ' ');
    const uint64_t level = NumberIn<uint64_t>(number).value_or(0);
    threads = level > 0 && level <= topology::kMaxCpus / threads ? threads * level : 0;
    if (threads == 0) {
      return 0;
    }
    value.remove_prefix(end == value.npos ? value.size() : end + 1);
  }
  return threads;
}

StatusOr<RankPlaces> BindRanks(const Machine& machine, const UsableCpus& usable,
                               const BindingRules& rules) {
  return rules.slots.empty() ? Binder(machine, usable, rules).Bind()
                             : BindToSlots(machine, usable, rules);
}

uint64_t CountUnits(const Machine& machine, Unit unit, const CpuSet& cpus) {
  return UnitsOf(machine, unit, cpus).size();
}

std::string PictureOf(const Machine& machine, const CpuSet& allowed, const CpuSet& rank) {
  std::string picture;
  for (const CpuSet& socket : machine.sockets) {
    picture += "[";
    std::optional<size_t> node;  // of the core before
    for (const CpuSet& core : topology::CoresOf(machine, socket)) {
      const size_t own =
          static_cast<size_t>(std::find_if(machine.nodes.begin(), machine.nodes.end(),
                                           [&core](const topology::NumaNode& one) {
                                             return one.cpus.Intersects(core);
                                           }) -
                              machine.nodes.begin());
      picture += !node ? "" : *node == own ? "/" : "|";
      node = own;
      for (const uint32_t cpu : core.Cpus()) {
        picture += rank.Contains(cpu) ? "B" : allowed.Contains(cpu) ? "." : "-";
      }
    }
    picture += "]";
  }
  return picture;
}

}  // namespace ferry::tools
