#include "shmem/base/static_data.h"

#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/unique_fd.h"
#include "config/environment.h"
#include "shm/segment.h"
#include "shmem/base/settings.h"

namespace ferry::shmem {
namespace {

// A page of the kernel, at whose multiples mappings begin: on Arm it may have 64 KiB.
uintptr_t PageBytes() { return static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)); }
uintptr_t PageDown(uintptr_t address) { return address & ~(PageBytes() - 1); }
uintptr_t PageUp(uintptr_t address) { return PageDown(address + PageBytes() - 1); }

// A stretch of static data that was moved into a memfd.
struct Moved {
  std::string name;
  uint64_t hash = 0;  // of the object: the same in PEs that run the same file
  std::byte* base = nullptr;
  size_t size_bytes = 0;
  size_t file_bytes = 0;  // of them, from the beginning on: mapped from the object's file
  UniqueFd fd;
  uint32_t region = 0;
  std::byte* copy = nullptr;  // during a fork
};

struct Statics {
  std::vector<Moved> moved;
  bool is_shared = false;
  std::vector<std::shared_ptr<std::byte>> mapped;  // others'
};
// Before other parts of this library are initialised, too.
Statics& All() {
  static Statics& statics = *new Statics();
  return statics;
}

// ---- Which data ---------------------------------------------------------------------------------

uint64_t Hash(const void* data, size_t bytes, uint64_t hash) {  // FNV-1a
  for (size_t i = 0; i < bytes; ++i) {
    hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3;
  }
  return hash;
}

bool IsOfSystem(std::string_view path) {
  for (const std::string_view folder : {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"}) {
    if (path.substr(0, folder.size()) == folder) {
      return true;
    }
  }
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return path.find('/') == path.npos ||  // the kernel's
         file.substr(0, 8) == "libferry" || file.substr(0, 10) == "libmpi_abi";
}

// Adds the writable data of one object, but for what the loader has protected.
int AddData(dl_phdr_info* object, size_t /*size*/, void* argument) {
  auto& found = *static_cast<std::vector<Moved>*>(argument);
  std::error_code ignored;
  const bool is_program = object->dlpi_name == nullptr || object->dlpi_name[0] == '\0';
  const std::string path = is_program
                               ? std::filesystem::read_symlink("/proc/self/exe", ignored).string()
                               : object->dlpi_name;
  if (!is_program && IsOfSystem(path)) {
    return 0;
  }
  const std::string name = path.substr(path.rfind('/') + 1);
  uint64_t hash = Hash(name.data(), name.size(), 0xcbf29ce484222325);
  uintptr_t protected_end = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_RELRO) {
      protected_end = PageDown(begin + header.p_memsz);
    } else if (header.p_type == PT_NOTE) {  // has the build's id
      hash = Hash(reinterpret_cast<const void*>(begin), header.p_memsz, hash);
    }
  }
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & (PF_W | PF_X)) != PF_W) {
      continue;
    }
    const uintptr_t begin = object->dlpi_addr + header.p_vaddr;
    const uintptr_t end = PageUp(begin + header.p_memsz);
    const uintptr_t first = std::max(PageDown(begin), std::min(protected_end, end));
    if (first < end && end - first <= MachineBytes()) {
      Moved& moved = found.emplace_back();
      moved.name = "the static data of " + name;
      moved.hash = Hash(&header.p_vaddr, sizeof(header.p_vaddr), hash);
      moved.base = reinterpret_cast<std::byte*>(first);
      moved.size_bytes = end - first;
      moved.file_bytes = std::max(PageUp(begin + header.p_filesz), first) - first;
    }
  }
  return 0;
}

// ---- Moving them --------------------------------------------------------------------------------

