#include "shm/segment_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <string>

#include "shm/layout/session_layout.h"

namespace ferry::shm {
namespace {

Status Bad(const std::string& why) { return {ErrorCode::kCorrupt, "segment " + why}; }

}  // namespace

StatusOr<uint64_t> CheckSegmentFile(int fd, uint64_t size_bytes) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 && errno != EINVAL) {
    return StatusFromErrno(errno, "reading the seals of a segment");
  }
  // EINVAL: not a memfd at all, so nothing seals it.
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return Bad(
        "is not sealed against shrinking: its creator could cut it off under us; make it with "
        "CreateSegment");
  }
  struct statfs filesystem {};
  struct stat info {};
  if (fstatfs(fd, &filesystem) != 0 || fstat(fd, &info) != 0) {
    return StatusFromErrno(errno, "fstat of a segment");
  }
  if (filesystem.f_type != TMPFS_MAGIC) {
    return Bad(
        "is not made of ordinary pages: huge ones can vanish under us; make it with "
        "CreateSegment");
  }
  const auto actual_bytes = static_cast<uint64_t>(info.st_size);
  if (actual_bytes == 0 || (size_bytes != 0 && actual_bytes != RoundUpToPage(size_bytes))) {
    return Bad("has " + std::to_string(actual_bytes) + " bytes instead of " +
               std::to_string(RoundUpToPage(size_bytes)));
  }
  return actual_bytes;
}

}  // namespace ferry::shm
