#include "daemon/peers/peer_calls.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "daemon/grpc/grpc_status.h"
#include "daemon/grpc/http2_guard.h"
#include "daemon/peers/peer_link.h"
#include "daemon/tls/tls_credentials.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {
namespace {

using AsyncPeer = control::Peer::StubInterface::async_interface;
using Callback = std::function<void(grpc::Status)>;
template <typename Request, typename Reply>
using Method = void (AsyncPeer::*)(grpc::ClientContext*, const Request*, Reply*, Callback);

constexpr Method<control::HelloRequest, control::HelloReply> kHello = &AsyncPeer::Hello;
constexpr Method<control::HeartbeatRequest, control::HeartbeatReply> kHeartbeat =
    &AsyncPeer::Heartbeat;
constexpr Method<control::JoinedRequest, control::JoinedReply> kJoined = &AsyncPeer::Joined;
constexpr Method<control::LeftRequest, control::LeftReply> kLeft = &AsyncPeer::Left;
constexpr Method<control::RelayRequest, control::RelayReply> kRelay = &AsyncPeer::Relay;
constexpr Method<control::PairNewsRequest, control::NewsReply> kMatches = &AsyncPeer::Matches;
constexpr Method<control::LinkNewsRequest, control::NewsReply> kLinks = &AsyncPeer::Links;
constexpr Method<control::PeerWhyRequest, control::WhyReply> kWhy = &AsyncPeer::Why;

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const LinkTiming& timing) {
  grpc::ChannelArguments arguments;
  const int interval_ms = static_cast<int>(timing.heartbeat_interval_ms);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, interval_ms);
  // Until when a connection must be made. A shorter time cuts off the handshake of a busy peer.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(timing.RetryTimeoutMs()));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, interval_ms);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Gives each channel its own connection: a link made anew must not share a broken one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // The program at the address may be any, and its answers, too.
  arguments.SetMaxReceiveMessageSize(kMostMessageBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

}  // namespace

PeerCalls::PeerCalls(ControlLoop& loop, const Links& links, const PeerIdentity& identity,
                     const LinkTiming& timing, const TlsCredentials* tls)
    : loop_(loop), links_(links), identity_(identity), timing_(timing), tls_(tls) {}

void PeerCalls::Stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  for (grpc::ClientContext* context : calls_) {
    context->TryCancel();
  }
  none_left_.wait(lock, [this] { return calls_.empty(); });
}

// ---- Connections ----

void PeerCalls::Connect(PeerLink& link) const {
  const auto credentials =
      tls_ == nullptr ? grpc::InsecureChannelCredentials() : tls_->ForPeer(link.host);
  link.tls_generation = tls_ == nullptr ? 0 : tls_->generation();
  link.stub = control::Peer::NewStub(MakeChannel(link.address, credentials, timing_));
}

// New certificates are for links whose connection is missing or fails. A connection that works
// stays: jobs depend on it, and the peer may not trust the new certificates yet.
void PeerCalls::RefreshConnection(PeerLink& link) const {
  if (link.stub == nullptr || (tls_ != nullptr && tls_->generation() != link.tls_generation)) {
    Connect(link);
  }
}

// ---- Calls ----

template <typename Request, typename Reply, typename Method>
void PeerCalls::Call(const LinkPtr& link, Method method, const Request& request,
                     uint64_t timeout_ms, ReplyDone<Reply> done) {
  struct State {
    LinkPtr link;
    std::shared_ptr<control::Peer::Stub> stub;  // the link may get another one meanwhile
    std::function<void(const Status&, const Reply&)> done;
    grpc::ClientContext context;
    Request request;
    Reply reply;
  };
  auto state = std::make_shared<State>();
  state->link = link;
  state->stub = link->stub;
  state->done = std::move(done);
  state->request = request;
  NameCaller(*link, &state->context);
  state->context.set_deadline(std::chrono::system_clock::now() +
                              std::chrono::milliseconds(timeout_ms));
  {
    std::lock_guard lock(mutex_);
    if (stopped_) {
      return;
    }
    calls_.insert(&state->context);
  }
  (state->stub->async()->*method)(
      &state->context, &state->request, &state->reply,
      [this, state](const grpc::Status& status) mutable {
        // The whole state goes to the control thread and ends there: if gRPC's thread released the
        // last reference to a channel, it would wait for itself.
        loop_.Post([this, state = std::move(state), answer = FromGrpc(status)] {
          state->done(answer, state->reply);
          Forget(&state->context);
        });
      });
}