// Tells pages that were never touched, which need not be copied. Where the kernel does not say, all
// may have been.
class Pages {
 public:
  Pages() : page_bytes_(PageBytes()), pagemap_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}

  bool MayHaveData(const std::byte* page) const {
    constexpr uint64_t kPresentOrSwapped = uint64_t{3} << 62;
    uint64_t entry = 0;
    const auto at =
        static_cast<off_t>(reinterpret_cast<uintptr_t>(page) / page_bytes_ * sizeof(entry));
    return pread(pagemap_.get(), &entry, sizeof(entry), at) != sizeof(entry) ||
           (entry & kPresentOrSwapped) != 0;
  }

 private:
  const uintptr_t page_bytes_;
  const UniqueFd pagemap_;
};

bool IsZero(const std::byte* page, size_t page_bytes) {
  return page[0] == std::byte{0} && std::memcmp(page, page + 1, page_bytes - 1) == 0;
}

// Copies the data to zeroed memory, without touching more pages than have data.
void CopyOld(const Moved& from, std::byte* to) {
  const Pages pages;
  const size_t page_bytes = PageBytes();
  for (size_t offset = 0; offset < from.size_bytes; offset += page_bytes) {
    const std::byte* const page = from.base + offset;
    if ((offset < from.file_bytes || pages.MayHaveData(page)) && !IsZero(page, page_bytes)) {
      std::memcpy(to + offset, page, page_bytes);
    }
  }
}

// False: it stays private.
bool Move(Moved* moved) {
  StatusOr<UniqueFd> fd = shm::CreateSegment("ferry-static", moved->size_bytes);
  if (!fd.ok()) {
    return false;
  }
  StatusOr<shm::Mapping> mapping = shm::MapSegment(fd->get(), moved->size_bytes);
  if (!mapping.ok()) {
    return false;
  }
  CopyOld(*moved, mapping->base());
  // Takes the place of the old pages in one step.
  if (mremap(mapping->base(), moved->size_bytes, moved->size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
             moved->base) == MAP_FAILED) {
    return false;
  }
  (void)mapping->Release();
  moved->fd = std::move(*fd);
  return true;
}

bool HasOneThread() {
  std::error_code error;
  auto threads = std::filesystem::directory_iterator("/proc/self/task", error);
  return !error && std::distance(begin(threads), end(threads)) == 1;
}

// ---- fork ---------------------------------------------------------------------------------------

// Copies data from its memfd, in which other PEs may have written, too. The kernel reads it:
// AddressSanitizer forbids the program to look between its variables. False: the kernel could not.
bool CopyMoved(const Moved& from, std::byte* to) {
  const int fd = from.fd.get();
  for (off_t at = lseek(fd, 0, SEEK_DATA); at >= 0; at = lseek(fd, at, SEEK_DATA)) {
    const off_t end = lseek(fd, at, SEEK_HOLE);
    while (at < end) {
      const ssize_t done = pread(fd, to + at, static_cast<size_t>(end - at), at);
      if (done <= 0) {
        return false;
      }
      at += done;
    }
  }
  return true;
}

