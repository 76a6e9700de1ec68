#include "config/ensure_environment.h"

#include <cerrno>
#include <cstdlib>
#include <string>

namespace ferry::config {

Status EnsureEnvironment(std::span<const Variable> variables) {
  for (const Variable& variable : variables) {
    if (setenv(variable.name, variable.value, /*replace=*/0) != 0) {
      return StatusFromErrno(errno, std::string("setting ") + variable.name);
    }
  }
  return {};
}

}  // namespace ferry::config
