#include "transports/ofi/library.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace ferry::transport {
namespace {

constexpr char kFileName[] = "libfabric.so.1";

// The newest version of the function in the library, as the linker would bind it: structures only
// grow at their ends, and the library itself makes those that it reads.
template <typename Function>
Status Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr
             ? Status()
             : Status(ErrorCode::kVersionMismatch,
                      std::string(kFileName) + " has no " + name + ": another libfabric is needed");
}

StatusOr<Libfabric> Load() {
  void* library = dlopen(kFileName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Status(ErrorCode::kNotFound, std::string("the network's library cannot be opened: ") +
                                            dlerror() + " (Debian's package is libfabric1)");
  }
  Libfabric calls;
  FERRY_RETURN_IF_ERROR(Find(library, "fi_getinfo", &calls.getinfo));
  FERRY_RETURN_IF_ERROR(Find(library, "fi_freeinfo", &calls.freeinfo));
  FERRY_RETURN_IF_ERROR(Find(library, "fi_dupinfo", &calls.dupinfo));
  FERRY_RETURN_IF_ERROR(Find(library, "fi_fabric", &calls.fabric));
  FERRY_RETURN_IF_ERROR(Find(library, "fi_version", &calls.version));
  FERRY_RETURN_IF_ERROR(Find(library, "fi_strerror", &calls.strerror));
  return calls;
}

}  // namespace

StatusOr<const Libfabric*> OpenLibfabric() {
  static const auto& library = *new StatusOr<Libfabric>(Load());  // also for destructors at exit
  FERRY_RETURN_IF_ERROR(library.status());
  return &*library;
}

const Libfabric& OpenedLibfabric() {
  const StatusOr<const Libfabric*> library = OpenLibfabric();
  if (!library.ok()) {
    std::fprintf(stderr, "ferry: %s\n", library.status().message().c_str());
    std::abort();  // nobody can hold anything of it
  }
  return **library;
}

}  // namespace ferry::transport
