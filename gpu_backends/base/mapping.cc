#include "gpu_backends/base/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <string>
#include <utility>

#include "common/file_size.h"

namespace ferry::gpu {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

Status OutOfMemory(const char* call, uint64_t size_bytes, int error_number) {
  return {ErrorCode::kOutOfMemory,
          StatusFromErrno(error_number, std::string(call) + " of " + std::to_string(size_bytes) +
                                            " bytes for the host GPU backend")
              .message()};
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    Reset();
    data_ = std::exchange(other.data_, nullptr);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
  }
  return *this;
}

StatusOr<Mapping> Mapping::Anonymous(uint64_t size_bytes) {
  return Map(-1, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE);
}

StatusOr<Mapping> Mapping::Shared(int fd, uint64_t size_bytes) {
  return Map(fd, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE);
}

StatusOr<Mapping> Mapping::Untouchable(int fd, uint64_t size_bytes) {
  return Map(fd, size_bytes, PROT_NONE, MAP_SHARED);
}

StatusOr<Mapping> Mapping::Map(int fd, uint64_t size_bytes, int protection, int flags) {
  void* data = mmap(nullptr, size_bytes, protection, flags, fd, 0);
  if (data == MAP_FAILED) {
    return OutOfMemory("mmap", size_bytes, errno);
  }
  return Mapping(data, size_bytes);
}

void Mapping::Reset() {
  if (data_ != nullptr) {
    munmap(data_, size_bytes_);
    data_ = nullptr;
  }
}

StatusOr<UniqueFd> CreateSealedMemfd(uint64_t size_bytes) {
  if (size_bytes > static_cast<uint64_t>(std::numeric_limits<off_t>::max()) / 2) {
    return OutOfMemory("ftruncate", size_bytes, EFBIG);
  }
  UniqueFd fd(memfd_create("ferry-device-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) {
    return StatusFromErrno(errno, "memfd_create for the host GPU backend");
  }
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto size = static_cast<off_t>((size_bytes + page_bytes - 1) & ~(page_bytes - 1));
  if (const int error = ResizeFile(fd.get(), size); error != 0) {
    return OutOfMemory("ftruncate", size_bytes, error);
  }
  // Takes the pages now: a full /dev/shm or cgroup is an error here instead of a SIGBUS later.
  if (fallocate(fd.get(), 0, 0, size) != 0) {
    return OutOfMemory("fallocate", size_bytes, errno);
  }
  if (fcntl(fd.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0) {
    return StatusFromErrno(errno, "sealing the host GPU backend's memory");
  }
  return fd;
}

Status CheckSealedMemfd(int fd, uint64_t size_bytes) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) {
    return {ErrorCode::kCorrupt,
            "the imported descriptor is no memfd sealed against resizing; send the descriptor that "
            "ExportIpc returned"};
  }
  struct stat info {};
  if (fstat(fd, &info) != 0) {
    return StatusFromErrno(errno, "fstat of an imported allocation");
  }
  if (static_cast<uint64_t>(info.st_size) < size_bytes) {
    return {ErrorCode::kCorrupt, "the imported allocation claims " + std::to_string(size_bytes) +
                                     " bytes but its memory holds " + std::to_string(info.st_size)};
  }
  return {};
}

}  // namespace ferry::gpu
