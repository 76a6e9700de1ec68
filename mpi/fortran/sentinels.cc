#include "mpi/fortran/sentinels.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <vector>

#include "mpi/fortran/binding.h"

namespace ferry::fortran {

constinit std::atomic<uint32_t> bindings{0};
constinit std::atomic<uint32_t> clean_bindings{0};

namespace {

#define FERRY_TEXT_OF(name) #name
#define FERRY_TEXT(name) FERRY_TEXT_OF(name)

// In the order of Sentinel; by the name that this interface has for it.
constexpr std::array<const char*, kSentinels> kNames = {
    FERRY_TEXT(ferry_mpi_bottom_),           FERRY_TEXT(ferry_mpi_in_place_),
    FERRY_TEXT(ferry_mpi_buffer_automatic_), FERRY_TEXT(ferry_mpi_status_ignore_),
    FERRY_TEXT(ferry_mpi_statuses_ignore_),  FERRY_TEXT(ferry_mpi_errcodes_ignore_),
    FERRY_TEXT(ferry_mpi_unweighted_),       FERRY_TEXT(ferry_mpi_weights_empty_),
    FERRY_TEXT(ferry_mpi_argv_null_),        FERRY_TEXT(ferry_mpi_argvs_null_),
};

const std::array<const void*, kSentinels>& Bound() {
  static const std::array<const void*, kSentinels> bound = {
      ferry_mpi_bottom_,        ferry_mpi_in_place_,        ferry_mpi_buffer_automatic_,
      ferry_mpi_status_ignore_, ferry_mpi_statuses_ignore_, ferry_mpi_errcodes_ignore_,
      ferry_mpi_unweighted_,    ferry_mpi_weights_empty_,   ferry_mpi_argv_null_,
      ferry_mpi_argvs_null_,
  };
  return bound;
}

// ---- The symbols of an object -------------------------------------------------------------------

// A loaded object's table of dynamic symbols (System V ABI, chapter 5; for DT_GNU_HASH the format
// that the GNU linker writes).
class Symbols {
 public:
  explicit Symbols(const dl_phdr_info& object) : object_(object) {
    for (int i = 0; i < object.dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = object.dlpi_phdr[i];
      if (header.p_type == PT_DYNAMIC) {
        Read(reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + header.p_vaddr));
      }
    }
  }

  // Null: it defines no data of this name.
  const void* Find(const char* name) const {
    const ElfW(Sym)* const symbol = symbols_ == nullptr || names_ == nullptr ? nullptr
                                    : gnu_ != nullptr                        ? FindByGnu(name)
                                    : old_ != nullptr                        ? FindByOld(name)
                                                                             : nullptr;
    if (symbol == nullptr || symbol->st_shndx == SHN_UNDEF ||
        (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT &&
         ELF64_ST_TYPE(symbol->st_info) != STT_COMMON)) {
      return nullptr;
    }
    return reinterpret_cast<const void*>(object_.dlpi_addr + symbol->st_value);
  }

 private:
  // The linker has made addresses of the numbers in most objects, and left them in some.
  template <typename T>
  const T* At(ElfW(Addr) address) const {
    for (const ElfW(Addr) candidate : {address, object_.dlpi_addr + address}) {
      for (int i = 0; i < object_.dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = object_.dlpi_phdr[i];
        if (header.p_type == PT_LOAD &&
            candidate - object_.dlpi_addr - header.p_vaddr < header.p_memsz) {
          return reinterpret_cast<const T*>(candidate);
        }
      }
    }
    return nullptr;
  }

  void Read(const ElfW(Dyn) * entry) {
    for (; entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_SYMTAB:
          symbols_ = At<ElfW(Sym)>(entry->d_un.d_ptr);
          break;
        case DT_STRTAB:
          names_ = At<char>(entry->d_un.d_ptr);
          break;
        case DT_GNU_HASH:
          gnu_ = At<uint32_t>(entry->d_un.d_ptr);
          break;
        case DT_HASH:
          old_ = At<uint32_t>(entry->d_un.d_ptr);
          break;
        default:
          break;
      }
    }
  }

