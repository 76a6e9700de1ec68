#include "tools/admin/daemon_search.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/own_folders.h"
#include "config/environment.h"
#include "tools/admin/private_directory.h"

namespace ferry::tools {
namespace {

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
    for (const std::string& folder : FoldersOf(base, config::OwnPrefix(places.uid), places.uid)) {
      Add(folder, DaemonKind::kOwn, &found);
    }
    for (const std::string& folder : FoldersOf(base, PrivatePrefix(places.uid), places.uid)) {
      for (const std::string& node : FoldersOf(folder, "", places.uid)) {
        Add(node, DaemonKind::kPrivate, &found);
      }
    }
  }
  return found;
}

}  // namespace ferry::tools
