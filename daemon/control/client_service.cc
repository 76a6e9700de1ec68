// The gRPC service Client: what ranks ask. Every call must carry the token of an attached rank.
//
// JoinJob and Detach wait without a thread (callback interface); the others run on gRPC's pool,
// because registering memory may take seconds, and reach the registry through the control loop.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "daemon/control/grpc_status.h"
#include "daemon/control/question_gate.h"
#include "daemon/control/services.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {
namespace {

// The most WhyMe calls of one user that are answered at a time.
constexpr int kMostQuestions = 4;

class ClientService final
    : public control::Client::WithCallbackMethod_JoinJob<
          control::Client::WithCallbackMethod_Detach<control::Client::Service>> {
 public:
  ClientService(ControlLoop& loop, JobRegistry& registry, DataPlane& data_plane, Reporter& reporter)
      : loop_(loop), registry_(registry), data_plane_(data_plane), reporter_(reporter) {}

  grpc::ServerUnaryReactor* JoinJob(grpc::CallbackServerContext* context,
                                    const control::JoinJobRequest* request,
                                    control::JoinJobReply* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    loop_.Post([this, reactor, reply, wait_ms = request->wait_ms(), token = TokenOf(*context)] {
      StatusOr<std::shared_ptr<Session>> session = registry_.FindToken(token);
      if (!session.ok()) {
        return reactor->Finish(ToGrpc(session.status()));
      }
      registry_.Join(*session, wait_ms,
                     [reactor, reply](const Status& status, const control::JoinJobReply& answer) {
                       *reply = answer;
                       reactor->Finish(ToGrpc(status));
                     });
    });
    return reactor;
  }

  grpc::Status RegisterRegion(grpc::ServerContext* context,
                              const control::RegisterRegionRequest* request,
                              control::RegisterRegionReply*) override {
    return ToGrpc(Register(context, *request));
  }

  grpc::Status DeregisterRegion(grpc::ServerContext* context,
                                const control::DeregisterRegionRequest* request,
                                control::DeregisterRegionReply*) override {
    std::shared_ptr<Session> session;
    std::shared_ptr<const Region> region;
    const Status status = OnLoop(context, [&](const std::shared_ptr<Session>& caller) -> Status {
      session = caller;
      region = session->RemoveRegion(request->region());
      if (region == nullptr) {
        return {ErrorCode::kNotFound, "rank " + std::to_string(session->rank) + " has no region " +
                                          std::to_string(request->region())};
      }
      return {};
    });
    if (status.ok()) {
      data_plane_.RemoveRegion(session->job_id, session->rank, region->id);
    }
    return ToGrpc(status);  // here the last hold on the memory goes
  }

  grpc::Status ResolvePeers(grpc::ServerContext* context,
                            const control::ResolvePeersRequest* request,
                            control::ResolvePeersReply* reply) override {
    return ToGrpc(OnLoop(context, [&](const std::shared_ptr<Session>& session) {
      return registry_.Resolve(*session, *request, reply);
    }));
  }

  // The rank may free its memory after the last answer.
  grpc::ServerUnaryReactor* Detach(grpc::CallbackServerContext* context,
                                   const control::DetachRequest* request,
                                   control::DetachReply* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    loop_.Post([this, reactor, reply, wait_ms = request->wait_ms(), again = request->again(),
                token = TokenOf(*context)] {
      const auto done = [reactor, reply](bool left) {
        reply->set_waiting(!left);
        reactor->Finish(grpc::Status::OK);
      };
      StatusOr<std::shared_ptr<Session>> session = registry_.FindToken(token);
      if (session.ok()) {
        registry_.Detach(**session, wait_ms, done);
      } else if (again) {
        registry_.DetachAgain(token, wait_ms, done);
      } else {
        reactor->Finish(ToGrpc(session.status()));
      }
    });
    return reactor;
  }

  grpc::Status WhyMe(grpc::ServerContext* context, const control::WhyMeRequest*,
                     control::WhyMeReply* reply) override {
    control::WhyRequest question;
    uid_t uid = 0;
    Status status = OnLoop(context, [&](const std::shared_ptr<Session>& session) {
      question.set_job_id(session->job_id);
      question.set_rank(session->rank);
      uid = session->uid;
      return Status();
    });
    const std::optional<QuestionGate::Place> place = status.ok() ? gate_.Enter(uid) : std::nullopt;
    if (status.ok() && !place.has_value()) {
      status = {ErrorCode::kLimitExceeded, "several such questions are under way: ask again later"};
    }
    control::WhyReply answer;
    if (status.ok()) {
      status = reporter_.FillWhy(uid, question, &answer);
    }
    if (answer.ranks_size() == 1) {
      reply->set_verdict(answer.ranks(0).verdict());
    }
    return ToGrpc(status);
  }

  grpc::Status AbortJob(grpc::ServerContext* context, const control::AbortJobRequest* request,
                        control::AbortJobReply*) override {
    return ToGrpc(OnLoop(context, [&](const std::shared_ptr<Session>& session) {
      registry_.Abort(*session, request->exit_code(), request->reason());
      return Status();
    }));
  }

  grpc::Status OfferMatches(grpc::ServerContext* context,
                            const control::OfferMatchesRequest* request,
                            control::OfferMatchesReply*) override {
    return ToGrpc(OnLoop(context, [&](const std::shared_ptr<Session>& session) {
      return registry_.OfferMatches(session, *request);
    }));
  }

  grpc::Status WithdrawMatch(grpc::ServerContext* context,
                             const control::WithdrawMatchRequest* request,
                             control::WithdrawMatchReply*) override {
    return ToGrpc(OnLoop(context, [&](const std::shared_ptr<Session>& session) {
      registry_.WithdrawMatch(*session, *request);
      return Status();
    }));
  }

 private:
  // Finds the caller's session and runs `function(session)`, a Status, on the control thread.
  template <typename Function>
  Status OnLoop(grpc::ServerContext* context, Function function) {
    return loop_.Run([&]() -> Status {
      StatusOr<std::shared_ptr<Session>> session = registry_.FindToken(TokenOf(*context));
      FERRY_RETURN_IF_ERROR(session.status());
      return function(*session);
    });
  }

  Status Register(grpc::ServerContext* context, const control::RegisterRegionRequest& request) {
    std::shared_ptr<Session> session;
    std::shared_ptr<Region> region;
    FERRY_RETURN_IF_ERROR(OnLoop(context, [&](const std::shared_ptr<Session>& caller) -> Status {
      StatusOr<std::shared_ptr<Region>> taken = registry_.TakeRegion(*caller, request);
      FERRY_RETURN_IF_ERROR(taken.status());
      session = caller;
      region = *taken;
      return session->AddRegion(region);
    }));
    // If the session ends meanwhile, the data plane refuses, and the region ends with the session.
    Status status = data_plane_.AddRegion(session->job_id, session->rank, region);
    if (!status.ok()) {
      session->RemoveRegion(region->id);
    }
    return status;
  }

  ControlLoop& loop_;
  JobRegistry& registry_;
  DataPlane& data_plane_;
  Reporter& reporter_;
  QuestionGate gate_{kMostQuestions};
};

}  // namespace

std::unique_ptr<grpc::Service> MakeClientService(ControlLoop& loop, JobRegistry& registry,
                                                 DataPlane& data_plane, Reporter& reporter) {
  return std::make_unique<ClientService>(loop, registry, data_plane, reporter);
}

}  // namespace ferry::daemon
