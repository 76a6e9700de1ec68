// Writes the records of ended jobs on a thread of its own: a folder that is full, slow or not to be
// reached holds no job up.
//
// Put is for the control thread, and never blocks.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "common/status.h"
#include "daemon/records/ended_job.h"

namespace ferry::daemon {

class RecordWriter {
 public:
  // Writes one record, as RecordFolder::Write does; on the writer's thread, and it may block.
  using Write = std::function<Status(uid_t user, const std::string& name, const std::string& text)>;

  explicit RecordWriter(Write write);
  // Waits two seconds at most for the records that have been put; what is not written then is lost,
  // and the log says so.
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  // A record beyond the 1,024 that may wait is lost, and the log says so.
  void Put(EndedJob job);

 private:
  struct State;
  // Its own thread's, too, which may outlive this while a file system does not answer.
  const std::shared_ptr<State> state_;
};

}  // namespace ferry::daemon
