// Which info hints a communicator has. MPI 5.0, section 7.4.4.
//
// Pure; any thread; does not block.
#pragma once

#include <vector>

#include "client/mpi/info/info.h"
#include "client/mpi/info/memory_kinds.h"

namespace ferry::mpi {

// The standard's hints for communicators with their defaults: what the program promises (or not) of
// its messages. Ferry knows them; none changes what it does.
std::vector<Info::Entry> DefaultHints();
// `hints` after the program has set `given`: hints that Ferry does not know, and values that a hint
// cannot have, are ignored. mpi_assert_memory_alloc_kinds is there once it was set, to kinds that
// are all among `kinds`.
std::vector<Info::Entry> WithHints(std::vector<Info::Entry> hints,
                                   const std::vector<Info::Entry>& given, const MemoryKinds& kinds);

}  // namespace ferry::mpi
