// The memory and descriptors that processes of the job hold: a test looks before and after, and
// finds those that were not given back.
//
// Calling thread: any.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace ferry::vendor_memory {

using Holdings = std::map<std::string, size_t>;

// Returns the mappings and descriptors of this process and the job's daemons. Daemons are children
// of ferryrun, which is the ranks' grandparent, and daemons' workers are theirs.
Holdings FindHoldings();

// Pieces of the stand-ins' device memory that are mapped here: allocations, and what has been
// imported from other processes.
size_t DeviceMappings();

}  // namespace ferry::vendor_memory
