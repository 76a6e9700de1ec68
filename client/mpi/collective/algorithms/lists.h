// The algorithms of each collective, as algorithm.h finds them. One file for each kind.
#pragma once

#include <span>

#include "client/mpi/collective/algorithm.h"

namespace ferry::mpi {

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

}  // namespace ferry::mpi
