// The fopen that libfabric's library calls (it finds this program's before the C library's).
//
// Its provider verbs looks up two names in /proc/kallsyms as the library is opened, to know what
// RDMA cards may register: the kernel writes its 5 MB of text for each, which takes 65 ms, more
// than all the rest of a daemon's start. Without such a card no user of the library needs the
// answer.
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include <cstring>

namespace {

const char* InPlaceOf(const char* path) {
  return std::strcmp(path, "/proc/kallsyms") == 0 && access("/sys/class/infiniband", F_OK) != 0
             ? "/dev/null"
             : path;
}

}  // namespace

extern "C" FILE* fopen(const char* path, const char* mode) {
  using Open = FILE* (*)(const char*, const char*);
  static const auto next = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "fopen"));
  return next(InPlaceOf(path), mode);
}
