// Where the program of this process lies: its companions lie beside it.
//
// Calling thread: any. Reads /proc; does not block.
#pragma once

#include <string>

namespace ferry {

// Its absolute path, links followed. Empty where /proc does not say.
std::string OwnProgram();

// The directory of that, without a slash at its end. "." where /proc does not say.
std::string OwnDirectory();

}  // namespace ferry
