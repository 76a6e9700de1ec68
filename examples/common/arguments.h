// The command line of the stencils.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "examples/common/array.h"
#include "examples/common/process_grid.h"

namespace examples {

// The ways of faces from rank to rank.
enum class Mode {
  kDirect,   // Ferry gets the memory in which they lie
  kNaive,    // the program copies them through host memory itself
  kCompared  // one after the other
};

struct StencilArguments {
  Triple points = {1, 1, 1};  // the edge included
  std::optional<Triple> grid;
  int iterations = 100;
  int threads = 0;  // 0: as many as there are cores for each rank
  Memory memory = Memory::kDevice;
  Mode mode = Mode::kDirect;
  std::optional<bool> check;  // absent: if that takes about a second
};

// A program's description of itself.
struct StencilProgram {
  const char* name;
  const char* summary;  // a line of help
  Triple points;        // by default
  int axes;             // 2 or 3
  bool has_threads;     // takes --threads, and no --grid; else the other way round
};

// A whole number from `least`.
bool ReadCount(std::string_view text, int least, int* count);

// False when the program should end with `exit_code`: after --help, or after a mistake that was
// reported (by rank 0's process alone, if `speak` says so).
bool ParseArguments(int argc, char** argv, const StencilProgram& program, bool speak,
                    StencilArguments* arguments, int* exit_code);

}  // namespace examples
