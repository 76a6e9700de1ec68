#include "client/malloc/heap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "client/malloc/heap_sizes.h"
#include "client/malloc/system_calls.h"
#include "shm/atomic.h"

// Newer than the C library's headers may be.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace ferry::malloc_heap {
namespace {

constexpr uint64_t kLargeBytes = uint64_t{2} << 20;  // a huge page
constexpr uint64_t kStepBytes = uint64_t{64} << 20;
constexpr uint64_t kReservedBytes = uint64_t{1} << 40;

constexpr uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}
constexpr uint64_t RoundDown(uint64_t value, uint64_t unit) { return value & ~(unit - 1); }
constexpr uint64_t Min(uint64_t a, uint64_t b) { return a < b ? a : b; }

// A page of the kernel, at whose multiples mappings begin: on Arm it may have 64 KiB.
uint64_t PageBytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

uint64_t LimitOf(__rlimit_resource resource) {
  rlimit limit{};
  return getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? ~uint64_t{0}
                                                                             : limit.rlim_cur;
}

// The memory of this machine: the file is no longer than that unless all of it was asked for.
uint64_t MachineBytes() {
  struct sysinfo machine {};
  return sysinfo(&machine) != 0
             ? ~uint64_t{0}
             : (uint64_t{machine.totalram} + machine.totalswap) * machine.mem_unit;
}

