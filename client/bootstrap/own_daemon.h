// A private daemon that a rank starts for its job. It runs ferryrun, which starts the daemon and
// ends it when this object, or the process, ends.
//
// Calling thread: any, and it may end before this object does. Start blocks until the daemon
// serves; the destructor until it has ended.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::client {

class OwnDaemon {
 public:
  // Starts the daemon. kNotFound: ferryrun is neither where libferry would have it, nor in PATH.
  // Other errors have ferryrun's words.
  static StatusOr<std::unique_ptr<OwnDaemon>> Start();
  ~OwnDaemon();

  const std::string& run_directory() const { return run_directory_; }

 private:
  OwnDaemon() = default;
  StatusOr<std::string> Read();

  pid_t pid_ = -1;
  UniqueFd life_;   // the daemon ends when it closes
  UniqueFd words_;  // what ferryrun says
  std::string run_directory_;
};

// Returns the paths where ferryrun may be, seen from the folder of libferry: as installed, and in a
// build tree.
std::vector<std::string> PlacesOfFerryrun(const std::string& library_folder);

}  // namespace ferry::client
