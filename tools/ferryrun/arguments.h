// ferryrun's command line.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/status.h"

namespace ferry::tools {

struct Arguments {
  uint64_t ranks = 1;
  uint64_t nodes = 1;
  bool private_daemons = false;  // asked for, or needed for more than one node
  bool label = true;
  bool keep_going = false;
  uint64_t grace_ms = 5000;
  std::string ferryd;                // empty: found beside ferryrun
  std::vector<std::string> options;  // "--name=value", for LoadOptions
  std::vector<std::string> program;  // its name first

  // Whether the command line names a run directory, so that a daemon must serve it.
  bool names_run_directory = false;
};

// The arguments, or the exit code after --help, --version or a mistake, which was printed. Main
// thread only.
std::variant<Arguments, int> ParseArguments(int argc, const char* const* argv);

}  // namespace ferry::tools
