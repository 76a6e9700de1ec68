// Finds the places where daemons that serve this user may be: the user's own, the node's, those of
// his Slurm jobs, and the private ones of his ferryruns.
//
// Any thread; blocks on the file system only. It does not ask whether a daemon answers there.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ferry::tools {

enum class DaemonKind { kNode, kOwn, kJob, kPrivate };
// Returns "node", "own", "job" or "private".
const char* DaemonKindText(DaemonKind kind);

struct DaemonDirectory {
  std::string run_directory;
  DaemonKind kind = DaemonKind::kOwn;
};

// The places to search.
struct SearchPlaces {
  std::string usual;               // the run directory where no option names one
  std::string system;              // for all users; below it, those of Slurm's jobs
  std::vector<std::string> bases;  // that hold private directories
  uid_t uid = 0;                   // whose
};
SearchPlaces PlacesOf(const char* const* environment);

// Returns the usual directory and the system's first, even if they do not exist, then those that
// hold a socket. Below a base that others can write to, only directories of the user count.
std::vector<DaemonDirectory> SearchDaemons(const SearchPlaces& places);

}  // namespace ferry::tools
