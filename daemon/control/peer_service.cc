#include "daemon/control/peer_service.h"

#include <grpc/grpc_security_constants.h>

#include <string>
#include <utility>

#include "common/clock.h"
#include "daemon/control/grpc_status.h"

namespace ferry::daemon {
namespace {

// The caller's, which gRPC has checked, in PEM form; empty without TLS.
std::string CertificateOf(const grpc::CallbackServerContext& context) {
  const auto found = context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  return found.empty() ? "" : std::string(found.front().data(), found.front().size());
}

// The control address that the caller says it has: it tells the caller whom it is answered as, and
// proves nothing.
std::string CallerOf(const grpc::CallbackServerContext& context) {
  const auto found = context.client_metadata().find(kCallerMetadata);
  return found == context.client_metadata().end()
             ? ""
             : std::string(found->second.data(), found->second.size());
}

}  // namespace

// `function` runs on the control thread; request and reply live until Finish.
template <typename Function>
grpc::ServerUnaryReactor* PeerService::Answer(grpc::CallbackServerContext* context,
                                              Function function) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  loop_.Post([reactor, function = std::move(function)] { reactor->Finish(ToGrpc(function())); });
  return reactor;
}

grpc::ServerUnaryReactor* PeerService::Hello(grpc::CallbackServerContext* context,
                                             const control::HelloRequest* request,
                                             control::HelloReply* reply) {
  return Answer(context, [this, request, reply, certificate = CertificateOf(*context)] {
    StatusOr<control::HelloReply> answer = links_.HandleHello(*request, certificate);
    if (answer.ok()) {
      *reply = *answer;
    }
    return answer.status();
  });
}

grpc::ServerUnaryReactor* PeerService::Joined(grpc::CallbackServerContext* context,
                                              const control::JoinedRequest* request,
                                              control::JoinedReply*) {
  return Answer(context, [this, request, caller = CallerOf(*context)]() -> Status {
    FERRY_RETURN_IF_ERROR(links_.CheckAlive(caller, request->incarnation()));
    return registry_.NodeJoined(*request);
  });
}

grpc::ServerUnaryReactor* PeerService::Left(grpc::CallbackServerContext* context,
                                            const control::LeftRequest* request,
                                            control::LeftReply*) {
  return Answer(context, [this, request, caller = CallerOf(*context)]() -> Status {
    FERRY_RETURN_IF_ERROR(links_.CheckAlive(caller, request->incarnation()));
    return registry_.NodeLeft(*request);
  });
}

grpc::ServerUnaryReactor* PeerService::Heartbeat(grpc::CallbackServerContext* context,
                                                 const control::HeartbeatRequest* request,
                                                 control::HeartbeatReply* reply) {
  return Answer(context, [this, request, reply, caller = CallerOf(*context)] {
    reply->set_incarnation(links_.Incarnation());
    return links_.CheckHeartbeat(caller, *request);
  });
}

grpc::ServerUnaryReactor* PeerService::Why(grpc::CallbackServerContext* context,
                                           const control::PeerWhyRequest* request,
                                           control::WhyReply* reply) {
  return Answer(context, [this, request, reply, caller = CallerOf(*context)]() -> Status {
    FERRY_RETURN_IF_ERROR(links_.CheckAlive(caller, request->incarnation()));
    FERRY_RETURN_IF_ERROR(
        registry_.CheckPeer(request->job_id(), request->job_proof(), request->incarnation()));
    return SummarizeRank(registry_, data_plane_, request->job_id(), request->rank(), MonotonicNs(),
                         &quiet_, reply);
  });
}

grpc::ServerUnaryReactor* PeerService::Matches(grpc::CallbackServerContext* context,
                                               const control::MatchNewsRequest* request,
                                               control::MatchNewsReply*) {
  return Answer(context, [this, request, caller = CallerOf(*context)]() -> Status {
    FERRY_RETURN_IF_ERROR(links_.CheckAlive(caller, request->incarnation()));
    return registry_.NodeMatches(*request);
  });
}

}  // namespace ferry::daemon
