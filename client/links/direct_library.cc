#include "client/links/direct_library.h"

#include <dlfcn.h>

#include <string>

#include "client/bootstrap/library_paths.h"
#include "common/version.h"
#include "proto/attach_protocol.h"

namespace ferry::client {
StatusOr<const DirectApi*> LoadDirectLibrary(const std::string& provider) {
  const std::string file =
      provider == attach::kOwnSockets ? "libferry_direct.so" : "libferry_direct_ofi.so";
  std::string tried;
  for (const std::string& path : LibraryPaths(file, "direct")) {
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
  return Status(ErrorCode::kNotFound,
                "cannot open " + file + ", which belongs beside libferry; tried:" + tried);
}

}  // namespace ferry::client
