#include "shm/segment.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>
#include <utility>

#include "common/file_size.h"
#include "common/version.h"
#include "shm/atomic.h"
#include "shm/layout/session_layout.h"

// Newer than the C library's headers may be.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace ferry::shm {
namespace {

Status Bad(const std::string& why) { return {ErrorCode::kCorrupt, "segment " + why}; }

constexpr uint64_t kPageBytes = 4096;  // that sizes are rounded up to, on all machines
constexpr uint64_t kHugePageBytes = 2 << 20;
constexpr uint64_t kMaxSegmentBytes = uint64_t{1} << 46;  // beyond what a process can map

constexpr uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}
constexpr uint64_t PageUp(uint64_t value) { return RoundUp(value, kPageBytes); }

// A page of the kernel, at whose multiples mappings begin: on Arm it may have 64 KiB.
uint64_t KernelPageBytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

int CreateMemfd(const char* name) {
  constexpr unsigned int kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = memfd_create(name, kFlags | MFD_NOEXEC_SEAL);
  // Linux before 6.3 does not know MFD_NOEXEC_SEAL; some later ones insist on it.
  return fd < 0 && errno == EINVAL ? memfd_create(name, kFlags) : fd;
}

// Addresses that nothing else lies at, from a multiple of `alignment` on. Null: the process may not
// have so many.
std::byte* Reserve(uint64_t mapped_bytes, uint64_t alignment) {
  const uint64_t page_bytes = KernelPageBytes();
  const uint64_t size_bytes = RoundUp(mapped_bytes, page_bytes);
  const uint64_t most_bytes = size_bytes + alignment - page_bytes;
  void* const found =
      mmap(nullptr, most_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) {
    return nullptr;
  }
  auto* const first = static_cast<std::byte*>(found);
  const uint64_t before = -reinterpret_cast<uintptr_t>(first) & (alignment - 1);
  const uint64_t behind = most_bytes - before - size_bytes;
  if (before != 0) {
    munmap(first, before);
  }
  if (behind != 0) {
    munmap(first + before + size_bytes, behind);
  }
  return first + before;
}

StatusOr<Mapping> Map(int fd, uint64_t size_bytes, Access access) {
  const uint64_t alignment = std::min(std::bit_floor(size_bytes), kMostMappingAlignment);
  std::byte* const place = alignment < kHugePageBytes ? nullptr : Reserve(size_bytes, alignment);
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  const int flags = place == nullptr ? MAP_SHARED : MAP_SHARED | MAP_FIXED;
  void* base = mmap(place, size_bytes, protection, flags, fd, 0);
  if (base == MAP_FAILED) {
    const int error = errno;
    if (place != nullptr) {
      munmap(place, size_bytes);
    }
    return StatusFromErrno(error, "mapping a segment of " + std::to_string(size_bytes) + " bytes");
  }
  return Mapping(static_cast<std::byte*>(base), size_bytes);
}

// Writes to each page without changing it: another process may be using it already.
void TouchPages(std::byte* base, uint64_t size_bytes) {
  for (uint64_t offset = 0; offset < size_bytes; offset += kPageBytes) {
    FetchOr(reinterpret_cast<uint8_t&>(base[offset]), 0, std::memory_order_relaxed);
  }
}

}  // namespace

// ---- SegmentCheck ----

void PublishHeader(SegmentHeader* header, const SegmentHeader& fields) {
  SegmentHeader filled = fields;
  filled.magic = kSegmentMagic;
  filled.layout_version = 0;
  *header = filled;
  StoreRelease(header->layout_version, kLayoutVersion);  // Pairs with CheckHeader.
}

Status CheckHeader(const Mapping& mapping, SegmentKind kind) {
  if (mapping.size_bytes() < sizeof(SegmentHeader)) {
    return {ErrorCode::kCorrupt, "segment of " + std::to_string(mapping.size_bytes()) +
                                     " bytes is too small for a header"};
  }
  return CheckHeader(*reinterpret_cast<const SegmentHeader*>(mapping.base()), mapping.size_bytes(),
                     kind);
}

