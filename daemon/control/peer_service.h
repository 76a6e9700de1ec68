// The gRPC service Peer: what other daemons ask. Every call is answered on the control thread, so
// gRPC's threads never wait and a heartbeat is never behind anything slow.
#pragma once

#include "daemon/control/control_loop.h"
#include "daemon/control/job_registry.h"
#include "daemon/control/peer_links.h"
#include "daemon/control/why.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {

class PeerService final : public control::Peer::CallbackService {
 public:
  // All must outlive it; the loop must run until the server has shut down.
  PeerService(ControlLoop& loop, PeerLinks& links, JobRegistry& registry,
              const DataPlane& data_plane)
      : loop_(loop), links_(links), registry_(registry), data_plane_(data_plane) {}

  grpc::ServerUnaryReactor* Hello(grpc::CallbackServerContext* context,
                                  const control::HelloRequest* request,
                                  control::HelloReply* reply) override;
  grpc::ServerUnaryReactor* Joined(grpc::CallbackServerContext* context,
                                   const control::JoinedRequest* request,
                                   control::JoinedReply* reply) override;
  grpc::ServerUnaryReactor* Left(grpc::CallbackServerContext* context,
                                 const control::LeftRequest* request,
                                 control::LeftReply* reply) override;
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const control::HeartbeatRequest* request,
                                      control::HeartbeatReply* reply) override;
  grpc::ServerUnaryReactor* Why(grpc::CallbackServerContext* context,
                                const control::PeerWhyRequest* request,
                                control::WhyReply* reply) override;
  grpc::ServerUnaryReactor* Matches(grpc::CallbackServerContext* context,
                                    const control::MatchNewsRequest* request,
                                    control::MatchNewsReply* reply) override;

 private:
  template <typename Function>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, Function function);

  ControlLoop& loop_;
  PeerLinks& links_;
  JobRegistry& registry_;
  const DataPlane& data_plane_;
  QuietLog quiet_;  // the control thread's
};

}  // namespace ferry::daemon
