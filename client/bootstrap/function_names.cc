#include "client/bootstrap/function_names.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ferry::client {
namespace {

constexpr size_t kSymbolsAtOnce = 2048;
Elf64_Sym symbols[kSymbolsAtOnce];  // too large for the stack of a signal

// Reads all of it, or returns false. Not by mmap: a file that has become shorter would be a fault.
bool ReadAt(int fd, uint64_t offset, void* to, size_t bytes) {
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t size = pread(fd, out, bytes, static_cast<off_t>(offset));
    if (size <= 0 && !(size < 0 && errno == EINTR)) {
      return false;
    }
    const size_t taken = size > 0 ? static_cast<size_t>(size) : 0;
    out += taken;
    offset += taken;
    bytes -= taken;
  }
  return true;
}

// Finds the file's table of symbols and that of their names.
bool FindTables(int fd, Elf64_Shdr* table, Elf64_Shdr* names) {
  Elf64_Ehdr header{};
  if (!ReadAt(fd, 0, &header, sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr)) {
    return false;
  }
  const auto section = [&](uint64_t index, Elf64_Shdr* to) {
    return index < header.e_shnum &&
           ReadAt(fd, header.e_shoff + index * sizeof(*to), to, sizeof(*to));
  };
  bool found = false;
  for (uint64_t index = 0; index < header.e_shnum; ++index) {
    Elf64_Shdr one{};
    if (!section(index, &one)) {
      return false;
    }
    const bool is_full = one.sh_type == SHT_SYMTAB;
    if ((is_full || (one.sh_type == SHT_DYNSYM && !found)) && one.sh_entsize == sizeof(Elf64_Sym)) {
      *table = one;
      found = true;
      if (is_full) {
        break;
      }
    }
  }
  return found && section(table->sh_link, names);
}

// The name of the symbol, if it is a function's that has the place.
void TakeName(int fd, const Elf64_Shdr& names, const Elf64_Sym& symbol, CodePlace* place) {
  const bool is_function =
      ELF64_ST_TYPE(symbol.st_info) == STT_FUNC || ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC;
  if (!is_function || symbol.st_shndx == SHN_UNDEF || place->offset < symbol.st_value ||
      place->offset - symbol.st_value >= symbol.st_size || symbol.st_name >= names.sh_size) {
    return;
  }
  const size_t most = std::min<uint64_t>(CodePlace::kNameBytes - 1, names.sh_size - symbol.st_name);
  if (!ReadAt(fd, names.sh_offset + symbol.st_name, place->name, most)) {
    place->name[0] = '\0';
  }
  place->name[most] = '\0';
  // The compiler's second name of a function, for calls from its own file.
  if (char* const alias = std::strstr(place->name, ".localalias"); alias != nullptr) {
    *alias = '\0';
  }
}

// Names the places of the same file, from the first of them on.
void NameThoseOf(const char* path, std::span<CodePlace> places) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  Elf64_Shdr table{};
  Elf64_Shdr names{};
  if (fd < 0) {
    return;
  }
  const char* const file = places.front().file;
  const uint64_t count = FindTables(fd, &table, &names) ? table.sh_size / sizeof(Elf64_Sym) : 0;
  for (uint64_t first = 0; first < count; first += kSymbolsAtOnce) {
    const size_t size = std::min<uint64_t>(kSymbolsAtOnce, count - first);
    if (!ReadAt(fd, table.sh_offset + first * sizeof(Elf64_Sym), symbols,
                size * sizeof(Elf64_Sym))) {
      break;
    }
    for (const Elf64_Sym& symbol : std::span(symbols, size)) {
      for (CodePlace& place : places) {
        if (place.file == file && place.name[0] == '\0') {
          TakeName(fd, names, symbol, &place);
        }
      }
    }
  }
  close(fd);
}

}  // namespace

void FindFunctions(std::span<CodePlace> places, const char* own_program) {
  for (CodePlace& place : places) {
    dl_find_object object{};
    // The loader's answer to unwinders: it takes no lock.
    if (_dl_find_object(reinterpret_cast<void*>(place.address), &object) == 0 &&
        object.dlfo_link_map != nullptr) {
      const char* const name = object.dlfo_link_map->l_name;
      place.file = name != nullptr && *name != '\0' ? name : own_program;
      place.offset = place.address - object.dlfo_link_map->l_addr;
    }
  }
  for (size_t first = 0; first < places.size(); ++first) {
    const char* const file = places[first].file;
    const bool is_done =
        std::any_of(places.begin(), places.begin() + static_cast<ptrdiff_t>(first),
                    [file](const CodePlace& before) { return before.file == file; });
    if (file != nullptr && !is_done) {
      // Reads the file that runs, also when the program's file was replaced, as a build does.
      NameThoseOf(file == own_program ? "/proc/self/exe" : file, places.subspan(first));
    }
  }
}

}  // namespace ferry::client
