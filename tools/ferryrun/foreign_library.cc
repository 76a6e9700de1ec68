#include "tools/ferryrun/foreign_library.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "common/unique_fd.h"

namespace ferry::tools {
namespace {

// A look reads two small files of one rank. It must come between the moment at which a program
// loads its library and its end, so looks become rarer only as the program grows older.
constexpr uint64_t kShortestPauseNs = 20'000'000;
constexpr uint64_t kLongestPauseNs = 10'000'000'000;
constexpr uint64_t kLooksPerAge = 8;
constexpr size_t kMostHeaders = 64;
constexpr size_t kMostBytes = 1 << 20;

// The beginnings of their files' names: Open MPI, MPICH and what comes of it, OpenSHMEM libraries.
constexpr std::string_view kForeign[] = {"libmpi.so",     "libmpi-",      "libmpi_",  "libmpich",
                                         "libmpifort.so", "liboshmem.so", "libsma.so"};
constexpr std::string_view kOwn[] = {"libferry.so", "libferry_shmem.so"};

template <size_t kCount>
bool StartsWithOne(std::string_view name, const std::string_view (&beginnings)[kCount]) {
  return std::any_of(std::begin(beginnings), std::end(beginnings),
                     [name](std::string_view one) { return name.starts_with(one); });
}

// Whatever can be read: of a process that ends meanwhile, nothing more.
std::string ReadAll(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // ends at an error, where an iterator would throw
  return text.str();
}

void Look(pid_t pid, int generations, LibrariesSeen* seen) {
  const std::string directory = "/proc/" + std::to_string(pid);
  const LibrariesSeen here = ParseMaps(ReadAll(directory + "/maps"));
  seen->ferry |= here.ferry;
  if (seen->foreign.empty()) {
    seen->foreign = here.foreign;
  }
  // Absent in kernels without CONFIG_PROC_CHILDREN: wrappers are not looked through then.
  std::istringstream children(ReadAll(directory + "/task/" + std::to_string(pid) + "/children"));
  for (pid_t child = 0; generations > 0 && children >> child;) {
    Look(child, generations - 1, seen);
  }
}

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

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

}  // namespace

LibrariesSeen ParseMaps(std::string_view text) {
  LibrariesSeen seen;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t slash = line.rfind('/');
    const std::string_view name = slash == line.npos ? line : line.substr(slash + 1);
    seen.ferry |= StartsWithOne(name, kOwn);
    if (StartsWithOne(name, kForeign) && seen.foreign.empty()) {
      seen.foreign = slash == line.npos ? name : line.substr(line.find('/'));
    }
  }
  return seen;
}

LibrariesSeen LibrariesOf(pid_t process, int generations) {
  LibrariesSeen seen;
  Look(process, generations, &seen);
  return seen;
}

std::string NeededLibraries(const std::string& program) {
  const ElfFile file(program);
  const auto header = file.Read<Elf64_Ehdr>(0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      header[0].e_ident[EI_CLASS] != ELFCLASS64 || header[0].e_phentsize != sizeof(Elf64_Phdr)) {
    return "";
  }
  const auto headers =
      file.Read<Elf64_Phdr>(header[0].e_phoff, std::min<size_t>(header[0].e_phnum, kMostHeaders));
  const auto dynamic = std::find_if(headers.begin(), headers.end(),
                                    [](const Elf64_Phdr& one) { return one.p_type == PT_DYNAMIC; });
  if (dynamic == headers.end()) {
    return "";
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
  std::string libraries;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NEEDED && entry.d_un.d_val < text.size()) {
      libraries += std::string(&text[entry.d_un.d_val]) + "\n";
    }
  }
  return libraries;
}

void LibraryWatch::Look(uint64_t now_ns, const std::vector<pid_t>& ranks) {
  if (next_ns_ == 0 || now_ns < next_ns_) {
    return;
  }
  if (start_ns_ == 0) {
    start_ns_ = now_ns;
  } else {
    // All ranks of a job mostly do the same: the watch looks at one, and at the others once it
    // shows another library than Ferry's.
    for (size_t i = 0; i < ranks.size() && (i == 0 || !seen_.foreign.empty()); ++i) {
      tools::Look(ranks[i], kMostGenerations, &seen_);
    }
  }
  const uint64_t pause_ns =
      std::clamp((now_ns - start_ns_) / kLooksPerAge, kShortestPauseNs, kLongestPauseNs);
  next_ns_ = seen_.is_certain() ? 0 : now_ns + pause_ns;
}

std::string LibraryWatch::Foreign() const {
  LibrariesSeen seen = seen_;
  for (const std::string& program : programs_) {
    if (!seen_.is_certain()) {
      const LibrariesSeen needed = ParseMaps(NeededLibraries(program));
      // This name alone does not tell whose library it is: Ferry's has it, too.
      const bool is_standard = needed.foreign.starts_with("libmpi_abi");
      seen.ferry |= needed.ferry || is_standard;
      seen.foreign = seen.foreign.empty() ? needed.foreign : seen.foreign;
    }
  }
  return seen.ferry ? "" : seen.foreign;
}

}  // namespace ferry::tools
