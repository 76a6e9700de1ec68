// Checks a descriptor before anybody maps it.
#pragma once

#include <cstdint>

#include "common/status.h"

namespace ferry::shm {

// The size of the memfd `fd`, which must be `size_bytes`, rounded up to pages (0 = any). kCorrupt,
// with the reason, unless every page of it is there for as long as it is mapped: sealed against
// shrinking, and of ordinary pages. (A hole punched into huge pages gives them back to a pool that
// may be empty when they are touched again: SIGBUS. Ordinary pages come back, zero.) kSystem.
//
// Any thread. Asks only what the kernel answers by itself: a file whose server is somebody else's
// process is refused before that server hears of it.
StatusOr<uint64_t> CheckSegmentFile(int fd, uint64_t size_bytes);

}  // namespace ferry::shm
