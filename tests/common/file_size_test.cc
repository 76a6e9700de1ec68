#include "common/file_size.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "common/unique_fd.h"

namespace ferry {
namespace {

// In a process of its own, since what is to be shown may end it.
void ResizeBeyondTheLimit() {
  const rlimit limit = {4096, 4096};
  setrlimit(RLIMIT_FSIZE, &limit);
  const UniqueFd fd(memfd_create("test", MFD_CLOEXEC));
  const bool right = ResizeFile(fd.get(), 4096) == 0 && ResizeFile(fd.get(), 4097) == EFBIG;
  struct stat file {};
  fstat(fd.get(), &file);
  _exit(right && file.st_size == 4096 ? 0 : 1);
}

TEST(FileSizeTest, ALengthBeyondTheLimitIsAnErrorAndNoSignal) {
  EXPECT_EXIT(ResizeBeyondTheLimit(), testing::ExitedWithCode(0), "");
}

TEST(FileSizeTest, WhatCannotBeWrittenIsNamed) {
  const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(WriteAll(full.get(), "text", "/somewhere").message(),
            "cannot write /somewhere: No space left on device");
  EXPECT_TRUE(WriteAll(full.get(), "", "/somewhere").ok());
}

[[noreturn]] void SayWithLimitedAddresses() {
  const rlimit limit = {rlim_t{4096} << 20, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
  std::fputs(StatusFromErrno(ENOMEM, "mmap").message().c_str(), stderr);
  std::_Exit(0);
}

TEST(StatusFromErrnoTest, SaysWhichLimitToRaise) {
  EXPECT_EQ(StatusFromErrno(EMFILE, "socket").message(),
            "socket: Too many open files; `ulimit -n` bounds them");
  EXPECT_EQ(StatusFromErrno(EFBIG, "ftruncate").message(),
            "ftruncate: File too large; `ulimit -f` bounds files and shared memory");
  EXPECT_EQ(StatusFromErrno(ENOMEM, "mmap").message(), "mmap: Cannot allocate memory");
  EXPECT_EXIT(SayWithLimitedAddresses(), testing::ExitedWithCode(0),
              "mmap: Cannot allocate memory; `ulimit -v` bounds the address space to 4096 MiB");
  EXPECT_EQ(StatusFromErrno(ENOENT, "x").message(), "x: No such file or directory");
}

}  // namespace
}  // namespace ferry
