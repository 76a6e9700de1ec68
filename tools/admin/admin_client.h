// The administrator's end of a ferryd: its Admin service, over admin.sock of its run directory.
//
// Any thread; calls block for at most the time given to Connect. Errors are sentences for the user:
// what is wrong with that directory and what to do. kNoDaemon: nothing serves it (or not any more);
// kPermissionDenied: this user is not its administrator; kVersionMismatch: names both versions;
// kTimeout.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "common/status.h"
#include "proto/control.grpc.pb.h"
#include "tools/admin/daemon_call.h"

namespace ferry::tools {

class AdminClient {
 public:
  using Stub = control::Admin::Stub;

  // Finds the daemon of `run_directory` and compares versions with it.
  static StatusOr<AdminClient> Connect(const std::string& run_directory, uint64_t timeout_ms);

  // One call: client.Call(&AdminClient::Stub::Status, request, &reply).
  template <typename Request, typename Reply>
  Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
              const Request& request, Reply* reply) const {
    grpc::ClientContext context;
    context.set_deadline(Deadline());
    return FromGrpc((stub_.get()->*method)(&context, request, reply));
  }

  // The stub, for streaming calls, which have no deadline.
  Stub& stub() const { return *stub_; }
  // The same sentence for the status that ends a stream.
  Status FromGrpc(const grpc::Status& status) const;

  // What the daemon said about itself when Connect met it.
  const control::StatusReply& daemon() const { return daemon_; }

 private:
  explicit AdminClient(DaemonPlace place);
  std::chrono::system_clock::time_point Deadline() const;

  DaemonPlace place_;
  std::unique_ptr<Stub> stub_;
  control::StatusReply daemon_;
};

}  // namespace ferry::tools
