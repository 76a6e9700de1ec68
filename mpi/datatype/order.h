// The order in which a datatype's bytes lie, as MPI-IO asks of filetypes (MPI 5.0, section 14.1.1):
// displacements that are not negative and never decrease, no overlap, and holes of whole etypes.
//
// Units: bytes. Calling thread: any. Takes time in proportion to the entries of the layout: a
// vector of a million blocks is one loop. Blocks: never.
#pragma once

#include <cstdint>

#include "mpi/datatype/datatype.h"

namespace ferry::mpi {

// The order in which the runs of one element lie in memory, walked in packed order.
struct RunOrder {
  int64_t first = 0;        // where the first run begins
  int64_t last = 0;         // where the last one begins
  int64_t high = 0;         // where the run that reaches furthest ends
  int64_t low = 0;          // where the run that begins lowest begins
  bool is_monotone = true;  // no run begins before the one in front of it
  bool is_disjoint = true;  // no run begins before the one in front of it ends
  // The greatest number that divides the length of each run, and the distance of each two.
  int64_t grain = 0;
};

// Returns the order of a datatype's runs. The datatype must have data.
RunOrder OrderOf(const Datatype& type);

}  // namespace ferry::mpi
