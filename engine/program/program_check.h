// Whether a program makes sense: every operation of it runs once for each start.
#pragma once

#include <cstdint>
#include <vector>

#include "common/status.h"
#include "engine/program/operation.h"

namespace ferry::engine {

// How far each counter of the program grows for each start.
std::vector<uint64_t> Strides(const ProgramSpec& spec);

// kInvalidArgument names the operation that is wrong: it refers to a counter that is none, waits
// for more than its counter grows by, or for its own end.
Status CheckProgram(const ProgramSpec& spec);

}  // namespace ferry::engine
