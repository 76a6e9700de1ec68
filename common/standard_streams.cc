// For programs: standard streams that are closed lead to /dev/null before anything of the program
// runs. A target that has this among its deps needs no more.
//
// Else the next descriptor that is opened would be 0, 1 or 2: an eventfd of a library's static
// initialiser, from which a rank would then read its input for ever, or a socket into which
// messages go that are meant for the user. So this comes before all initialisers, also those of
// libraries: the loader calls .preinit_array first (System V ABI).
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// System calls as they are: sanitizers' wrappers are not ready yet.
void FillStandardStreams(int, char**, char**) {
  for (long fd = 0; fd <= STDERR_FILENO; ++fd) {
    if (syscall(SYS_fcntl, fd, F_GETFD) < 0) {
      syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);  // takes the lowest number: this one
    }
  }
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const kFirst)(int, char**,
                                                                   char**) = &FillStandardStreams;

}  // namespace
