#include "common/open_files.h"

#include <sys/resource.h>

namespace ferry {
namespace {

// Written once, by RaiseOpenFiles, in a process of one thread.
rlim_t usual = 0;
bool is_raised = false;

}  // namespace

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
