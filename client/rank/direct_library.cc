#include "client/rank/direct_library.h"

#include <dlfcn.h>

#include <string>

#include "client/core/library_paths.h"
#include "common/version.h"

namespace ferry::client {
namespace {

constexpr char kFileName[] = "libferry_direct.so";

}  // namespace

StatusOr<const DirectApi*> LoadDirectLibrary() {
  std::string tried;
  for (const std::string& path : LibraryPaths(kFileName, "direct")) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      tried += std::string("\n  ") + dlerror();
      continue;
    }
    const auto entry = reinterpret_cast<DirectEntry>(dlsym(library, kDirectEntryName));
    const DirectApi* api = entry == nullptr ? nullptr : entry();
    if (api == nullptr || api->version != kDirectApiVersion ||
        api->layout_version != kLayoutVersion) {
      return Status(ErrorCode::kVersionMismatch,
                    path + " is of another release of Ferry than libferry");
    }
    return api;
  }
  return Status(ErrorCode::kNotFound, std::string("cannot open ") + kFileName +
                                          ", which belongs beside libferry; tried:" + tried);
}

}  // namespace ferry::client
