#include "common/own_program.h"

#include <filesystem>
#include <system_error>

namespace ferry {

std::string OwnProgram() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

std::string OwnDirectory() {
  const std::string program = OwnProgram();
  return program.empty() ? "." : std::filesystem::path(program).parent_path().string();
}

}  // namespace ferry
