#include "transports/ofi/page_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace ferry::transport {
namespace {

// A file as /proc/self/maps names it, and where in it an address lies.
struct MappedFile {
  dev_t device = 0;
  ino_t inode = 0;
  uint64_t offset = 0;
};

std::optional<MappedFile> FileBehind(uint64_t begin, uint64_t end) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uint64_t first = 0;
    uint64_t behind = 0;
    uint64_t offset = 0;
    uint64_t inode = 0;
    unsigned major = 0;
    unsigned minor = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &first,
                    &behind, rights, &offset, &major, &minor, &inode) != 7 ||
        begin < first || end > behind) {
      continue;
    }
    if (rights[1] != 'w' || rights[3] != 's' || inode == 0) {
      return std::nullopt;
    }
    return MappedFile{makedev(major, minor), static_cast<ino_t>(inode), offset + (begin - first)};
  }
  return std::nullopt;
}

// Returns true if the descriptor is one of the file, and its driver maps the page once more.
bool CanBeMapped(int descriptor, const MappedFile& file, uint64_t bytes) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || status.st_dev != file.device ||
      status.st_ino != file.inode) {
    return false;
  }
  void* const again =
      mmap(nullptr, bytes, PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(file.offset));
  return again != MAP_FAILED && munmap(again, bytes) == 0;
}

}  // namespace

std::optional<uint64_t> FindPageSource(const void* page, uint64_t bytes, UniqueFd* descriptor) {
  const auto begin = reinterpret_cast<uint64_t>(page);
  const std::optional<MappedFile> file = FileBehind(begin, begin + bytes);
  if (!file) {
    return std::nullopt;
  }
  if (descriptor->valid()) {
    return CanBeMapped(descriptor->get(), *file, bytes) ? std::optional(file->offset)
                                                        : std::nullopt;
  }
  std::error_code error;
  for (std::filesystem::directory_iterator next("/proc/self/fd", error), end; !error && next != end;
       next.increment(error)) {
    const int found = std::stoi(next->path().filename().string());
    if (CanBeMapped(found, *file, bytes)) {
      descriptor->Reset(fcntl(found, F_DUPFD_CLOEXEC, 0));
      return descriptor->valid() ? std::optional(file->offset) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace ferry::transport
