// Sealed memfd segments: made by one process, checked and mapped by others.
//
// A segment is sealed against shrinking, growing and further seals, so that a mapping can never
// fault because its creator truncated it. Only memfds are used: nothing is left in /dev/shm after a
// crash.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/status.h"
#include "common/unique_fd.h"
#include "shm/layout/segment_header.h"

namespace ferry::shm {

// A mapping, unmapped by the destructor. Movable.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* base, uint64_t size_bytes) : base_(base), size_bytes_(size_bytes) {}
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* base() const { return base_; }
  uint64_t size_bytes() const { return size_bytes_; }
  bool valid() const { return base_ != nullptr; }
  // Leaves the mapping in place for the life of the process.
  std::byte* Release();

 private:
  std::byte* base_ = nullptr;
  uint64_t size_bytes_ = 0;
};

// Makes a memfd of `size_bytes` (rounded up to pages), all zero, sealed. `name` shows in
// /proc/PID/maps.
StatusOr<UniqueFd> CreateSegment(const char* name, uint64_t size_bytes);

// The largest alignment of a mapping. A mapping begins at a multiple of the largest power of two
// that is no larger than itself, from 2 MiB, a huge page, up to this. So aligned offsets are
// aligned addresses, in all processes. Only in a process that may not have the addresses (`ulimit
// -v`) mappings begin at any page.
inline constexpr uint64_t kMostMappingAlignment = 256 << 20;

// Maps a whole memfd read-write. kCorrupt when it is not sealed against shrinking or its size
// differs from `size_bytes` (0 = any size); the message says which.
StatusOr<Mapping> MapSegment(int fd, uint64_t size_bytes);

// Maps the first `size_bytes` (rounded up to pages) of a memfd that is as long as that, or longer:
// it may be growing. kCorrupt when it is not sealed against shrinking, or shorter.
enum class Access { kReadWrite, kRead };
StatusOr<Mapping> MapPart(int fd, uint64_t size_bytes, Access access = Access::kReadWrite);

// Touches [base, base + size_bytes) for writing so that the caller's cgroup pays for it now.
Status Prefault(std::byte* base, uint64_t size_bytes);

// Checks a descriptor before any process here maps it.
//
// Returns the size of the memfd `fd`, which must be `size_bytes`, rounded up to pages (0 = any).
// kCorrupt, with the reason, unless every page of it exists for as long as it is mapped: sealed
// against shrinking, and of ordinary pages. (A hole punched into huge pages gives them back to a
// pool that may be empty when they are touched again: SIGBUS. Ordinary pages come back, zero.)
// kSystem.
//
// Any thread. Makes only system calls that the kernel answers by itself: a file that another
// process serves is refused before that process hears of it.
StatusOr<uint64_t> CheckSegmentFile(int fd, uint64_t size_bytes);

// ---- The header of a segment (shm/layout/segment_header.h) ----
// Any thread; nothing blocks. The header lies in shared memory: a checked size or kind may be
// changed by a faulty peer afterwards, so callers copy the fields that they go on using.

// Fills the header of zeroed memory from `fields` (its magic and version are set here), the version
// last with release: a reader that finds it finds all that was stored before.
void PublishHeader(SegmentHeader* header, const SegmentHeader& fields);

// Checks the header of a mapped segment. kWouldBlock: not published yet, try again.
// kVersionMismatch: names both versions. kCorrupt: not a segment of Ferry, of another kind, or of
// another size than it says.
Status CheckHeader(const Mapping& mapping, SegmentKind kind);
// Checks a copy of the header of a segment of `size_bytes`, with the same errors.
Status CheckHeader(const SegmentHeader& header, uint64_t size_bytes, SegmentKind kind);

}  // namespace ferry::shm