void PeerCalls::NameCaller(const PeerLink& link, grpc::ClientContext* context) const {
  context->AddMetadata(kCallerMetadata, identity_.self().control_address());
  if (link.contact.incarnation != 0) {
    context->AddMetadata(kCallerTokenMetadata,
                         identity_.TokenFor(link.address, link.contact.incarnation));
  }
}

void PeerCalls::Forget(grpc::ClientContext* context) {
  std::lock_guard lock(mutex_);
  calls_.erase(context);
  none_left_.notify_all();
}

template <typename Reply, typename Request, typename Method>
void PeerCalls::Say(const std::string& address, Method method, const Request& request,
                    ReplyDone<Reply> done) {
  const auto found = links_.find(address);
  if (found == links_.end() || found->second->stub == nullptr) {
    return loop_.Post([done = std::move(done), address] {
      done({ErrorCode::kNodeUnreachable, "there is no link to " + address}, {});
    });
  }
  Call<Request, Reply>(found->second, method, request, timing_.CallTimeoutMs(), std::move(done));
}

void PeerCalls::SendHello(const LinkPtr& link, const control::HelloRequest& request,
                          uint64_t timeout_ms, ReplyDone<control::HelloReply> done) {
  Call(link, kHello, request, timeout_ms, std::move(done));
}

void PeerCalls::SendHeartbeat(const LinkPtr& link, const control::HeartbeatRequest& request,
                              uint64_t timeout_ms, ReplyDone<control::HeartbeatReply> done) {
  Call(link, kHeartbeat, request, timeout_ms, std::move(done));
}

void PeerCalls::SendJoined(const std::string& address, const control::JoinedRequest& request,
                           NodeLinks::Done done) {
  Say<control::JoinedReply>(
      address, kJoined, request,
      [done = std::move(done)](const Status& status, const auto&) { done(status); });
}

void PeerCalls::SendLeft(const std::string& address, const control::LeftRequest& request,
                         NodeLinks::Done done) {
  Say<control::LeftReply>(
      address, kLeft, request,
      [done = std::move(done)](const Status& status, const auto&) { done(status); });
}

void PeerCalls::SendRelay(const std::string& address, const control::RelayRequest& request,
                          NodeLinks::Done done) {
  Say<control::RelayReply>(
      address, kRelay, request,
      [done = std::move(done)](const Status& status, const auto&) { done(status); });
}

void PeerCalls::SendPairs(const std::string& address, const control::PairNewsRequest& request,
                          NodeLinks::NewsDone done) {
  Say<control::NewsReply>(address, kMatches, request, std::move(done));
}

void PeerCalls::SendLinkNews(const std::string& address, const control::LinkNewsRequest& request,
                             NodeLinks::NewsDone done) {
  Say<control::NewsReply>(address, kLinks, request, std::move(done));
}

void PeerCalls::SendWhy(const std::string& address, const control::PeerWhyRequest& request,
                        ReplyDone<control::WhyReply> done) {
  const auto found = links_.find(address);
  if (found == links_.end() || !found->second->up) {
    return done({ErrorCode::kNodeUnreachable, "there is no link to " + address}, {});
  }
  Call<control::PeerWhyRequest, control::WhyReply>(found->second, kWhy, request,
                                                   timing_.CallTimeoutMs(), std::move(done));
}

}  // namespace ferry::daemon
