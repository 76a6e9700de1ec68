#include "tools/ferryrun/interface_folders.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "common/own_program.h"
#include "tools/ferryrun/machine.h"

namespace ferry::tools {

std::string FolderOf(const InterfaceFamily& family) {
  const std::filesystem::path own = OwnDirectory();
  const std::filesystem::path places[] = {
      "../lib/ferry", std::filesystem::path("../lib") / kMultiarch / "ferry", "../../mpi/foreign"};
  for (const std::filesystem::path& place : places) {
    const std::string folder = (own / place / family.name).lexically_normal();
    if (access((folder + "/" + std::string(family.library)).c_str(), R_OK) == 0) {
      return folder;
    }
  }
  return "";
}

bool LiesInOwnFolder(std::string_view path) {
  const std::filesystem::path file(path);
  return file.has_parent_path() &&
         std::any_of(kInterfaceFamilies.begin(), kInterfaceFamilies.end(),
                     [&file](const InterfaceFamily& family) {
                       const std::string folder = FolderOf(family);
                       std::error_code ignored;
                       return !folder.empty() &&
                              std::filesystem::equivalent(file.parent_path(), folder, ignored);
                     });
}

}  // namespace ferry::tools
