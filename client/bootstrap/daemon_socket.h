// A client's connection to a socket in a run directory, and whom it takes for a ferryd.
//
// The process that serves a run directory gets the job's secret and maps the rank's memory. So
// before the first byte is sent, the directory must be a real one into which only its owner writes,
// and both this owner and the process that listens at the socket (SO_PEERCRED) must be root, this
// process's own user, or the user that the option daemon_user names.
//
// In a user namespace, as of a container, the kernel shows every user from outside by one number
// (overflowuid), root as well. There this number counts as root's: FERRY_RUN_DIRECTORY must be set
// by a program that has looked at it from outside the namespace, as ferryrun has, or name a place
// where only root can make a directory, as the default does.
//
// Any thread; blocks for `timeout_ms` at most, and for a look into the user database where
// daemon_user is a name and neither of the first two users serves.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::client {

struct DaemonSocket {
  std::string run_directory;
  const char* name = "";         // of the socket there: "attach.sock"
  int type = 0;                  // SOCK_SEQPACKET or SOCK_STREAM
  uint64_t timeout_ms = 0;       // also of later sends and receives (SO_SNDTIMEO, SO_RCVTIMEO)
  std::string daemon_user = {};  // the option

  std::string Path() const { return run_directory + "/" + name; }
};

// Connects. Where the kernel refuses that, *connect_error is its error number, and the descriptor
// is not valid: each caller has its own advice. Errors: kRunDirectory (the directory or its server
// belongs to another user, or the name is too long: says whose it is and what to do),
// kConfiguration (daemon_user names no user).
StatusOr<UniqueFd> ConnectToDaemon(const DaemonSocket& wanted, int* connect_error);

}  // namespace ferry::client
