#include "transports/ofi/library.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/unique_fd.h"

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

// A library (psm_stand_in.c) with the name of one that libfabric is linked with: libfabric takes it
// in place of that one. Null: it cannot be loaded here.
void* LoadPsmStandIn() {
  constexpr uint8_t kBytes[] = {
#include "transports/ofi/psm_stand_in.inc"
  };
  const UniqueFd file(memfd_create("libpsm_infinipath.so.1", MFD_CLOEXEC));
  if (!file.valid() || write(file.get(), kBytes, sizeof(kBytes)) != sizeof(kBytes)) {
    return nullptr;
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

StatusOr<Libfabric> Load() {
  void* const stand_in = LoadPsmStandIn();
  void* library = dlopen(kFileName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr && stand_in != nullptr) {  // another libfabric may need more of it
    dlclose(stand_in);
    library = dlopen(kFileName, RTLD_NOW | RTLD_LOCAL);
  }
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
