// Scripts by which shells complete a tool's command line, made from the tables that it parses with.
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace ferry::tools {

struct CompletionFlag {
  std::string name;          // "-n", "--json"
  std::string help;          // one line
  int values = 0;            // how many words follow it
  std::string command = {};  // the one that takes it; empty: all
};

struct CompletionCommand {
  std::string name;
  std::string help;
};

struct CommandLine {
  std::string tool;
  std::vector<CompletionFlag> flags;
  std::vector<CompletionCommand> commands;  // none: what follows the flags is a program
};

// Returns the script for bash, zsh or fish. kInvalidArgument: another shell.
StatusOr<std::string> CompletionScript(const CommandLine& line, std::string_view shell);

}  // namespace ferry::tools
