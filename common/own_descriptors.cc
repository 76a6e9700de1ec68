#include "common/own_descriptors.h"

#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

namespace ferry {
namespace {

bool CloseRange(unsigned first, unsigned last, unsigned flags) {
  return syscall(SYS_close_range, first, last, flags) == 0;
}

}  // namespace

bool OwnDescriptors() { return CloseRange(INT_MAX, ~0U, CLOSE_RANGE_UNSHARE); }

bool OwnDescriptors(int kept) {
  const auto fd = static_cast<unsigned>(kept);
  if (!CloseRange(fd + 1, ~0U, CLOSE_RANGE_UNSHARE)) {
    return false;
  }
  return fd == 0 || CloseRange(0, fd - 1, 0);
}

}  // namespace ferry
