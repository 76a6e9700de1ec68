#include "tools/ferryrun/linked_libraries.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string_view>

#include "common/unique_fd.h"
#include "tools/ferryrun/machine.h"

namespace ferry::tools {
namespace {

constexpr size_t kMostHeaders = 64;
constexpr size_t kMostBytes = 1 << 20;
constexpr size_t kMostLibraries = 1000;

class File {
 public:
  explicit File(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

  template <typename T>
  std::vector<T> Read(uint64_t offset, size_t count) const {
    std::vector<T> items(std::min(count, kMostBytes / sizeof(T)));
    const size_t bytes = items.size() * sizeof(T);
    const ssize_t size = pread(file_.get(), items.data(), bytes, static_cast<off_t>(offset));
    items.resize(size == static_cast<ssize_t>(bytes) ? items.size() : 0);
    return items;
  }

 private:
  const UniqueFd file_;
};

// Where in the file an address of the program lies.
uint64_t OffsetOf(uint64_t address, const std::vector<Elf64_Phdr>& headers) {
  for (const Elf64_Phdr& header : headers) {
    if (header.p_type == PT_LOAD && address >= header.p_vaddr &&
        address - header.p_vaddr < header.p_filesz) {
      return address - header.p_vaddr + header.p_offset;
    }
  }
  return 0;
}

// The libraries that a file needs, and where it says that they are.
struct Linkage {
  bool is_elf = false;
  std::vector<std::string> needed;
  std::string path;          // DT_RUNPATH, or the older DT_RPATH: folders, with colons between them
  bool has_runpath = false;  // DT_RPATH does not count beside it
};

bool IsElf(const std::vector<Elf64_Ehdr>& header) {
  return !header.empty() && std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) == 0 &&
         header[0].e_ident[EI_CLASS] == ELFCLASS64 && header[0].e_phentsize == sizeof(Elf64_Phdr);
}

Linkage Read(const std::string& program) {
  Linkage linkage;
  const File file(program);
  const auto header = file.Read<Elf64_Ehdr>(0, 1);
  if (!IsElf(header)) {
    return linkage;
  }
  linkage.is_elf = true;
  const auto headers =
      file.Read<Elf64_Phdr>(header[0].e_phoff, std::min<size_t>(header[0].e_phnum, kMostHeaders));
  const auto dynamic = std::find_if(headers.begin(), headers.end(),
                                    [](const Elf64_Phdr& one) { return one.p_type == PT_DYNAMIC; });
  if (dynamic == headers.end()) {
    return linkage;
  }
  const auto entries =
      file.Read<Elf64_Dyn>(dynamic->p_offset, dynamic->p_filesz / sizeof(Elf64_Dyn));
  uint64_t names = 0;
  uint64_t names_bytes = 0;
  for (const Elf64_Dyn& entry : entries) {
    names = entry.d_tag == DT_STRTAB ? entry.d_un.d_ptr : names;
    names_bytes = entry.d_tag == DT_STRSZ ? entry.d_un.d_val : names_bytes;
  }
  auto text = file.Read<char>(OffsetOf(names, headers), names_bytes);
  text.push_back('\0');
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_un.d_val >= text.size()) {
      continue;
    }
    if (entry.d_tag == DT_NEEDED) {
      linkage.needed.emplace_back(&text[entry.d_un.d_val]);
    } else if (entry.d_tag == DT_RUNPATH || (entry.d_tag == DT_RPATH && !linkage.has_runpath)) {
      linkage.path = &text[entry.d_un.d_val];
      linkage.has_runpath |= entry.d_tag == DT_RUNPATH;
    }
  }
  return linkage;
}

// ---- Where libraries lie ------------------------------------------------------------------------

// /etc/ld.so.cache in the format of glibc 2.2 and later: a header, entries, and texts, whose places
// count from the beginning.
class LoaderCache {
 public:
  LoaderCache() {
    const File file("/etc/ld.so.cache");
    const auto header = file.Read<Header>(0, 1);
    if (header.empty() || std::string_view(header[0].magic, sizeof(header[0].magic)) != kMagic) {
      return;  // an older one, or none
    }
    const auto entries = file.Read<Entry>(sizeof(Header), header[0].count);
    const uint64_t first = sizeof(Header) + entries.size() * sizeof(Entry);
    auto text = file.Read<char>(first, header[0].text_bytes);
    text.push_back('\0');
    const auto at = [&](uint32_t place) {
      return place < first || place - first >= text.size() ? "" : &text[place - first];
    };
    for (const Entry& entry : entries) {
      if (entry.flags == kLoaderCacheFlags && entry.hwcap == 0) {
        libraries_.emplace_back(at(entry.name), at(entry.path));
      }
    }
  }

  // Empty: it has none of this name.
  std::string Find(const std::string& name) const {
    for (const auto& [known, path] : libraries_) {
      if (known == name) {
        return path;
      }
    }
    return "";
  }