  bool Is(uint32_t index, const char* name) const {
    return std::strcmp(names_ + symbols_[index].st_name, name) == 0;
  }

  const ElfW(Sym) * FindByGnu(const char* name) const {
    uint32_t hash = 5381;
    for (const char* letter = name; *letter != '\0'; ++letter) {
      hash = hash * 33 + static_cast<unsigned char>(*letter);
    }
    const uint32_t buckets = gnu_[0];
    const uint32_t first = gnu_[1];
    const uint32_t filter_words = gnu_[2];
    const uint32_t* const bucket = gnu_ + 4 + filter_words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t* const chain = bucket + buckets;
    uint32_t index = buckets == 0 ? 0 : bucket[hash % buckets];
    for (; index >= first && index != 0; ++index) {
      const uint32_t one = chain[index - first];
      if ((one | 1) == (hash | 1) && Is(index, name)) {
        return &symbols_[index];
      }
      if ((one & 1) != 0) {
        break;
      }
    }
    return nullptr;
  }

  const ElfW(Sym) * FindByOld(const char* name) const {
    for (uint32_t index = 1; index < old_[1]; ++index) {  // as many symbols as there are
      if (Is(index, name)) {
        return &symbols_[index];
      }
    }
    return nullptr;
  }

  const dl_phdr_info& object_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  const uint32_t* gnu_ = nullptr;
  const uint32_t* old_ = nullptr;
};

// ---- The blocks of all objects ------------------------------------------------------------------

struct Block {
  const void* address;
  Sentinel sentinel;
};

struct Found {
  uint64_t loads = 0;  // that the linker had done, and its unloads, when it was asked
  uint64_t unloads = 0;
  std::vector<Block> blocks;
};

// The newest list of blocks. Older lists are never freed: another thread may read them.
std::atomic<const Found*> found{nullptr};
// How many bindings there were when `found` was made.
std::atomic<uint32_t> looked_at{0};
std::mutex mutex;  // held while the two change

constexpr int kEnough = 1;  // ends dl_iterate_phdr

int Collect(dl_phdr_info* object, size_t, void* place) {
  auto& next = *static_cast<Found*>(place);
  if (next.loads == 0) {
    const Found* const last = found.load(std::memory_order_relaxed);
    if (last != nullptr && last->loads == object->dlpi_adds && last->unloads == object->dlpi_subs) {
      return kEnough;
    }
    next.loads = object->dlpi_adds;
    next.unloads = object->dlpi_subs;
  }
  const Symbols symbols(*object);
  for (size_t i = 0; i < kNames.size(); ++i) {
    const void* const address = symbols.Find(kNames[i]);
    if (address != nullptr && address != Bound()[i]) {
      next.blocks.push_back({address, static_cast<Sentinel>(i)});
    }
  }
  return 0;
}

// Pairs with NoteBinding: what was loaded before a binding that is seen here is in the list.
void LookAgain() {
  const std::lock_guard lock(mutex);
  const uint32_t noted = bindings.load();
  if (noted == looked_at.load(std::memory_order_relaxed)) {
    return;
  }
  auto* const next = new Found();
  if (dl_iterate_phdr(Collect, next) == kEnough) {
    delete next;
  } else {
    found.store(next, std::memory_order_release);
  }
  looked_at.store(noted, std::memory_order_release);
  clean_bindings.store(found.load(std::memory_order_relaxed)->blocks.empty() ? noted : noted - 1);
}

}  // namespace

bool IsOfOtherObject(const void* address, Sentinel sentinel) {
  // Pairs with LookAgain: publishes `found`.
  if (looked_at.load(std::memory_order_acquire) != bindings.load(std::memory_order_acquire)) {
    LookAgain();
  }
  const Found* const all = found.load(std::memory_order_acquire);
  return all != nullptr &&
         std::any_of(all->blocks.begin(), all->blocks.end(), [&](const Block& block) {
           return block.address == address && block.sentinel == sentinel;
         });
}

}  // namespace ferry::fortran
