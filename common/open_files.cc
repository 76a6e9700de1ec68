#include "common/open_files.h"

#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

namespace ferry {
namespace {

bool CloseRange(unsigned first, unsigned last, unsigned flags) {
  return syscall(SYS_close_range, first, last, flags) == 0;
}

// Written once, by RaiseOpenFiles, in a process of one thread.
rlim_t usual = 0;
bool is_raised = false;

}  // namespace

// ---- OwnDescriptors ----

bool OwnDescriptors() {
  return CloseRange(INT_MAX, ~0U, CLOSE_RANGE_UNSHARE) || unshare(CLONE_FILES) == 0;
}

bool OwnDescriptors(int kept) {
  const auto fd = static_cast<unsigned>(kept);
  if (CloseRange(fd + 1, ~0U, CLOSE_RANGE_UNSHARE)) {
    return fd == 0 || CloseRange(0, fd - 1, 0);
  }
  const int last = unshare(CLONE_FILES) == 0 ? LastDescriptor() : -1;
  for (int other = 0; other <= last; ++other) {
    if (other != kept) {
      close(other);
    }
  }
  return last >= 0;
}

int LastDescriptor() {
  int last = -1;
  if (DIR* directory = opendir("/proc/thread-self/fd"); directory != nullptr) {
    while (const dirent* entry = readdir(directory)) {
      last = std::max(last, entry->d_name[0] != '.' ? atoi(entry->d_name) : -1);
    }
    closedir(directory);
  }
  return last;
}

// ---- OpenFiles ----

OpenFiles CountOpenFiles() {
  OpenFiles files;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  files.limit = limit.rlim_cur;
  if (DIR* directory = opendir("/proc/self/fd"); directory != nullptr) {
    while (const dirent* entry = readdir(directory)) {
      files.open += entry->d_name[0] != '.' ? 1 : 0;
    }
    closedir(directory);
    --files.open;  // the directory's own
  }
  return files;
}

void RaiseOpenFiles() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) {
    return;
  }
  usual = files.rlim_cur;
  files.rlim_cur = files.rlim_max;
  is_raised = setrlimit(RLIMIT_NOFILE, &files) == 0;
}

void RestoreOpenFiles() {
  rlimit files{};
  if (is_raised && getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = usual;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

}  // namespace ferry
