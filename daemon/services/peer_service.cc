// The gRPC service Peer, which other daemons call. Every call is answered on the control thread, so
// gRPC's threads never wait and a heartbeat is never behind anything slow. Daemons that report
// about jobs are heard in turns.
#include <functional>
#include <string>
#include <utility>

#include "common/clock.h"
#include "daemon/admin/why.h"
#include "daemon/grpc/grpc_status.h"
#include "daemon/jobs/job_link_books.h"
#include "daemon/jobs/job_nodes.h"
#include "daemon/jobs/job_pair_books.h"
#include "daemon/peers/peer_turns.h"
#include "daemon/services/services.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {
namespace {

// As which daemon the caller comes, and how it proves that.
struct PeerCaller {
  explicit PeerCaller(const grpc::CallbackServerContext& context)
      : address(MetadataOf(context, kCallerMetadata)),
        token(MetadataOf(context, kCallerTokenMetadata)) {}
  std::string address;
  std::string token;
};

class PeerService final : public control::Peer::CallbackService {
 public:
  PeerService(ControlLoop& loop, PeerLinks& links, JobRegistry& registry,
              const DataPlane& data_plane,
              std::function<std::string(const std::string& peer)> certificate_of)
      : loop_(loop),
        links_(links),
        registry_(registry),
        data_plane_(data_plane),
        certificate_of_(std::move(certificate_of)),
        turns_([&loop](PeerTurns::Work work) { loop.Post(std::move(work)); }) {}

  grpc::ServerUnaryReactor* Hello(grpc::CallbackServerContext* context,
                                  const control::HelloRequest* request,
                                  control::HelloReply* reply) override {
    return Answer(context, [this, request, reply, certificate = certificate_of_(context->peer())] {
      StatusOr<control::HelloReply> answer = links_.HandleHello(*request, certificate);
      if (answer.ok()) {
        *reply = *answer;
      }
      return answer.status();
    });
  }

  grpc::ServerUnaryReactor* Joined(grpc::CallbackServerContext* context,
                                   const control::JoinedRequest* request,
                                   control::JoinedReply*) override {
    return AnswerInTurn(context, request, [this, request](const std::string& caller) {
      return registry_.nodes().OnJoined(*request, caller);
    });
  }

  grpc::ServerUnaryReactor* Left(grpc::CallbackServerContext* context,
                                 const control::LeftRequest* request,
                                 control::LeftReply*) override {
    return AnswerInTurn(context, request, [this, request](const std::string& caller) {
      return registry_.nodes().OnLeft(*request, caller);
    });
  }

  grpc::ServerUnaryReactor* Relay(grpc::CallbackServerContext* context,
                                  const control::RelayRequest* request,
                                  control::RelayReply*) override {
    return AnswerInTurn(context, request, [this, request](const std::string& caller) {
      return registry_.nodes().OnRelay(*request, caller);
    });
  }

  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const control::HeartbeatRequest* request,
                                      control::HeartbeatReply* reply) override {
    return Answer(context, [this, request, reply, caller = PeerCaller(*context)] {
      reply->set_incarnation(links_.Incarnation());
      return links_.CheckHeartbeat(caller.address, caller.token, *request);
    });
  }

  grpc::ServerUnaryReactor* Why(grpc::CallbackServerContext* context,
                                const control::PeerWhyRequest* request,
                                control::WhyReply* reply) override {
    return AnswerInTurn(context, request, [this, request, reply](const std::string&) {
      return request->pairs().empty()
                 ? LookAround(registry_, data_plane_, request->job_id(), request->rank(),
                              MonotonicNs(), &quiet_, reply)
                 : LookAtPairs(registry_, data_plane_, request->job_id(), request->pairs(),
                               MonotonicNs(), &quiet_, reply);
    });
  }

  grpc::ServerUnaryReactor* Matches(grpc::CallbackServerContext* context,
                                    const control::PairNewsRequest* request,
                                    control::NewsReply* reply) override {
    return AnswerInTurn(context, request, [this, request, reply](const std::string& caller) {
      return registry_.pair_books().TakeNews(*request, caller, reply);
    });
  }

  grpc::ServerUnaryReactor* Links(grpc::CallbackServerContext* context,
                                  const control::LinkNewsRequest* request,
                                  control::NewsReply* reply) override {
    return AnswerInTurn(context, request, [this, request, reply](const std::string& caller) {
      return registry_.link_books().TakeNews(*request, caller, reply);
    });
  }

 private:
  // Checks that the caller may report about the job, and is the daemon that it claims to be.
  template <typename Request>
  Status CheckNews(const PeerCaller& caller, const Request& request) const {
    FERRY_RETURN_IF_ERROR(links_.CheckAlive(caller.address, request.incarnation()));
    FERRY_RETURN_IF_ERROR(
        registry_.nodes().CheckPeer(request.job_id(), request.job_proof(), request.incarnation()));
    return links_.CheckCaller(caller.address, request.incarnation(), caller.token);
  }

  // `function` runs on the control thread; request and reply live until Finish.
  template <typename Function>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, Function function) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    loop_.Post([reactor, function = std::move(function)] { reactor->Finish(ToGrpc(function())); });
    return reactor;
  }

  // Answers a report about a job in its caller's turn: only a daemon that may report, and is the
  // one that it claims to be, has turns of its own.
  template <typename Request, typename Function>
  grpc::ServerUnaryReactor* AnswerInTurn(grpc::CallbackServerContext* context,
                                         const Request* request, Function function) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    loop_.Post(
        [this, reactor, request, function = std::move(function), caller = PeerCaller(*context)] {
          if (const Status status = CheckNews(caller, *request); !status.ok()) {
            return reactor->Finish(ToGrpc(status));
          }
          turns_.Add(caller.address, [this, reactor, request, function, caller] {
            const Status status = CheckNews(caller, *request);  // the link may have ended meanwhile
            reactor->Finish(ToGrpc(status.ok() ? function(caller.address) : status));
          });
        });
    return reactor;
  }

  ControlLoop& loop_;
  PeerLinks& links_;
  JobRegistry& registry_;
  const DataPlane& data_plane_;
  const std::function<std::string(const std::string& peer)> certificate_of_;
  QuietLog quiet_;   // the control thread's, as are
  PeerTurns turns_;  // those of daemons that have proved who they are
};

}  // namespace

std::unique_ptr<grpc::Service> MakePeerService(
    ControlLoop& loop, PeerLinks& links, JobRegistry& registry, const DataPlane& data_plane,
    std::function<std::string(const std::string& peer)> certificate_of) {
  return std::make_unique<PeerService>(loop, links, registry, data_plane,
                                       std::move(certificate_of));
}

}  // namespace ferry::daemon
