// The gRPC service Launcher: users start and end jobs of their own, and look at them. Every call
// must carry the token of a launcher (launchers.h), which says who the caller is.
//
// Calls run on gRPC's pool and reach the jobs through the control loop.
#include <optional>
#include <string>
#include <utility>

#include "daemon/grpc/grpc_status.h"
#include "daemon/grpc/unread_answers.h"
#include "daemon/services/question_gate.h"
#include "daemon/services/services.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {
namespace {

// The most Why and Gpus calls of one user that are answered at a time.
constexpr int kMostQuestions = 4;

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

Outcome TooManyQuestions(uid_t uid) {
  return {ErrorCode::kLimitExceeded, "uid " + std::to_string(uid) + " has " +
                                         std::to_string(kMostQuestions) +
                                         " such questions under way: ask again later"};
}

class LauncherService final : public control::Launcher::Service {
 public:
  LauncherService(ControlLoop& loop, Launchers& launchers, Reporter& reporter,
                  UnreadAnswers& unread)
      : loop_(loop), launchers_(launchers), reporter_(reporter), unread_(unread) {}

  grpc::Status CreateJob(grpc::ServerContext* context, const control::CreateJobRequest* request,
                         control::CreateJobReply*) override {
    const std::string token = TokenOf(*context);
    const StatusOr<Launchers::Launcher> caller = Caller(token);
    if (!caller.ok()) {
      return ToGrpc(caller.status());
    }
    if (Outcome outcome = CheckUid(*request, *caller); !outcome.ok()) {
      return ToGrpc(outcome);
    }
    StatusOr<JobSpec> spec = SpecFrom(*request);
    if (spec.ok()) {
      spec->programs_follow = true;
      spec->tells_exits = !MetadataOf(*context, kExitsMetadata).empty();
    }
    return ToGrpc(spec.ok()
                      ? loop_.Run([&] { return launchers_.CreateJob(token, std::move(*spec)); })
                      : spec.status());
  }

  grpc::Status DestroyJob(grpc::ServerContext* context, const control::DestroyJobRequest* request,
                          control::DestroyJobReply*) override {
    const std::string token = TokenOf(*context);
    const std::optional<RankExits> exits = ReadRankExits(MetadataOf(*context, kExitsMetadata));
    return ToGrpc(
        loop_.Run([&] { return launchers_.DestroyJob(token, request->job_id(), exits); }));
  }

  grpc::Status RankEnded(grpc::ServerContext* context, const control::RankEndedRequest* request,
                         control::RankEndedReply* reply) override {
    const std::string token = TokenOf(*context);
    const StatusOr<bool> was_absent = loop_.Run([&] {
      return launchers_.RankProcessEnded(token, request->job_id(), request->rank(), request->how());
    });
    reply->set_was_absent(was_absent.ok() && *was_absent);
    return ToGrpc(was_absent.status());
  }

  grpc::Status Status(grpc::ServerContext* context, const control::StatusRequest*,
                      control::StatusReply* reply) override {
    return Tell(*context, reply, [&](uid_t uid) {
      reporter_.FillStatus(uid, reply);
      return Outcome();
    });
  }

  grpc::Status Sessions(grpc::ServerContext* context, const control::SessionsRequest*,
                        control::SessionsReply* reply) override {
    return Tell(*context, reply, [&](uid_t uid) {
      reporter_.FillSessions(uid, reply);
      return Outcome();
    });
  }

  grpc::Status Counters(grpc::ServerContext* context, const control::CountersRequest* request,
                        control::CountersReply* reply) override {
    return Tell(*context, reply,
                [&](uid_t uid) { return reporter_.FillCounters(uid, *request, reply); });
  }

  grpc::Status Why(grpc::ServerContext* context, const control::WhyRequest* request,
                   control::WhyReply* reply) override {
    return TellInTurn(*context, reply,
                      [&](uid_t uid) { return reporter_.FillWhy(uid, *request, reply); });
  }

  // As Why, since a caller that does not read holds a thread, and up to a part in memory.
  grpc::Status JobProfile(grpc::ServerContext* context, const control::JobProfileRequest* request,
                          grpc::ServerWriter<control::JobProfilePart>* writer) override {
    const StatusOr<Launchers::Launcher> caller = Caller(TokenOf(*context));
    if (!caller.ok()) {
      return ToGrpc(caller.status());
    }
    const std::optional<QuestionGate::Place> place = gate_.Enter(caller->uid);
    if (!place.has_value()) {
      return ToGrpc(TooManyQuestions(caller->uid));
    }
    return ToGrpc(reporter_.SendProfile(
        caller->uid, *request,
        [writer](const control::JobProfilePart& part) { return writer->Write(part); }));
  }

  grpc::Status Links(grpc::ServerContext* context, const control::LinksRequest*,
                     control::LinksReply* reply) override {
    return Tell(*context, reply, [&](uid_t uid) {
      reporter_.FillLinks(uid, reply);
      return Outcome();
    });
  }

  grpc::Status Nics(grpc::ServerContext* context, const control::NicsRequest*,
                    control::NicsReply* reply) override {
    return Tell(*context, reply, [&](uid_t) {
      reporter_.FillNics(reply);
      return Outcome();
    });
  }

  grpc::Status Gpus(grpc::ServerContext* context, const control::GpusRequest*,
                    control::GpusReply* reply) override {
    return TellInTurn(*context, reply, [&](uid_t) {
      reporter_.FillGpus(reply);
      return Outcome();
    });
  }

 private:
  StatusOr<Launchers::Launcher> Caller(const std::string& token) {
    return loop_.Run([&] { return launchers_.Find(token); });
  }

  // Calls answer(uid) for the call's user, which fills `reply`; without a launcher's token it is
  // refused.
  template <typename Reply, typename Answer>
  grpc::Status Tell(const grpc::ServerContext& context, Reply* reply, Answer answer) {
    const StatusOr<Launchers::Launcher> caller = Caller(TokenOf(context));
    Outcome outcome = caller.ok() ? answer(caller->uid) : caller.status();
    if (outcome.ok()) {
      outcome = unread_.Keep(context, caller->uid, reply->ByteSizeLong());
    }
    if (!outcome.ok()) {
      Reply().Swap(reply);  // which is kept until the refusal has been read
    }
    return ToGrpc(outcome);
  }

  // Likewise, a few at a time.
  template <typename Reply, typename Answer>
  grpc::Status TellInTurn(const grpc::ServerContext& context, Reply* reply, Answer answer) {
    return Tell(context, reply, [&](uid_t uid) -> Outcome {
      const std::optional<QuestionGate::Place> place = gate_.Enter(uid);
      if (!place.has_value()) {
        return TooManyQuestions(uid);
      }
      return answer(uid);
    });
  }

  ControlLoop& loop_;
  Launchers& launchers_;
  Reporter& reporter_;
  UnreadAnswers& unread_;
  QuestionGate gate_{kMostQuestions};
};

}  // namespace

std::unique_ptr<grpc::Service> MakeLauncherService(ControlLoop& loop, Launchers& launchers,
                                                   Reporter& reporter, UnreadAnswers& unread) {
  return std::make_unique<LauncherService>(loop, launchers, reporter, unread);
}

}  // namespace ferry::daemon
