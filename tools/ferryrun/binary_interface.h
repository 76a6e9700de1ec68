// Programs that were built for another MPI library run on Ferry by a library of that one's name and
// binary interface (mpi/foreign), which they find first by LD_LIBRARY_PATH.
//
// FERRY_ABI in a rank's environment (ferryrun --abi) says whether it gets that path. auto, or
// nothing: unless its program names another MPI library, or one that the library does not go with;
// mpich: in any case; native: not.
//
// Any thread; reads the program's file, and does not block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace ferry::tools {

inline constexpr std::string_view kInterfaces = "auto|native|mpich";

// Puts the folder of these libraries first in LD_LIBRARY_PATH of a rank that runs `program` (a
// path), if it gets them. kInvalidArgument: FERRY_ABI has another value. kNotFound: it is mpich,
// and the libraries are not installed.
Status ChooseInterface(const std::string& program, std::vector<std::string>* environment);

// Returns true if a rank with that environment finds Ferry's library where its program names the
// other one.
bool IsServed(const std::string& program, const std::vector<std::string>& environment);

}  // namespace ferry::tools
