// The gRPC services of ferryd (proto/control.proto), each in a .cc of its own.
//
// All arguments must outlive the services, and the control loop must run until their server has
// shut down.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "daemon/admin/reporter.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/jobs/launchers.h"
#include "daemon/peers/peer_links.h"
#include "daemon/plane/control_loop.h"
#include "daemon/plane/data_plane.h"

namespace ferry::daemon {

class UnreadAnswers;

// Counts the changes of a status, and wakes the threads that wait for one. Any thread.
class ChangeSignal {
 public:
  void Notify() {
    std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  // Ends all waits for good: each returns at once.
  void Close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  // Returns the count once it differs from `seen`, or after `timeout`.
  uint64_t Wait(uint64_t seen, std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return closed_ || count_ != seen; });
    return count_;
  }
  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t count_ = 0;
  bool closed_ = false;
};

struct AdminContext {
  ControlLoop& loop;
  JobRegistry& registry;
  PeerLinks& links;
  DataPlane& data_plane;
  ChangeSignal& changes;
  Reporter& reporter;
  // Makes ControlServer::RunUntilStopped end: waits for running jobs for at most `wait_ms`;
  // without, for as long as they take. Asked again, the shorter time counts.
  std::function<void(std::optional<uint64_t> wait_ms)> request_stop;
  // Names who is connected to the service's socket. On the control thread.
  std::function<std::string()> callers;
};
// Makes the service Admin, for administrators; calls run on gRPC's pool, where Drain and Watch
// wait.
std::unique_ptr<grpc::Service> MakeAdminService(AdminContext context);
// Makes the service Launcher, for users, by launchers' tokens; calls run on gRPC's pool. `unread`
// watches its server.
std::unique_ptr<grpc::Service> MakeLauncherService(ControlLoop& loop, Launchers& launchers,
                                                   Reporter& reporter, UnreadAnswers& unread);
// Makes the service Peer, for other daemons; the control thread answers. `certificate_of` returns
// the certificate of the client with that grpc::ServerContext::peer, in PEM form; empty without
// TLS.
std::unique_ptr<grpc::Service> MakePeerService(
    ControlLoop& loop, PeerLinks& links, JobRegistry& registry, const DataPlane& data_plane,
    std::function<std::string(const std::string& peer)> certificate_of);

}  // namespace ferry::daemon