Status CheckHeader(const SegmentHeader& header, uint64_t size_bytes, SegmentKind kind) {
  const uint32_t version = LoadAcquire(header.layout_version);  // Pairs with PublishHeader.
  if (version == 0) {
    return {ErrorCode::kWouldBlock, "segment is not ready yet"};
  }
  if (header.magic != kSegmentMagic) {
    return {ErrorCode::kCorrupt, "not a segment of Ferry: its magic number is wrong"};
  }
  if (version != kLayoutVersion) {
    return {ErrorCode::kVersionMismatch, "segment has layout version " + std::to_string(version) +
                                             ", this program " + std::to_string(kLayoutVersion) +
                                             ": use the same release of Ferry on both sides"};
  }
  if (header.kind != static_cast<uint32_t>(kind)) {
    return {ErrorCode::kCorrupt, "segment is of kind " + std::to_string(header.kind) +
                                     " instead of " + std::to_string(static_cast<uint32_t>(kind))};
  }
  if (header.size_bytes != size_bytes) {
    return {ErrorCode::kCorrupt, "segment says it has " + std::to_string(header.size_bytes) +
                                     " bytes, but has " + std::to_string(size_bytes)};
  }
  return {};
}

// ---- SegmentFile ----

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

// ---- Segment ----

Mapping::~Mapping() {
  if (base_ != nullptr) {
    munmap(base_, size_bytes_);
  }
}

Mapping::Mapping(Mapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

std::byte* Mapping::Release() {
  size_bytes_ = 0;
  return std::exchange(base_, nullptr);
}

StatusOr<UniqueFd> CreateSegment(const char* name, uint64_t size_bytes) {
  if (size_bytes == 0 || size_bytes > kMaxSegmentBytes) {
    return Status(ErrorCode::kInvalidArgument,
                  std::string("segment ") + name + " of " + std::to_string(size_bytes) +
                      " bytes: ask for 1 to " + std::to_string(kMaxSegmentBytes));
  }
  UniqueFd fd(CreateMemfd(name));
  if (!fd.valid()) {
    return StatusFromErrno(errno, std::string("memfd_create ") + name);
  }
  if (const int error = ResizeFile(fd.get(), static_cast<off_t>(PageUp(size_bytes))); error != 0) {
    return StatusFromErrno(error, std::string("ftruncate segment ") + name + " to " +
                                      std::to_string(size_bytes) + " bytes");
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return StatusFromErrno(errno, std::string("sealing segment ") + name);
  }
  return fd;
}

StatusOr<Mapping> MapSegment(int fd, uint64_t size_bytes) {
  const StatusOr<uint64_t> checked = CheckSegmentFile(fd, size_bytes);
  FERRY_RETURN_IF_ERROR(checked.status());
  return Map(fd, *checked, Access::kReadWrite);
}

StatusOr<Mapping> MapPart(int fd, uint64_t size_bytes, Access access) {
  const StatusOr<uint64_t> checked = CheckSegmentFile(fd, 0);
  FERRY_RETURN_IF_ERROR(checked.status());
  if (size_bytes == 0 || *checked < size_bytes) {
    return Status(ErrorCode::kCorrupt, "segment has " + std::to_string(*checked) +
                                           " bytes instead of " + std::to_string(size_bytes));
  }
  return Map(fd, PageUp(size_bytes), access);
}

Status Prefault(std::byte* base, uint64_t size_bytes) {
  const uint64_t excess = reinterpret_cast<uintptr_t>(base) % KernelPageBytes();
  std::byte* first = base - excess;
  const uint64_t length = size_bytes + excess;
  while (madvise(first, length, MADV_POPULATE_WRITE) != 0) {
    if (errno == EINTR || errno == EAGAIN) {
      continue;
    }
    if (errno == EINVAL) {  // Linux before 5.14
      TouchPages(first, length);
      break;
    }
    return StatusFromErrno(errno, "prefaulting " + std::to_string(size_bytes) + " bytes");
  }
  return {};
}

}  // namespace ferry::shm
