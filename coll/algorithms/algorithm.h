// The algorithms there are for each collective, by name, and the schedules they make.
//
// selection.h decides which one a call takes. Sources: Thakur, Rabenseifner and Gropp,
// "Optimization of Collective Communication Operations in MPICH" (2005), for most; Bruck and others
// (1997) for what bears the name; Chen and others (2005) for the neighbour exchange. Pure
// functions: any thread, nothing blocks.
#pragma once

#include <span>
#include <string_view>

#include "coll/problem.h"
#include "coll/schedule.h"
#include "coll/schedule_builder.h"

namespace ferry::collective {

struct Algorithm {
  Collective collective;
  const char* name;              // "recursive_doubling"
  bool (*fits)(const Problem&);  // null: it solves every problem
  void (*add)(const Problem&, ScheduleBuilder*);
};

// The algorithms of one collective. The first one fits every problem.
std::span<const Algorithm> AlgorithmsOf(Collective collective);
// The algorithm between the groups of an intercommunicator. Null: they have no such collective, or
// do it as others do (barriers).
const Algorithm* InterAlgorithm(Collective collective);
// Null: there is none of that name.
const Algorithm* FindAlgorithm(Collective collective, std::string_view name);
bool Fits(const Algorithm& algorithm, const Problem& problem);
// All ranks must call it with the same algorithm and problems that belong together, and the
// algorithm must fit. The schedule has no step if there is nothing to do.
Schedule MakeSchedule(const Algorithm& algorithm, const Problem& problem);

// The lists of which these are made: one file for each kind.
std::span<const Algorithm> BarrierAlgorithms();
std::span<const Algorithm> BcastAlgorithms();
std::span<const Algorithm> GatherAlgorithms();
std::span<const Algorithm> ScatterAlgorithms();
std::span<const Algorithm> AllgatherAlgorithms();
std::span<const Algorithm> AlltoallAlgorithms();
std::span<const Algorithm> ReduceAlgorithms();
std::span<const Algorithm> AllreduceAlgorithms();
std::span<const Algorithm> ReduceScatterAlgorithms();
std::span<const Algorithm> ScanAlgorithms();
std::span<const Algorithm> ExscanAlgorithms();
std::span<const Algorithm> NeighbourAllgatherAlgorithms();
std::span<const Algorithm> NeighbourAlltoallAlgorithms();
// The algorithms of intercommunicators, at most one for each collective. No table names them.
std::span<const Algorithm> InterAlgorithms();

}  // namespace ferry::collective
