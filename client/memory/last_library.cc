#include "client/memory/last_library.h"

#include <dlfcn.h>
#include <link.h>

#include <string>

namespace ferry::client {
namespace {

constexpr int kMostTries = 100;  // while other threads load libraries

std::string NameOfLast() {
  std::string name;
  (void)dl_iterate_phdr(
      [](dl_phdr_info* info, size_t /*size*/, void* last) {
        *static_cast<std::string*>(last) = info->dlpi_name;
        return 0;
      },
      &name);
  return name;
}

}  // namespace

LastLibrary::~LastLibrary() {
  if (handle_ != nullptr) {
    (void)dlclose(handle_);
  }
}

const void* const* LastLibrary::Find() {
  for (int tries = 0; tries < kMostTries; ++tries) {
    const std::string name = NameOfLast();
    void* const handle =
        dlopen(name.empty() ? nullptr : name.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_LOCAL);
    if (handle == nullptr) {
      continue;  // it has been unloaded meanwhile
    }
    if (handle_ != nullptr) {
      (void)dlclose(handle_);
    }
    handle_ = handle;
    link_map* map = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map == nullptr) {
      return nullptr;
    }
    if (map->l_next == nullptr) {
      return reinterpret_cast<const void* const*>(&map->l_next);
    }
  }
  return nullptr;
}

}  // namespace ferry::client
