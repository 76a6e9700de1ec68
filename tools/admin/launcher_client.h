// A user's end of a ferryd: its Launcher service, for jobs of his own.
//
// It holds the connection to the attach socket that says who the user is: jobs made through it end
// when it is destroyed, or its process dies. Any thread; calls block for at most the time given to
// Connect. Errors are sentences for the user: kNoDaemon, kPermissionDenied (that daemon serves
// others), kVersionMismatch (names both), kTimeout.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "client/core/attach_connection.h"
#include "common/status.h"
#include "proto/control.grpc.pb.h"
#include "tools/admin/daemon_call.h"

namespace ferry::tools {

class LauncherClient {
 public:
  using Stub = control::Launcher::Stub;

  // Finds the daemon of `run_directory`, gets a token, and compares versions.
  static StatusOr<LauncherClient> Connect(const std::string& run_directory, uint64_t timeout_ms);

  // One call: client.Call(&LauncherClient::Stub::CreateJob, request, &reply).
  template <typename Request, typename Reply>
  Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
              const Request& request, Reply* reply) const {
    grpc::ClientContext context;
    Prepare(&context);
    return StatusOfCall(place_, (stub_.get()->*method)(&context, request, reply));
  }

  // What the daemon said about itself, and about this user, when Connect met it.
  const control::StatusReply& daemon() const { return daemon_; }

 private:
  explicit LauncherClient(DaemonPlace place);
  Status Identify();
  void Prepare(grpc::ClientContext* context) const;  // token and deadline

  DaemonPlace place_;
  std::unique_ptr<client::AttachConnection> attach_;
  std::string token_;
  std::unique_ptr<Stub> stub_;
  control::StatusReply daemon_;
};

}  // namespace ferry::tools
