// Variables that libraries read before main().
//
// Main thread, before any other is started.
#pragma once

#include <span>

#include "common/status.h"

namespace ferry::config {

struct Variable {
  const char* name;
  const char* value;
};

// Makes sure that the variables are in the environment: where one is missing, sets those that are
// and executes this program anew with `argv`; values that are there already stay. Returns if
// nothing is missing (kOk) or if that failed (the system's error).
Status EnsureEnvironment(char** argv, std::span<const Variable> variables);

}  // namespace ferry::config
