// The gRPC service Client: what ranks ask. Every call must carry the token of an attached rank.
//
// JoinJob waits without a thread (callback interface); the others run on gRPC's pool, because
// registering memory may take seconds, and reach the registry through the control loop.
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "daemon/control/grpc_status.h"
#include "daemon/control/services.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {
namespace {

class ClientService final
    : public control::Client::WithCallbackMethod_JoinJob<control::Client::Service> {
 public:
  ClientService(ControlLoop& loop, JobRegistry& registry, DataPlane& data_plane)
      : loop_(loop), registry_(registry), data_plane_(data_plane) {}

  grpc::ServerUnaryReactor* JoinJob(grpc::CallbackServerContext* context,
                                    const control::JoinJobRequest*,
                                    control::JoinJobReply* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    loop_.Post([this, reactor, reply, token = TokenOf(*context)] {
      StatusOr<std::shared_ptr<Session>> session = registry_.FindToken(token);
      if (!session.ok()) {
        return reactor->Finish(ToGrpc(session.status()));
      }
      registry_.Join(*session,
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

  grpc::Status Detach(grpc::ServerContext* context, const control::DetachRequest*,
                      control::DetachReply*) override {
    std::promise<void> left;
    const Status status = OnLoop(context, [&](const std::shared_ptr<Session>& session) {
      registry_.Detach(*session, [&left] { left.set_value(); });
      return Status();
    });
    if (status.ok()) {
      left.get_future().wait();  // the rank may free its memory after this call
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
};

}  // namespace

std::unique_ptr<grpc::Service> MakeClientService(ControlLoop& loop, JobRegistry& registry,
                                                 DataPlane& data_plane) {
  return std::make_unique<ClientService>(loop, registry, data_plane);
}

}  // namespace ferry::daemon
