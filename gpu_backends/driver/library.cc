#include "gpu_backends/driver/library.h"

#include <dlfcn.h>

#include <utility>
#include <vector>

namespace ferry::gpu {

StatusOr<Library> Library::Open(std::string_view vendor, std::string_view path,
                                std::initializer_list<const char*> names) {
  const std::string given(path);
  std::vector<const char*> candidates(names);
  if (!given.empty()) {
    candidates = {given.c_str()};
  }
  // A release other than the application's would know nothing of its memory.
  for (const char* name : candidates) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); handle != nullptr) {
      return Library(handle, name);
    }
  }
  std::string said;
  for (const char* name : candidates) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return Library(handle, name);
    }
    said += (said.empty() ? "" : "; ") + std::string(dlerror());
  }
  return Status(ErrorCode::kNotFound, std::string(vendor) + " is not installed: " + said);
}

Status Library::Resolve(std::initializer_list<Symbol> symbols) const {
  std::string missing;
  for (const Symbol& symbol : symbols) {
    *symbol.address = Find(symbol.name);
    if (*symbol.address == nullptr && symbol.required) {
      missing += (missing.empty() ? "" : ", ") + std::string(symbol.name);
    }
  }
  if (!missing.empty()) {
    return {ErrorCode::kUnsupported,
            name_ + " has no " + missing + ": it is too old, or not what its name says"};
  }
  return {};
}

void* Library::Find(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace ferry::gpu