// While the data are shared, a copy for the child is made in the parent. Null where there is no
// memory for it: then the child shares them.
void PrepareFork() {
  for (Moved& moved : All().moved) {
    void* const copy = mmap(nullptr, moved.size_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    moved.copy = copy == MAP_FAILED ? nullptr : static_cast<std::byte*>(copy);
    if (moved.copy != nullptr && !CopyMoved(moved, moved.copy)) {
      munmap(moved.copy, moved.size_bytes);
      moved.copy = nullptr;
    }
  }
}

void EndForkInParent() {
  for (Moved& moved : All().moved) {
    if (moved.copy != nullptr) {
      munmap(moved.copy, moved.size_bytes);
    }
  }
}

void EndForkInChild() {
  for (Moved& moved : All().moved) {
    if (moved.copy != nullptr) {
      (void)mremap(moved.copy, moved.size_bytes, moved.size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                   moved.base);
    }
  }
  All().moved.clear();  // they are private now, also for children of the child
}

// ---- Before main --------------------------------------------------------------------------------

__attribute__((constructor)) void MoveStatics() {
  if (config::FindVariable(config::ProcessEnvironment(), "FERRY_SHMEM_STATICS") == "private" ||
      !HasOneThread()) {
    return;
  }
  std::vector<Moved> found;
  dl_iterate_phdr(AddData, &found);
  for (Moved& moved : found) {
    if (All().moved.size() < kMostStatics && Move(&moved)) {
      All().moved.push_back(std::move(moved));
    }
  }
  pthread_atfork(PrepareFork, EndForkInParent, EndForkInChild);
}

// This PE's number for what another one calls `theirs`; null: it has none like that.
const StaticLayout* FindLike(const Moved& own, const StaticsLayout& theirs) {
  for (size_t i = 0; i < theirs.count; ++i) {
    if (theirs.all[i].name_hash == own.hash && theirs.all[i].size_bytes == own.size_bytes) {
      return &theirs.all[i];
    }
  }
  return nullptr;
}

// Collects the offers of the PEs, by PE: local ones have them in their places, remote ones send
// them.
Status CollectOffers(std::vector<StaticsLayout>* told, std::vector<const StaticsLayout*>* offers) {
  const auto size = static_cast<size_t>(job.size);
  if (job.has_remote_pes) {
    told->resize(size);
    FERRY_RETURN_IF_ERROR(ExchangeByMessages(job.front_end, &job.region->place().statics,
                                             sizeof(StaticsLayout), told->data()));
  }
  for (int pe = 0; pe < job.size; ++pe) {
    offers->push_back(job.IsLocal(pe) ? &job.region->place_of(pe).statics
                                      : &(*told)[static_cast<size_t>(pe)]);
  }
  return {};
}

// How this PE reaches another one's stretch: by its shift, or, of a remote PE, not by addresses.
StatusOr<ptrdiff_t> ReachStretch(const Moved& own, int pe, const StaticLayout& theirs) {
  if (pe == job.self) {
    return 0;
  }
  if (!job.IsLocal(pe)) {
    return kRemote;
  }
  StatusOr<std::shared_ptr<std::byte>> mapped = job.front_end->peers->MapPeer(
      static_cast<uint32_t>(pe), {theirs.region, 0, 0}, own.size_bytes);
  FERRY_RETURN_IF_ERROR(mapped.status());
  const ptrdiff_t shift = mapped->get() - own.base;
  All().mapped.push_back(std::move(*mapped));
  return shift;
}

}  // namespace

Status OfferStatics(client::FrontEnd* front_end, PlaceLayout* place) {
  Statics& statics = All();
  size_t count = 0;
  for (Moved& moved : statics.moved) {
    if (!statics.is_shared) {
      FERRY_RETURN_IF_ERROR(
          front_end->memory->ShareMemory(moved.fd.get(), moved.base, moved.size_bytes));
      moved.region = front_end->one_sided->Locate(moved.base, 1).region;
    }
    place->statics.all[count++] = {moved.hash, moved.size_bytes, moved.region, 0};
  }
  place->statics.count = count;
  statics.is_shared = true;
  return {};
}

Status MeetStatics() {
  std::vector<StaticsLayout> told;
  std::vector<const StaticsLayout*> offers;
  FERRY_RETURN_IF_ERROR(CollectOffers(&told, &offers));
  for (const Moved& own : All().moved) {
    Segment segment{.name = own.name, .base = own.base, .size_bytes = own.size_bytes};
    for (int pe = 0; pe < job.size; ++pe) {
      const StaticLayout* const theirs = FindLike(own, *offers[static_cast<size_t>(pe)]);
      if (theirs == nullptr) {
        break;  // another program, or another library: no PE reaches it
      }
      const StatusOr<ptrdiff_t> shift = ReachStretch(own, pe, *theirs);
      FERRY_RETURN_IF_ERROR(shift.status());
      segment.shifts.push_back(*shift);
      segment.numbers.push_back(theirs->region);
      segment.first_offsets.push_back(0);
    }
    if (segment.shifts.size() == static_cast<size_t>(job.size)) {
      job.statics.push_back(std::move(segment));
    }
  }
  return {};
}

void ForgetStatics() {
  job.statics.clear();
  All().mapped.clear();
}

}  // namespace ferry::shmem
