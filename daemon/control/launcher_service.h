// The gRPC service Launcher: users start and end jobs of their own. Every call must carry the token
// of a launcher (launchers.h), which says who the caller is.
//
// Calls run on gRPC's pool and reach the jobs through the control loop.
#pragma once

#include <sys/types.h>

#include <functional>

#include "daemon/control/control_loop.h"
#include "daemon/control/launchers.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {

class LauncherService final : public control::Launcher::Service {
 public:
  // What that user may see of the daemon's status; any thread but the control thread.
  using FillStatus = std::function<void(uid_t uid, control::StatusReply* reply)>;

  // All must outlive it; the loop must run until the server has shut down.
  LauncherService(ControlLoop& loop, Launchers& launchers, FillStatus fill_status)
      : loop_(loop), launchers_(launchers), fill_status_(std::move(fill_status)) {}

  grpc::Status CreateJob(grpc::ServerContext* context, const control::CreateJobRequest* request,
                         control::CreateJobReply* reply) override;
  grpc::Status DestroyJob(grpc::ServerContext* context, const control::DestroyJobRequest* request,
                          control::DestroyJobReply* reply) override;
  grpc::Status Status(grpc::ServerContext* context, const control::StatusRequest* request,
                      control::StatusReply* reply) override;

 private:
  StatusOr<Launchers::Launcher> Caller(const std::string& token);

  ControlLoop& loop_;
  Launchers& launchers_;
  const FillStatus fill_status_;
};

}  // namespace ferry::daemon
