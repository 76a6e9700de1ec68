// How the partitions of a collective are cut into units (units.h): of one or several neighbouring
// partitions, which go through the collective together.
//
// Plain arithmetic: any thread, nothing blocks.
#pragma once

#include <cstdint>

#include "mpi/partitioned/units.h"

namespace ferry::mpi {

// What a unit costs, a schedule with messages of its own, is little beside the copying of so much.
inline constexpr uint64_t kUnitBytesOfCollectives = uint64_t{16} << 10;
inline constexpr uint64_t kUnitsOfCollectives = 64;
// More are not made, as far as kPartitionsPerUnit allows, whatever the hints say: each takes a
// number of the communicator's.
inline constexpr uint64_t kMostUnitsOfCollectives = 4096;

// Cuts by size, as `limits` say, or, where they say nothing, by default: units of `least_bytes`.
// All ranks cut alike, for the sizes and the hints that decide it are the same on all.
Units CutCollective(int partitions, uint64_t partition_bytes, uint64_t least_bytes,
                    const UnitLimits& limits);

}  // namespace ferry::mpi
