// The memory of a staging block while it is a part of its pool: admitted to those who copy, and in
// the end, when nobody has it any more, dismissed and its pages given back to the system.
//
// A pool's memfd has its full size from the start, for the job's worker maps it once and it is
// sealed against resizing. Pages come where they are first touched, and go by punching a hole: the
// block's place in the file and in every mapping stays, with the keys and offsets that others hold,
// and a process that touches it nevertheless finds zeros.
//
// Threads: any, one at a time; Admit and the destructor may take milliseconds, and belong on the
// registrar's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/unique_fd.h"
#include "daemon/staging/copier.h"
#include "shm/segment.h"

namespace ferry::daemon {

// The memory of which blocks are pieces.
struct StagingMemory {
  UniqueFd fd;
  shm::Mapping mapping;
};

class BlockMemory {
 public:
  // `user` may be null.
  BlockMemory(std::shared_ptr<const StagingMemory> whole, std::byte* base, uint64_t bytes,
              std::shared_ptr<MemoryUser> user);
  ~BlockMemory();
  BlockMemory(const BlockMemory&) = delete;
  BlockMemory& operator=(const BlockMemory&) = delete;

  // Once is enough.
  void Admit();

 private:
  const std::shared_ptr<const StagingMemory> whole_;
  std::byte* const base_;
  const uint64_t bytes_;
  const std::shared_ptr<MemoryUser> user_;
  bool admitted_ = false;
};

}  // namespace ferry::daemon
