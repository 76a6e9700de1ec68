#include "client/bootstrap/pmix_binary.h"

#include <dlfcn.h>

namespace ferry::client {

void* OpenPmixFile() { return dlopen(kPmixFile, RTLD_NOW | RTLD_LOCAL); }

Status FindInPmixFile(void* library, const char* name, void** function) {
  *function = dlsym(library, name);
  return *function != nullptr
             ? Status()
             : Status(ErrorCode::kUnsupported, std::string(kPmixFile) + " has no " + name);
}

}  // namespace ferry::client
