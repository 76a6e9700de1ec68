// plugins FIRST SECOND THIRD: opens libraries that call MPI from Fortran, none of which sees the
// names of another, as Python opens its modules; the last two one after the other.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int call(void* library, const char* name) {
  int (*const function)(void) = (int (*)(void))dlsym(library, name);
  if (function == NULL) {
    puts(dlerror());
    exit(3);
  }
  return function();
}

static void* open_library(const char* path, int flags) {
  void* const library = dlopen(path, flags | RTLD_LOCAL);
  if (library == NULL) {
    puts(dlerror());
    exit(3);
  }
  return library;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    return 2;
  }
  int failed = 0;
  void* const first = open_library(argv[1], RTLD_LAZY);
  failed += call(first, "start");
  failed += call(first, "work");
  void* const second = open_library(argv[2], RTLD_LAZY);
  failed += call(second, "work");
  failed += call(first, "work");
  dlclose(second);
  // It is bound at once.
  void* const third = open_library(argv[3], RTLD_NOW);
  failed += call(third, "work");
  failed += call(first, "work");
  failed += call(third, "work");
  failed += call(third, "finish");
  puts(failed == 0 ? "all right" : "wrong");
  return failed != 0;
}
