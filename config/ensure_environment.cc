#include "config/ensure_environment.h"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "common/own_program.h"
#include "config/environment.h"

namespace ferry::config {

Status EnsureEnvironment(char** argv, std::span<const Variable> variables) {
  const char* const* present = ProcessEnvironment();
  std::vector<std::string> added;
  for (const Variable& variable : variables) {
    if (!FindVariable(present, variable.name).has_value()) {
      added.push_back(std::string(variable.name) + "=" + variable.value);
    }
  }
  if (added.empty()) {
    return {};
  }
  std::vector<char*> environment;
  for (const char* const* entry = present; *entry != nullptr; ++entry) {
    environment.push_back(const_cast<char*>(*entry));
  }
  for (std::string& entry : added) {
    environment.push_back(entry.data());
  }
  environment.push_back(nullptr);
  // By its own path: executed as /proc/self/exe it would be called "exe" in ps and top.
  execve(OwnProgram().c_str(), argv, environment.data());
  return StatusFromErrno(errno, "executing this program anew to set " + added[0]);
}

}  // namespace ferry::config
