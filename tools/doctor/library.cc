#include "tools/doctor/library.h"

#include <dlfcn.h>
#include <link.h>

#include <vector>

#include "common/own_program.h"

namespace ferry::tools {
namespace {

constexpr char kLibrary[] = "libferry.so.0";
// Paths from the program's directory: beside its prefix's bin, and in a build tree.
constexpr const char* kPlaces[] = {"/../lib/", "/../../client/"};

}  // namespace

LibraryFacts FindLibrary() {
  std::vector<std::string> candidates;
  for (const char* place : kPlaces) {
    candidates.push_back(OwnDirectory() + place + kLibrary);
  }
  candidates.emplace_back(kLibrary);
  for (const std::string& candidate : candidates) {
    void* library = dlopen(candidate.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) {
      continue;
    }
    LibraryFacts facts{candidate, ""};
    if (link_map* map = nullptr; dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) {
      facts.path = map->l_name;
    }
    using VersionFunction = const char* (*)();
    if (auto version = reinterpret_cast<VersionFunction>(dlsym(library, "ferry_version"));
        version != nullptr) {
      facts.version = version();
    }
    return facts;  // the library stays: this program is short
  }
  return {};
}

}  // namespace ferry::tools
