// How the partitions of a collective are cut into units (units.h): of one or several neighbouring
// partitions, which go through the collective together.
//
// Plain arithmetic: any thread, nothing blocks.
#pragma once

#include <cstdint>

#include "mpi/partitioned/units.h"

namespace ferry::mpi {

// The least bytes of a unit, by default. Each unit has a schedule with messages of its own, whose
// cost is small beside copying this much.
inline constexpr uint64_t kUnitBytesOfCollectives = uint64_t{16} << 10;
inline constexpr uint64_t kUnitsOfCollectives = 64;
// The most units of a collective, as far as kPartitionsPerUnit allows, whatever the hints say: each
// unit takes a number of the communicator's.
inline constexpr uint64_t kMostUnitsOfCollectives = 4096;

// Cuts the partitions into units as `limits` say, or, where they say nothing, into units of at
// least `least_bytes`. All ranks cut in the same way, since the sizes and hints that decide it are
// equal on all.
Units CutCollective(int partitions, uint64_t partition_bytes, uint64_t least_bytes,
                    const UnitLimits& limits);

}  // namespace ferry::mpi
