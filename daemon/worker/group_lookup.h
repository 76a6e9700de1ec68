// Asks the system's user database for groups on a thread of its own: behind it may be a directory
// server that does not answer.
//
// Calling thread: any. Nothing blocks but the destructor, which waits for the answer under way.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "daemon/worker/worker_spawn.h"

namespace ferry::daemon {

class GroupLookup {
 public:
  using Source = std::function<std::vector<gid_t>(const WorkerUser& user)>;
  using Done = std::function<void(std::vector<gid_t> groups)>;  // called on the thread

  explicit GroupLookup(Source source);
  ~GroupLookup();  // what has not begun never gets an answer
  GroupLookup(const GroupLookup&) = delete;
  GroupLookup& operator=(const GroupLookup&) = delete;

  void Ask(const WorkerUser& user, Done done);

 private:
  struct Question {
    WorkerUser user;
    Done done;
  };

  void Loop();

  const Source source_;
  std::mutex mutex_;
  std::condition_variable asked_;
  bool stop_ = false;
  std::deque<Question> questions_;
  std::thread thread_;
};

}  // namespace ferry::daemon
