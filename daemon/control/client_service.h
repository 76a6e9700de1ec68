// The gRPC service Client: what ranks ask. Every call must carry the token of an attached rank.
//
// JoinJob waits without a thread (callback interface); the others run on gRPC's pool, because
// registering memory may take seconds, and reach the registry through the control loop.
#pragma once

#include "daemon/control/control_loop.h"
#include "daemon/control/job_registry.h"
#include "daemon/plane/data_plane.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {

class ClientService final
    : public control::Client::WithCallbackMethod_JoinJob<control::Client::Service> {
 public:
  // All must outlive it; the loop must run until the server has shut down.
  ClientService(ControlLoop& loop, JobRegistry& registry, DataPlane& data_plane)
      : loop_(loop), registry_(registry), data_plane_(data_plane) {}

  grpc::ServerUnaryReactor* JoinJob(grpc::CallbackServerContext* context,
                                    const control::JoinJobRequest* request,
                                    control::JoinJobReply* reply) override;
  grpc::Status RegisterRegion(grpc::ServerContext* context,
                              const control::RegisterRegionRequest* request,
                              control::RegisterRegionReply* reply) override;
  grpc::Status DeregisterRegion(grpc::ServerContext* context,
                                const control::DeregisterRegionRequest* request,
                                control::DeregisterRegionReply* reply) override;
  grpc::Status ResolvePeers(grpc::ServerContext* context,
                            const control::ResolvePeersRequest* request,
                            control::ResolvePeersReply* reply) override;
  grpc::Status Detach(grpc::ServerContext* context, const control::DetachRequest* request,
                      control::DetachReply* reply) override;
  grpc::Status AbortJob(grpc::ServerContext* context, const control::AbortJobRequest* request,
                        control::AbortJobReply* reply) override;
  grpc::Status OfferMatches(grpc::ServerContext* context,
                            const control::OfferMatchesRequest* request,
                            control::OfferMatchesReply* reply) override;
  grpc::Status WithdrawMatch(grpc::ServerContext* context,
                             const control::WithdrawMatchRequest* request,
                             control::WithdrawMatchReply* reply) override;

 private:
  // Finds the caller's session and runs `function(session)`, a Status, on the control thread.
  template <typename Function>
  Status OnLoop(grpc::ServerContext* context, Function function);
  Status Register(grpc::ServerContext* context, const control::RegisterRegionRequest& request);

  ControlLoop& loop_;
  JobRegistry& registry_;
  DataPlane& data_plane_;
};

}  // namespace ferry::daemon
