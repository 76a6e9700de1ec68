// The values of parameters that are handles, or addresses or arrays of them.
#pragma once

#include "tests/mpi/fuzz/kinds.h"
#include "tests/mpi/fuzz/values.h"

namespace ferry::mpi {

// Empty for other kinds of parameters.
Choices HandleChoices(Kind kind, World& world);

}  // namespace ferry::mpi
