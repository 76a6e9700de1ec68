// The name that debuggers look for in a process of MPI: of the library that finds its message
// queues (mpi/queues/mqs.h).
#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>

// The name is the interface's. Where the dynamic linker says no more, the debugger looks for it.
extern "C" {
__attribute__((visibility("default"))) char MPIR_dll_name[PATH_MAX] = "libferry_queues.so";
}

namespace ferry::mpi {
namespace {

// False: there is no such file.
bool TakePath(const char* folder, int folder_length, const char* rest) {
  char path[PATH_MAX];
  const int written = std::snprintf(path, sizeof(path), "%.*s%s", folder_length, folder, rest);
  const bool is_there =
      written > 0 && static_cast<size_t>(written) < sizeof(path) && access(path, R_OK) == 0;
  if (is_there) {
    std::memcpy(MPIR_dll_name, path, static_cast<size_t>(written) + 1);
  }
  return is_there;
}

// It lies below or beside this library, wherever that is. Debuggers may look as soon as the process
// begins.
__attribute__((constructor)) void FindQueuesLibrary() {
  Dl_info own;
  if (dladdr(MPIR_dll_name, &own) == 0 || own.dli_fname == nullptr || own.dli_fname[0] != '/') {
    return;
  }
  const auto length = static_cast<int>(std::strrchr(own.dli_fname, '/') - own.dli_fname);
  if (!TakePath(own.dli_fname, length, "/ferry/libferry_queues.so")) {
    (void)TakePath(own.dli_fname, length, "/libferry_queues.so");
  }
}

}  // namespace
}  // namespace ferry::mpi
