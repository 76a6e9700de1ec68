// The folder of job_records: in it a folder for each user, named by the uid, and there a file for
// each job of that user that has ended.
//
// All belongs to the user that ferryd runs as. The user of the jobs may list his folder and read
// what is in it, and no other user: by an access control list (acl(5)), since ferryd may give no
// file away. Where the file system has none, only ferryd's user reads the records.
//
// One thread at a time; blocks as files do.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::daemon {

class RecordFolder {
 public:
  // Opens a folder that is there. kConfiguration: it is none, belongs to another user, or others
  // may write to it. `kept`: so many files of each user stay.
  static StatusOr<RecordFolder> Open(const std::string& path, uint64_t kept);

  // Leaves a file with that text, whole or not at all, and removes that user's oldest files beyond
  // the limit. kSystem, with the reason. A file that does not get the rights is left for ferryd's
  // user alone: then kUnsupported.
  Status Write(uid_t user, const std::string& name, const std::string& text);

 private:
  RecordFolder(std::string path, UniqueFd fd, uint64_t kept);
  StatusOr<UniqueFd> OpenOfUser(uid_t user, bool* is_shared) const;
  void RemoveOldest(int folder) const;

  std::string path_;
  UniqueFd fd_;
  uint64_t kept_;
};

}  // namespace ferry::daemon
