#include "client/bootstrap/library_paths.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace ferry::client {

std::vector<std::string> LibraryPaths(const std::string& file, const std::string& build_folder) {
  std::vector<std::string> paths;
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&LibraryPaths), &self) != 0 && self.dli_fname != nullptr) {
    std::error_code ignored;
    const auto folder = std::filesystem::canonical(self.dli_fname, ignored).parent_path();
    if (!folder.empty()) {
      paths.push_back(folder / "ferry" / file);
      paths.push_back(folder / build_folder / file);
      paths.push_back(folder / file);
    }
  }
  paths.push_back(file);
  return paths;
}

}  // namespace ferry::client
