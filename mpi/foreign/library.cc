#include "mpi/foreign/library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/foreign/convert.h"

namespace ferry::foreign {

Calls abi;

namespace {

constexpr char kLibrary[] = "libmpi_abi.so.1";

constexpr const char* kNames[] = {
#include "mpi/foreign/names.inc"
};
static_assert(sizeof(Calls) == std::size(kNames) * sizeof(void*));

void* library = nullptr;

[[noreturn]] void Stop(const std::string& text) {
  std::fprintf(stderr, "%s (Ferry): %s\n", kFamilyLibrary, text.c_str());
  std::fflush(nullptr);
  _exit(1);
}

// ---- Opening it ---------------------------------------------------------------------------------

bool IsFerrys(void* opened) {
  auto* const version = reinterpret_cast<decltype(&PMPI_Get_library_version)>(
      dlsym(opened, "PMPI_Get_library_version"));
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  return version != nullptr && version(text, &length) == MPI_SUCCESS &&
         std::string_view(text).starts_with("Ferry ");
}

std::string OwnPath() {
  Dl_info info{};
  return dladdr(&abi, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// That of the same installation (two folders above, as where the build puts it), unless the process
// has Ferry's already.
void* Open() {
  void* const loaded = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (loaded != nullptr && IsFerrys(loaded)) {
    return loaded;
  }
  const std::string own = OwnPath();
  char resolved[PATH_MAX];
  for (const std::string& path :
       {own, std::string(realpath(own.c_str(), resolved) == nullptr ? "" : resolved)}) {
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    const std::string candidate = folder + "../../" + kLibrary;
    if (!folder.empty() && access(candidate.c_str(), R_OK) == 0) {
      if (void* const opened = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        return opened;
      }
      Stop(dlerror());
    }
  }
  return dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
}

__attribute__((constructor)) void Load() {
  library = Open();
  if (library == nullptr) {
    Stop("cannot open Ferry's " + std::string(kLibrary) + ", which belongs into the folder above " +
         OwnPath());
  }
  auto* place = reinterpret_cast<void**>(&abi);
  for (const char* name : kNames) {
    *place = dlsym(library, name);
    if (*place++ == nullptr) {
      Stop(std::string(kLibrary) + " has no " + name + ": it is of another version of Ferry");
    }
  }
  if (!IsFerrys(library)) {
    Stop(std::string(kLibrary) + " is not Ferry's");
  }
}

// ---- Other libraries ----------------------------------------------------------------------------

bool IsMpi(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const char* beginning : {"libmpi.so", "libmpich.so", "libmpi_abi.so", "libmpi-"}) {
    if (name.starts_with(beginning)) {
      return true;
    }
  }
  return false;
}

int Note(dl_phdr_info* info, size_t, void* paths) {
  if (info->dlpi_name != nullptr && IsMpi(info->dlpi_name)) {
    static_cast<std::vector<std::string>*>(paths)->emplace_back(info->dlpi_name);
  }
  return 0;
}

// Ferry's library of another family: it calls the same libmpi_abi.
bool IsFerrysFamily(void* opened) {
  auto* const version =
      reinterpret_cast<int (*)(char*, int*)>(dlsym(opened, "PMPI_Get_library_version"));
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  return version != nullptr && version(text, &length) == MPI_SUCCESS &&
         std::strstr(text, "Ferry ") != nullptr;
}

bool IsRunning(void* opened) {
  int initialized = 0;
  int finalized = 0;
  for (const auto& [name, place] :
       {std::pair{"PMPI_Initialized", &initialized}, std::pair{"PMPI_Finalized", &finalized}}) {
    auto* const function = reinterpret_cast<int (*)(int*)>(dlsym(opened, name));
    if (function == nullptr || function(place) != MPI_SUCCESS) {
      return false;
    }
  }
  return initialized != 0 && finalized == 0;
}

}  // namespace

void LookForOthers() {
  std::vector<std::string> paths;
  dl_iterate_phdr(Note, &paths);
  for (const std::string& path : paths) {
    void* const opened = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (opened == nullptr || opened == library || path == OwnPath() || IsFerrysFamily(opened)) {
      continue;
    }
    if (IsRunning(opened)) {
      Stop("this process is a rank of " + path +
           " already: it would be part of two jobs. Use one MPI library in a process; "
           "ferryrun --abi=native leaves programs to the library that they were built for");
    }
    std::fprintf(stderr,
                 "%s (Ferry): this process has loaded %s, too; what calls that library is no part "
                 "of this job\n",
                 kFamilyLibrary, path.c_str());
  }
}

void CheckLayout() {
  constexpr MPI_Count kBytes = 0x123456789;
  MPI_Status status{};
  if (abi.Status_set_elements_c(&status, MPI_BYTE, kBytes) != MPI_SUCCESS ||
      abi.Status_set_cancelled(&status, 1) != MPI_SUCCESS ||
      status.MPI_internal[kOurBytes] != static_cast<int>(kBytes & 0xffffffff) ||
      status.MPI_internal[kOurBytes + 1] != kBytes >> 32 ||
      status.MPI_internal[kOurCancelled] != 1) {
    Stop(std::string(kLibrary) + " has another MPI_Status: it is of another version of Ferry");
  }
}

int Refuse(const char* call, int our_class, const char* text) {
  std::fprintf(stderr, "%s (Ferry): %s: %s\n", kFamilyLibrary, call, text);
  (void)abi.Comm_call_errhandler(MPI_COMM_WORLD, our_class);
  return TheirCode(our_class);
}

bool HasMemoryKind(const char* kind) {
  int running = 0;
  int finalized = 0;
  MPI_Info info = MPI_INFO_NULL;
  if (abi.Initialized(&running) != MPI_SUCCESS || running == 0 ||
      abi.Finalized(&finalized) != MPI_SUCCESS || finalized != 0 ||
      abi.Comm_get_info(MPI_COMM_SELF, &info) != MPI_SUCCESS) {
    return false;
  }
  char kinds[MPI_MAX_INFO_VAL] = "";
  int length = sizeof(kinds);
  int is_there = 0;
  abi.Info_get_string(info, "mpi_memory_alloc_kinds", &length, kinds, &is_there);
  abi.Info_free(&info);
  for (const char* one = kinds; is_there != 0 && one != nullptr;) {
    const size_t size = std::strcspn(one, ":,");
    if (size == std::strlen(kind) && std::strncmp(one, kind, size) == 0) {
      return true;
    }
    one = std::strchr(one, ',');
    one = one == nullptr ? nullptr : one + 1;
  }
  return false;
}

}  // namespace ferry::foreign
