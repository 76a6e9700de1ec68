// Makes a fuzzed call, and reports what is wrong with its behaviour.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/mpi/fuzz/signatures.h"
#include "tests/mpi/fuzz/values.h"
#include "tests/mpi/fuzz/world.h"

namespace ferry::mpi {

// A call with one value for each of its parameters.
struct Attempt {
  const CallSignature* signature = nullptr;
  std::vector<Choices> choices;  // for all parameters
  std::vector<size_t> chosen;    // for each of them

  const Value& ValueOf(size_t parameter) const {
    return choices[parameter].values[chosen[parameter]];
  }
};

// The call with the first good value of each parameter.
Attempt GoodAttempt(const CallSignature& signature, World& world);

// MPI_Send(buf: a buffer, count: -1, ...).
std::string TextOf(const Attempt& attempt);

// Empty if all is well. A call returns MPI_SUCCESS or an error class that the standard has for one
// of its arguments; its message names it; if only one argument is bad, the call fails because of
// it; a call that fails makes and frees nothing; and a call gives everything that it makes to the
// caller. Ends the process, with a message, if the call does not return.
std::string Judge(const Attempt& attempt, World& world);

// As Judge, for a call in which other ranks take part, perhaps with other arguments: it may fail
// because of theirs, and succeed although arguments are wrong that do not count on this rank.
std::string JudgeAmongOthers(const Attempt& attempt, World& world);

}  // namespace ferry::mpi