 private:
  static constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
  struct Header {
    char magic[20];
    uint32_t count;
    uint32_t text_bytes;
    uint32_t unused[5];
  };
  static_assert(sizeof(Header) == 48);
  struct Entry {
    int32_t flags;
    uint32_t name;
    uint32_t path;
    uint32_t unused;
    uint64_t hwcap;
  };
  static_assert(sizeof(Entry) == 24);

  std::vector<std::pair<std::string, std::string>> libraries_;
};

// Finds it in folders with colons between them; $ORIGIN is the folder of the file that has them.
std::string FindIn(std::string_view folders, const std::string& name, const std::string& origin) {
  while (!folders.empty()) {
    std::string folder(folders.substr(0, folders.find(':')));
    folders.remove_prefix(std::min(folder.size() + 1, folders.size()));
    for (const std::string_view word : {"$ORIGIN", "${ORIGIN}"}) {
      if (const size_t place = folder.find(word); place != folder.npos) {
        folder.replace(place, word.size(), origin);
      }
    }
    const std::string path = folder + "/" + name;
    if (!folder.empty() && access(path.c_str(), R_OK) == 0) {
      return path;
    }
  }
  return "";
}

}  // namespace

std::string NeededLibraries(const std::string& program) {
  std::string names;
  for (const std::string& name : Read(program).needed) {
    names += name + "\n";
  }
  return names;
}

namespace {

NeededLibrary Find(const std::string& name, const Linkage& linkage, const std::string& folder,
                   const std::string& library_path, const LoaderCache& cache) {
  const std::string own = FindIn(linkage.path, name, folder);
  if (!linkage.has_runpath && !own.empty()) {
    return {name, own, true};
  }
  std::string path = FindIn(library_path, name, folder);
  path = path.empty() ? own : path;
  path = path.empty() ? cache.Find(name) : path;
  path = path.empty() ? FindIn("/lib64:/usr/lib64:/lib:/usr/lib", name, folder) : path;
  return {name, path, false};
}

// Calls found(library) for each that is needed; see AllNeededLibraries.
template <typename Found>
void Walk(const std::string& program, const std::string& library_path,
          const std::function<bool(const std::string&)>& is_leaf, const Found& found) {
  const LoaderCache cache;
  std::set<std::string> known;
  std::vector<std::string> files = {program};
  for (size_t i = 0; i < files.size() && i < kMostLibraries; ++i) {
    const Linkage linkage = Read(files[i]);
    const std::string folder = files[i].substr(0, files[i].rfind('/'));
    for (const std::string& name : linkage.needed) {
      if (!known.insert(name).second) {
        continue;
      }
      const NeededLibrary library = Find(name, linkage, folder, library_path, cache);
      found(library);
      if (!is_leaf(name) && !library.path.empty()) {
        files.push_back(library.path);
      }
    }
  }
}

}  // namespace

std::vector<std::string> AllNeededLibraries(
    const std::string& program, const std::string& library_path,
    const std::function<bool(const std::string&)>& is_leaf) {
  std::vector<std::string> names;
  Walk(program, library_path, is_leaf,
       [&names](const NeededLibrary& library) { names.push_back(library.name); });
  return names;
}

std::vector<NeededLibrary> FindNeeded(const std::string& program, const std::string& library_path,
                                      const std::function<bool(const std::string&)>& is_leaf) {
  std::vector<NeededLibrary> leaves;
  Walk(program, library_path, is_leaf, [&](const NeededLibrary& library) {
    if (is_leaf(library.name)) {
      leaves.push_back(library);
    }
  });
  return leaves;
}

// ---- Names --------------------------------------------------------------------------------------

namespace {

std::set<std::string> Names(const std::string& library, bool are_defined) {
  std::set<std::string> names;
  const File file(library);
  const auto header = file.Read<Elf64_Ehdr>(0, 1);
  if (!IsElf(header) || header[0].e_shentsize != sizeof(Elf64_Shdr)) {
    return names;
  }
  const auto sections = file.Read<Elf64_Shdr>(header[0].e_shoff, header[0].e_shnum);
  const auto table = std::find_if(sections.begin(), sections.end(),
                                  [](const Elf64_Shdr& one) { return one.sh_type == SHT_DYNSYM; });
  if (table == sections.end() || table->sh_link >= sections.size()) {
    return names;
  }
  const Elf64_Shdr& strings = sections[table->sh_link];
  auto text = file.Read<char>(strings.sh_offset, strings.sh_size);
  text.push_back('\0');
  for (const Elf64_Sym& symbol :
       file.Read<Elf64_Sym>(table->sh_offset, table->sh_size / sizeof(Elf64_Sym))) {
    const bool is_weak = ELF64_ST_BIND(symbol.st_info) == STB_WEAK;
    if (symbol.st_name < text.size() && (symbol.st_shndx != SHN_UNDEF) == are_defined &&
        (are_defined || !is_weak)) {
      names.emplace(&text[symbol.st_name]);
    }
  }
  return names;
}

}  // namespace

std::set<std::string> NamesTaken(const std::string& library) { return Names(library, false); }
std::set<std::string> NamesDefined(const std::string& library) { return Names(library, true); }

}  // namespace ferry::tools
