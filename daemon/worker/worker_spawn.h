// Starts the program ferry-worker as another user. It inherits one socket of ferryd's, nothing
// else.
//
// The child gives up everything before it executes the program: signals, session, descriptors,
// working directory, groups, user, capabilities (for good: PR_SET_NO_NEW_PRIVS), limits.
//
// The thread that forks it has an empty table of descriptors. From a copy of ferryd's table the
// child would have to close each descriptor, also those that other users have just passed: closing
// such a descriptor may take as long as its owner likes (daemon/sockets/disposal.h), while another
// user's job would wait.
#pragma once

#include <sys/types.h>

#include <string>
#include <thread>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::daemon {

// The user that a worker runs as. Without `change` it runs as ferryd's user.
struct WorkerUser {
  uid_t uid = 0;
  gid_t gid = 0;
  bool change = false;
};

// Exit statuses of a child that never became the program; kExitNoIsolation, too.
inline constexpr int kExitNoUser = 121;
inline constexpr int kExitNoProgram = 122;

// Opens the program: `path`, or, if that is empty, ferry-worker beside this executable or in
// ../libexec/ferry or ../lib/ferry of it. kNotFound, with the places that were tried.
StatusOr<UniqueFd> OpenWorkerProgram(const std::string& path);

// Returns true if ferryd may start workers of other users: it is root, or has CAP_SETUID and
// CAP_SETGID.
bool MayBecomeOthers();

// The groups that `user` belongs to, its own first. Asks the system's user database: may block.
std::vector<gid_t> GroupsOf(const WorkerUser& user);

struct SpawnedWorker {
  pid_t pid = 0;
  UniqueFd pidfd;  // not valid where the system has none (common/process_handle.h)
};

class WorkerSpawner {
 public:
  // Best made before ferryd listens to other users. Blocks until its thread is set up.
  WorkerSpawner();
  // Kills its workers, if there are any.
  ~WorkerSpawner();
  WorkerSpawner(const WorkerSpawner&) = delete;
  WorkerSpawner& operator=(const WorkerSpawner&) = delete;

  // `socket` becomes the worker's descriptor kWorkerSocket; `name` shows in ps; `environment` is
  // all of it, as "NAME=value". One thread at a time; blocks until the process has started.
  // kSystem.
  StatusOr<SpawnedWorker> Spawn(int program, const WorkerUser& user,
                                const std::vector<gid_t>& groups, int socket,
                                const std::string& name,
                                const std::vector<std::string>& environment);

 private:
  void Loop(int receiver);

  Status ready_;
  UniqueFd handover_;  // of orders, to the thread
  UniqueFd receiver_;  // the other end, unless the thread has its own
  std::thread thread_;
};

}  // namespace ferry::daemon
