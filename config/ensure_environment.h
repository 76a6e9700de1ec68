// Variables that libraries read as they are loaded, for those that are opened after main began.
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

// Makes sure that the variables are in this process's environment: values that are there already
// stay. Pointers into the environment (ProcessEnvironment) that were taken before are void.
Status EnsureEnvironment(std::span<const Variable> variables);

}  // namespace ferry::config