class Lock {
 public:
  explicit Lock(pthread_mutex_t* mutex) : mutex_(mutex) { pthread_mutex_lock(mutex_); }
  ~Lock() { pthread_mutex_unlock(mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t* const mutex_;
};

}  // namespace

constinit Heap heap;

// ---- Beginning ----------------------------------------------------------------------------------

// Called at the allocator's first mapping, with the lock held. The allocator registers its fork
// handlers later than these, so before a fork this handler runs last, when the allocator is quiet,
// and after it these handlers run first.
void Heap::Start() {
  state_ = State::kNone;
  if (pthread_atfork([] { heap.BeforeFork(); }, [] { heap.AfterForkInParent(); },
                     [] { heap.AfterForkInChild(); }) != 0) {
    refusal_ = Refusal::kFile;
    error_ = ENOMEM;
    return;
  }
  if (Reserve() && MakeFile()) {
    state_ = State::kShared;
  }
}

bool Heap::Reserve() {
  const uint64_t limit = LimitOf(RLIMIT_AS);
  uint64_t size_bytes = limit == ~uint64_t{0} ? kReservedBytes : RoundDown(limit / 2, kLargeBytes);
  size_bytes = Min(size_bytes, kReservedBytes);
  for (; size_bytes >= kLeastReservedBytes; size_bytes = RoundDown(size_bytes / 2, kLargeBytes)) {
    void* const place = SystemMap(nullptr, size_bytes + kLargeBytes, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place != MAP_FAILED) {
      shm::StoreRelaxed(reserved_bytes_, size_bytes);
      // Pairs with Contains.
      shm::StoreRelease(base_, reinterpret_cast<std::byte*>(
                                   RoundUp(reinterpret_cast<uint64_t>(place), kLargeBytes)));
      return true;
    }
  }
  refusal_ = Refusal::kAddressSpace;
  error_ = ENOMEM;
  return false;
}

bool Heap::MakeFile() {
  constexpr unsigned int kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  fd_ = memfd_create("ferry-malloc", kFlags | MFD_NOEXEC_SEAL);
  if (fd_ < 0 && errno == EINVAL) {  // Linux before 6.3
    fd_ = memfd_create("ferry-malloc", kFlags);
  }
  if (fd_ < 0) {
    refusal_ = Refusal::kFile;
    error_ = errno;
    return false;
  }
  // Away from the low numbers, which shells and daemons use as they like.
  if (const int high = fcntl(fd_, F_DUPFD_CLOEXEC, 200); high >= 0) {
    close(fd_);
    fd_ = high;
  }
  if (fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0 && GrowFile(kLeastFileBytes)) {
    return true;
  }
  if (refusal_ == Refusal::kNone) {
    refusal_ = Refusal::kFile;
    error_ = errno;
  }
  close(fd_);
  fd_ = -1;
  return false;
}

// ---- Growing ------------------------------------------------------------------------------------

// Makes the file at least `top` long. A file that grows beyond RLIMIT_FSIZE ends the process, so
// that is looked at first.
bool Heap::GrowFile(uint64_t top) {
  const uint64_t limit = Min(RoundDown(LimitOf(RLIMIT_FSIZE), PageBytes()), reserved_bytes_);
  uint64_t wanted = file_bytes_ == 0 ? kFirstFileBytes : file_bytes_ * 2;
  while (wanted < top) {
    wanted *= 2;
  }
  wanted = Min(wanted, limit);
  if (const uint64_t machine = RoundDown(MachineBytes(), PageBytes()); wanted > machine) {
    wanted = top > machine ? top : machine;
  }
  if (wanted < top) {
    refusal_ = limit == reserved_bytes_ ? Refusal::kAddressSpace : Refusal::kFileSize;
    error_ = limit == reserved_bytes_ ? ENOMEM : EFBIG;
    return false;
  }
  if (ftruncate(fd_, static_cast<off_t>(wanted)) != 0) {
    refusal_ = Refusal::kFileSize;
    error_ = errno;
    return false;
  }
  file_bytes_ = wanted;
  return true;
}

// Makes [base, base + top) usable: extends the file and the mapping if need be.
bool Heap::Grow(uint64_t top) {
  if (top <= mapped_bytes_) {
    return true;
  }
  if (top > reserved_bytes_) {
    refusal_ = refusal_ == Refusal::kForked ? refusal_ : Refusal::kAddressSpace;
    return false;
  }
  const bool shared = state_ == State::kShared;
  if (shared && top > file_bytes_ && !GrowFile(top)) {
    return false;
  }
  const uint64_t end = Min(RoundUp(top, kStepBytes), shared ? file_bytes_ : reserved_bytes_);
  void* const step = base_ + mapped_bytes_;
  const uint64_t step_bytes = end - mapped_bytes_;
  void* const mapped =
      shared ? SystemMap(step, step_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_,
                         static_cast<off_t>(mapped_bytes_))
             : SystemMap(step, step_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (mapped == MAP_FAILED) {
    error_ = errno;
    return false;
  }
  if (shared && SystemAdvise(step, step_bytes, MADV_DONTFORK) != 0) {
    // A child would share it. Undo the mapping: none of it has been handed out yet.
    error_ = errno;
    SystemMap(step, step_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
              -1, 0);
    return false;
  }
  mapped_bytes_ = end;
  return true;
}

// ---- Handing out --------------------------------------------------------------------------------

void* Heap::Map(size_t size_bytes) {
  const uint64_t rounded = RoundUp(size_bytes, PageBytes());
  if (rounded == 0 || rounded > kReservedBytes) {
    return nullptr;
  }
  Lock lock(&mutex_);
  if (state_ == State::kUntried) {
    Start();
  }
  if (state_ == State::kNone) {
    return nullptr;
  }
  return TakeLocked(rounded, rounded >= kLargeBytes ? kLargeBytes : PageBytes());
}

void* Heap::TakeLocked(uint64_t size_bytes, uint64_t alignment) {
  if (const uint64_t offset = free_.Take(size_bytes, alignment); offset != FreeRanges::kNone) {
    return base_ + offset;
  }
  const uint64_t offset = RoundUp(top_, alignment);
  if (!Grow(offset + size_bytes)) {
    return nullptr;
  }
  if (offset != top_) {
    free_.Add(top_, offset - top_);
  }
  top_ = offset + size_bytes;
  return base_ + offset;
}

bool Heap::Contains(const void* address) const {
  const std::byte* const base = shm::LoadAcquire(base_);  // pairs with Reserve
  return base != nullptr && address >= base && address < base + shm::LoadRelaxed(reserved_bytes_);
}

void Heap::Unmap(void* address, size_t size_bytes) {
  const auto offset = static_cast<uint64_t>(static_cast<std::byte*>(address) - base_);
  const uint64_t rounded = RoundUp(size_bytes, PageBytes());
  Lock lock(&mutex_);
  ClearLocked(offset, rounded);
  free_.Add(offset, rounded);
}

void Heap::Clear(void* address, size_t size_bytes) {
  Lock lock(&mutex_);
  ClearLocked(static_cast<uint64_t>(static_cast<std::byte*>(address) - base_),
              RoundUp(size_bytes, PageBytes()));
}

void Heap::ClearLocked(uint64_t offset, uint64_t size_bytes) {
  std::byte* const begin = base_ + offset;
  if (state_ == State::kPrivate) {
    if (SystemAdvise(begin, size_bytes, MADV_DONTNEED) != 0) {  // locked pages
      std::memset(begin, 0, size_bytes);
    }
    return;
  }
  int cleared = 0;
  do {
    cleared = fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                        static_cast<off_t>(size_bytes));
  } while (cleared != 0 && errno == EINTR);
  if (cleared != 0) {
    std::memset(begin, 0, size_bytes);
  }
}

int Heap::Look(HeapView* view) {
  if (view->version != kHeapViewVersion) {
    return ENOTSUP;
  }
  Lock lock(&mutex_);
  *view = {kHeapViewVersion, fd_,           base_,    reserved_bytes_,
           file_bytes_,      mapped_bytes_, refusal_, error_};
  return 0;
}

}  // namespace ferry::malloc_heap
