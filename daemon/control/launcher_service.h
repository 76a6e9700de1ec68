// The gRPC service Launcher: users start and end jobs of their own, and look at them. Every call
// must carry the token of a launcher (launchers.h), which says who the caller is.
//
// Calls run on gRPC's pool and reach the jobs through the control loop.
#pragma once

#include "daemon/control/control_loop.h"
#include "daemon/control/launchers.h"
#include "daemon/control/question_gate.h"
#include "daemon/control/reporter.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {

class LauncherService final : public control::Launcher::Service {
 public:
  // The most Why and Gpus calls of one user that are answered at a time.
  static constexpr int kMostQuestions = 4;

  // All must outlive it; the loop must run until the server has shut down.
  LauncherService(ControlLoop& loop, Launchers& launchers, Reporter& reporter)
      : loop_(loop), launchers_(launchers), reporter_(reporter) {}

  grpc::Status CreateJob(grpc::ServerContext* context, const control::CreateJobRequest* request,
                         control::CreateJobReply* reply) override;
  grpc::Status DestroyJob(grpc::ServerContext* context, const control::DestroyJobRequest* request,
                          control::DestroyJobReply* reply) override;
  grpc::Status Status(grpc::ServerContext* context, const control::StatusRequest* request,
                      control::StatusReply* reply) override;
  grpc::Status Sessions(grpc::ServerContext* context, const control::SessionsRequest* request,
                        control::SessionsReply* reply) override;
  grpc::Status Counters(grpc::ServerContext* context, const control::CountersRequest* request,
                        control::CountersReply* reply) override;
  grpc::Status Why(grpc::ServerContext* context, const control::WhyRequest* request,
                   control::WhyReply* reply) override;
  grpc::Status Nics(grpc::ServerContext* context, const control::NicsRequest* request,
                    control::NicsReply* reply) override;
  grpc::Status Gpus(grpc::ServerContext* context, const control::GpusRequest* request,
                    control::GpusReply* reply) override;

 private:
  StatusOr<Launchers::Launcher> Caller(const std::string& token);
  // Calls answer(uid) for the call's user; without a launcher's token it is refused.
  template <typename Answer>
  grpc::Status Tell(const grpc::ServerContext& context, Answer answer);
  // Likewise, a few at a time.
  template <typename Answer>
  grpc::Status TellInTurn(const grpc::ServerContext& context, Answer answer);

  ControlLoop& loop_;
  Launchers& launchers_;
  Reporter& reporter_;
  QuestionGate gate_{kMostQuestions};
};

}  // namespace ferry::daemon
