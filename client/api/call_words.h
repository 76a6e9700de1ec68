// A call of a thread in the words that `ferryctl why` uses of it (shm::CallPhrase), for what a rank
// itself says of its calls.
//
// Calling thread: the call's own. Nothing blocks.
#pragma once

#include <string>

#include "client/api/calls.h"

namespace ferry::client {

// "MPI_Bcast on rows, number 5, root rank 1, 100 B"; empty: the function has no line.
std::string PhraseOf(const CallNote& note);

}  // namespace ferry::client
