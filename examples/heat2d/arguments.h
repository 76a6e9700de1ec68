// heat2d's command line.
#pragma once

#include <string>

namespace heat2d {

struct Arguments {
  std::string image = "examples/heat2d/ferry.png";
  std::string output = "heat2d.png";
  int iterations = 200;
  bool check = true;
};

// False when the program should end with `exit_code`: after --help, or after a mistake that was
// reported (by rank 0's process alone, if `speak` says so).
bool ParseArguments(int argc, char** argv, bool speak, Arguments* arguments, int* exit_code);

}  // namespace heat2d
