// Programs that were built for another MPI library run on Ferry by a library of that one's name and
// binary interface (mpi/foreign), which they find first by LD_LIBRARY_PATH.
//
// FERRY_ABI in a rank's environment (ferryrun --abi) says which of these libraries it gets. auto,
// or nothing: those of the family of which its program, or a library of its program, names one,
// unless it names another MPI library, or one that Ferry's does not go with; of all families, where
// it names none. mpich, openmpi: those of this family, in any case. native: none.
//
// Any thread; reads the program's file and its libraries, and does not block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace ferry::tools {

inline constexpr std::string_view kInterfaces = "auto|native|mpich|openmpi";

// Puts the folders of these libraries first in LD_LIBRARY_PATH of a rank that runs `program` (a
// path), if it gets them. One that gets Open MPI's and no other also gets the variables by which
// such programs know their rank before MPI_Init; some decide by them whether to start MPI at all.
// `environment` has those of MPICH's launchers (rank_servers.h). kInvalidArgument: FERRY_ABI has
// another value. kNotFound: it is a family, and its libraries are not installed.
Status ChooseInterface(const std::string& program, std::vector<std::string>* environment);

// Returns true if a rank with that environment finds Ferry's library where its program names the
// other one.
bool IsServed(const std::string& program, const std::vector<std::string>& environment);

}  // namespace ferry::tools
