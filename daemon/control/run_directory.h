// The daemon's run directory: its lock, its sockets' paths, its info file.
//
//   ferryd.lock   held (flock) for the daemon's life; its text is the daemon's pid
//   attach.sock   proto/attach_protocol.h
//   control.sock  gRPC services Client and Launcher
//   admin.sock    gRPC service Admin, for the owner and root only
//   ferryd.json   data for launchers and tools: see Info
//
// The daemon that holds the lock owns every file here. Files that a dead daemon left are removed
// under the lock; the destructor removes its own files, and the directory too if Open made it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::daemon {

class RunDirectory {
 public:
  // The contents of ferryd.json.
  struct Info {
    std::string node_name;
    std::string control_address;  // host:port really bound
    uint64_t incarnation = 0;
    std::string metrics_address = {};  // empty: none
  };

  // Makes the directory if only its last component is missing, with mode 0755 if it is for all
  // users, else 0700; one that is there keeps its mode. The end of a name that is still to be made
  // up (config::IsUnmade) is drawn at random. Errors: kRunDirectory (its parent is
  // missing, it is no directory, is owned by someone else, is writable by others, or not by us),
  // kAlreadyExists (another daemon holds it: names its pid). May be called by any thread; does not
  // wait for the lock.
  static StatusOr<RunDirectory> Open(const std::string& path, bool for_all);

  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory();

  const std::string& path() const { return path_; }
  std::string AttachSocket() const { return path_ + "/attach.sock"; }
  std::string ControlSocket() const { return path_ + "/control.sock"; }
  std::string AdminSocket() const { return path_ + "/admin.sock"; }
  std::string InfoFile() const { return path_ + "/ferryd.json"; }
  std::string LockFile() const { return path_ + "/ferryd.lock"; }

  // Returns true if users other than the owner can reach the sockets in the directory.
  bool IsOpenToAll() const;
  // Writes ferryd.json at once and whole (rename).
  Status WriteInfo(const Info& info) const;

 private:
  RunDirectory(std::string path, bool created);
  Status Take(bool for_all);
  Status Lock();
  Status TryLock();
  void RemoveFiles() const;

  std::string path_;
  bool created_ = false;  // the directory itself
  pid_t owner_pid_ = 0;   // a forked child must not unlink what is its parent's; 0: not locked
  UniqueFd lock_;
};

}  // namespace ferry::daemon
