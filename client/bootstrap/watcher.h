// One thread per rank that turns the daemon's death into errors at once, and its hanging soon.
//
// It sleeps on the attach socket and on ferryd's pidfd; when either says that the daemon is gone it
// poisons the rank, which wakes every sleeping thread. Now and then it has a look at whether a
// daemon that lives still turns (daemon_life.h). Where the daemon may order direct links, it also
// wakes for what comes on the socket, and has that looked at.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "client/bootstrap/attach_connection.h"
#include "client/bootstrap/daemon_life.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "shm/wake.h"

namespace ferry::client {

// The watcher's work beside watching its daemon: to have the daemon's orders looked at
// (AttachConnection::TakeOrder).
struct WatcherDuties {
  // Takes up orders, on the watcher's thread. Returns in how many milliseconds the watcher is to
  // call it again even if nothing comes; -1: only when something comes. Empty: there are no orders.
  std::function<int()> look;
  int call_fd = -1;            // an eventfd, by which others have it look
  DaemonLife* life = nullptr;  // null: a daemon that hangs is not noticed
};

class Watcher {
 public:
  // The arguments outlive the watcher. Its thread calls `on_end`, with the error, once the rank is
  // poisoned. If the daemon hangs, and so answers no call, the thread calls `on_hang` before that.
  Watcher(AttachConnection* attach, int daemon_pidfd, shm::Wake wake,
          std::function<void(ErrorCode)> on_end, std::function<void()> on_hang,
          WatcherDuties duties);
  // Call it once. kSystem where the system starts no more threads.
  Status Start();
  // Stops and joins the thread.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Returns why this watcher poisoned the rank; ok if it has not. Any thread.
  Status reason() const;
  // Waits until this watcher has poisoned the rank, at most `patience`, and returns why; ok if it
  // has not. Any thread but the watcher's.
  Status AwaitReason(std::chrono::milliseconds patience) const;

 private:
  void Run();
  std::optional<Status> AwaitEnd();

  AttachConnection* const attach_;
  const int daemon_pidfd_;
  shm::Wake wake_;
  const std::function<void(ErrorCode)> on_end_;
  const std::function<void()> on_hang_;
  const WatcherDuties duties_;
  UniqueFd stop_;  // eventfd
  mutable std::mutex mutex_;
  mutable std::condition_variable told_;
  Status reason_;
  std::thread thread_;
};

}  // namespace ferry::client
