#include "tools/ferryrun/foreign_library.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tools/ferryrun/interface_folders.h"
#include "tools/ferryrun/linked_libraries.h"

namespace ferry::tools {
namespace {

// A look reads two small files of one rank. It must come between the moment at which a program
// loads its library and its end, so looks become rarer only as the program grows older.
constexpr uint64_t kShortestPauseNs = 20'000'000;
constexpr uint64_t kLongestPauseNs = 10'000'000'000;
constexpr uint64_t kLooksPerAge = 8;

// The beginnings of their files' names: Open MPI, MPICH and what comes of it, OpenSHMEM libraries.
constexpr std::string_view kForeign[] = {"libmpi.so",     "libmpi-",      "libmpi_",  "libmpich",
                                         "libmpifort.so", "liboshmem.so", "libsma.so"};
constexpr std::string_view kOwn[] = {"libferry.so", "libferry_shmem.so"};

template <size_t kCount>
bool StartsWithOne(std::string_view name, const std::string_view (&beginnings)[kCount]) {
  return std::any_of(std::begin(beginnings), std::end(beginnings),
                     [name](std::string_view one) { return name.starts_with(one); });
}

// Ferry's library of this name loads libferry, but a look may come before it has: so two looks have
// to find it alone.
bool HasNameOfStandard(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with("libmpi_abi");
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

}  // namespace

LibrariesSeen ParseMaps(std::string_view text) {
  LibrariesSeen seen;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t slash = line.rfind('/');
    const std::string_view name = slash == line.npos ? line : line.substr(slash + 1);
    seen.ferry |= StartsWithOne(name, kOwn);
    if (StartsWithOne(name, kForeign)) {
      const std::string path(slash == line.npos ? name : line.substr(line.find('/')));
      // Such a library loads Ferry's a moment later.
      if (slash != line.npos && LiesInOwnFolder(path)) {
        seen.ferry = true;
      } else if (seen.foreign.empty()) {
        seen.foreign = path;
      }
    }
  }
  return seen;
}

LibrariesSeen LibrariesOf(pid_t process, int generations) {
  LibrariesSeen seen;
  Look(process, generations, &seen);
  return seen;
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
    LibrariesSeen now;
    for (size_t i = 0;
         i < ranks.size() && (i == 0 || !seen_.foreign.empty() || !now.foreign.empty()); ++i) {
      tools::Look(ranks[i], kMostGenerations, &now);
    }
    sightings_ += now.foreign.empty() ? 0 : 1;
    seen_.ferry |= now.ferry;
    if (seen_.foreign.empty()) {
      seen_.foreign = now.foreign;
    }
  }
  const uint64_t pause_ns =
      std::clamp((now_ns - start_ns_) / kLooksPerAge, kShortestPauseNs, kLongestPauseNs);
  next_ns_ = IsCertain() ? 0 : now_ns + pause_ns;
}

bool LibraryWatch::IsCertain() const {
  return seen_.ferry ||
         (!seen_.foreign.empty() && (sightings_ > 1 || !HasNameOfStandard(seen_.foreign)));
}

std::string LibraryWatch::Foreign() const {
  LibrariesSeen seen = seen_;
  for (const std::string& program : programs_) {
    if (!IsCertain()) {
      const LibrariesSeen needed = ParseMaps(NeededLibraries(program));
      // This name alone does not tell whose library it is: Ferry's has it, too.
      seen.ferry |= needed.ferry || HasNameOfStandard(needed.foreign);
      seen.foreign = seen.foreign.empty() ? needed.foreign : seen.foreign;
    }
  }
  return seen.ferry ? "" : seen.foreign;
}

}  // namespace ferry::tools
