#include "daemon/control/launcher_service.h"

#include <optional>
#include <string>
#include <utility>

#include "common/log.h"
#include "daemon/control/grpc_status.h"

namespace ferry::daemon {
namespace {

// "Status" is a method of the service; the class needs its full name here.
using Outcome = ::ferry::Status;

Outcome CheckUid(const control::CreateJobRequest& request, const Launchers::Launcher& caller) {
  if (!request.has_uid() || request.uid() == caller.uid) {
    return {};
  }
  return {ErrorCode::kPermissionDenied,
          "job " + request.job_id() + ": uid " + std::to_string(caller.uid) +
              " may start jobs only for itself, not for uid " + std::to_string(request.uid())};
}

}  // namespace

StatusOr<Launchers::Launcher> LauncherService::Caller(const std::string& token) {
  return loop_.Run([&] { return launchers_.Find(token); });
}

grpc::Status LauncherService::CreateJob(grpc::ServerContext* context,
                                        const control::CreateJobRequest* request,
                                        control::CreateJobReply*) {
  const std::string token = TokenOf(*context);
  const StatusOr<Launchers::Launcher> caller = Caller(token);
  if (!caller.ok()) {
    return ToGrpc(caller.status());
  }
  if (Outcome outcome = CheckUid(*request, *caller); !outcome.ok()) {
    return ToGrpc(outcome);
  }
  StatusOr<JobSpec> spec = SpecFrom(*request);
  const Outcome outcome =
      spec.ok() ? loop_.Run([&] { return launchers_.CreateJob(token, std::move(*spec)); })
                : spec.status();
  if (outcome.ok()) {
    spdlog::info("job {}: created by uid {}, {} ranks on {} nodes", request->job_id(), caller->uid,
                 request->size(), request->node_addresses_size());
  } else {
    static RateLimiter limiter(10, 1'000'000'000);  // any user may cause as many as he likes
    LogLimited(limiter, spdlog::level::warn, "job of uid {} not created: {}", caller->uid,
               outcome.message());
  }
  return ToGrpc(outcome);
}

grpc::Status LauncherService::DestroyJob(grpc::ServerContext* context,
                                         const control::DestroyJobRequest* request,
                                         control::DestroyJobReply*) {
  const std::string token = TokenOf(*context);
  return ToGrpc(loop_.Run([&] { return launchers_.DestroyJob(token, request->job_id()); }));
}

template <typename Answer>
grpc::Status LauncherService::Tell(const grpc::ServerContext& context, Answer answer) {
  const StatusOr<Launchers::Launcher> caller = Caller(TokenOf(context));
  return ToGrpc(caller.ok() ? answer(caller->uid) : caller.status());
}

template <typename Answer>
grpc::Status LauncherService::TellInTurn(const grpc::ServerContext& context, Answer answer) {
  return Tell(context, [&](uid_t uid) -> Outcome {
    const std::optional<QuestionGate::Place> place = gate_.Enter(uid);
    if (!place.has_value()) {
      return {ErrorCode::kLimitExceeded, "uid " + std::to_string(uid) + " has " +
                                             std::to_string(kMostQuestions) +
                                             " such questions under way: ask again later"};
    }
    return answer(uid);
  });
}

grpc::Status LauncherService::Status(grpc::ServerContext* context, const control::StatusRequest*,
                                     control::StatusReply* reply) {
  return Tell(*context, [&](uid_t uid) {
    reporter_.FillStatus(uid, reply);
    return Outcome();
  });
}

grpc::Status LauncherService::Sessions(grpc::ServerContext* context,
                                       const control::SessionsRequest*,
                                       control::SessionsReply* reply) {
  return Tell(*context, [&](uid_t uid) {
    reporter_.FillSessions(uid, reply);
    return Outcome();
  });
}

grpc::Status LauncherService::Counters(grpc::ServerContext* context,
                                       const control::CountersRequest* request,
                                       control::CountersReply* reply) {
  return Tell(*context, [&](uid_t uid) { return reporter_.FillCounters(uid, *request, reply); });
}

grpc::Status LauncherService::Why(grpc::ServerContext* context, const control::WhyRequest* request,
                                  control::WhyReply* reply) {
  return TellInTurn(*context, [&](uid_t uid) { return reporter_.FillWhy(uid, *request, reply); });
}

grpc::Status LauncherService::Nics(grpc::ServerContext* context, const control::NicsRequest*,
                                   control::NicsReply* reply) {
  return Tell(*context, [&](uid_t) {
    reporter_.FillNics(reply);
    return Outcome();
  });
}

grpc::Status LauncherService::Gpus(grpc::ServerContext* context, const control::GpusRequest*,
                                   control::GpusReply* reply) {
  return TellInTurn(*context, [&](uid_t) {
    reporter_.FillGpus(reply);
    return Outcome();
  });
}

}  // namespace ferry::daemon
