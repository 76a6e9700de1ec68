#include "tools/admin/daemon_search.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "config/environment.h"
#include "tools/admin/private_directory.h"

namespace ferry::tools {
namespace {

namespace fs = std::filesystem;

bool IsDirectoryOf(const std::string& path, uid_t uid) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == uid;
}

// The user's folders there whose names begin with the prefix, sorted.
std::vector<std::string> FoldersOf(const std::string& base, const std::string& prefix, uid_t uid) {
  std::vector<std::string> folders;
  std::error_code error;
  for (fs::directory_iterator entry(base, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix) &&
        IsDirectoryOf(entry->path(), uid)) {
      folders.push_back(entry->path());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

void Add(const std::string& folder, DaemonKind kind, std::vector<DaemonDirectory>* found) {
  const bool is_known =
      std::any_of(found->begin(), found->end(),
                  [&](const DaemonDirectory& other) { return other.run_directory == folder; });
  if (!is_known && access((folder + "/control.sock").c_str(), F_OK) == 0) {
    found->push_back({folder, kind});
  }
}

}  // namespace

const char* DaemonKindText(DaemonKind kind) {
  switch (kind) {
    case DaemonKind::kNode:
      return "node";
    case DaemonKind::kOwn:
      return "own";
    case DaemonKind::kJob:
      return "job";
    case DaemonKind::kPrivate:
      return "private";
  }
  return "";
}

SearchPlaces PlacesOf(const char* const* environment) {
  SearchPlaces places{.usual = config::DefaultRunDirectory(environment),
                      .system = config::kSystemRunDirectory,
                      .bases = {},
                      .uid = geteuid()};
  // This shell need not have the variables of the one that started ferryrun.
  for (const char* variable : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    if (const auto value = config::FindVariable(environment, variable); value && !value->empty()) {
      places.bases.emplace_back(*value);
    }
  }
  places.bases.push_back("/run/user/" + std::to_string(places.uid));
  places.bases.emplace_back("/tmp");
  places.bases.emplace_back("/dev/shm");  // where /tmp could not be written to
  return places;
}

std::vector<DaemonDirectory> SearchDaemons(const SearchPlaces& places) {
  std::vector<DaemonDirectory> found;
  if (places.usual != places.system) {
    found.push_back({places.usual, DaemonKind::kOwn});
  }
  found.push_back({places.system, DaemonKind::kNode});
  for (const std::string& folder : FoldersOf(places.system, "", places.uid)) {
    Add(folder, DaemonKind::kJob, &found);
  }
  for (const std::string& base : places.bases) {
    for (const std::string& folder : FoldersOf(base, PrivatePrefix(places.uid), places.uid)) {
      for (const std::string& node : FoldersOf(folder, "", places.uid)) {
        Add(node, DaemonKind::kPrivate, &found);
      }
    }
  }
  return found;
}

}  // namespace ferry::tools
