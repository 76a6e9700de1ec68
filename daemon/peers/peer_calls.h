// The calls to other daemons: the gRPC connection of each link, and the requests on them.
//
// Thread: the control thread, but for Stop. gRPC's callbacks post to it.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "common/status.h"
#include "daemon/peers/link_timing.h"
#include "daemon/peers/node_links.h"
#include "daemon/peers/peer_identity.h"
#include "daemon/plane/control_loop.h"
#include "proto/control.pb.h"

namespace grpc {
class ClientContext;
}

namespace ferry::daemon {

struct PeerLink;
class TlsCredentials;

// Metadata of each call between daemons: the caller's control address, and its token for the
// callee, once it knows whom it calls.
inline constexpr char kCallerMetadata[] = "ferry-daemon";
inline constexpr char kCallerTokenMetadata[] = "ferry-daemon-token-bin";

class PeerCalls {
 public:
  using LinkPtr = std::shared_ptr<PeerLink>;
  using Links = std::map<std::string, LinkPtr>;  // by address
  template <typename Reply>
  using ReplyDone = std::function<void(const Status&, const Reply&)>;

  // All must outlive it; `tls` is null where daemons speak without.
  PeerCalls(ControlLoop& loop, const Links& links, const PeerIdentity& identity,
            const LinkTiming& timing, const TlsCredentials* tls);
  // Cancels every call and waits until gRPC is done with them. Not on the control thread, which
  // must still run.
  void Stop();

  // ---- Connections ----
  // Begins a new connection of the link.
  void Connect(PeerLink& link) const;
  // Begins one if the link has none, or one with certificates that have been replaced since.
  void RefreshConnection(PeerLink& link) const;

  // ---- Calls ----
  // `done` comes later, on the control thread; never if Stop comes first.
  // `timeout_ms`: of LinkTiming.
  void SendHello(const LinkPtr& link, const control::HelloRequest& request, uint64_t timeout_ms,
                 ReplyDone<control::HelloReply> done);
  void SendHeartbeat(const LinkPtr& link, const control::HeartbeatRequest& request,
                     uint64_t timeout_ms, ReplyDone<control::HeartbeatReply> done);
  // kNodeUnreachable: there is no link to that address, or no connection yet.
  void SendJoined(const std::string& address, const control::JoinedRequest& request,
                  NodeLinks::Done done);
  void SendLeft(const std::string& address, const control::LeftRequest& request,
                NodeLinks::Done done);
  void SendRelay(const std::string& address, const control::RelayRequest& request,
                 NodeLinks::Done done);
  void SendPairs(const std::string& address, const control::PairNewsRequest& request,
                 NodeLinks::NewsDone done);
  void SendLinkNews(const std::string& address, const control::LinkNewsRequest& request,
                    NodeLinks::NewsDone done);
  // kNodeUnreachable, at once: the link is not up.
  void SendWhy(const std::string& address, const control::PeerWhyRequest& request,
               ReplyDone<control::WhyReply> done);

 private:
  template <typename Request, typename Reply, typename Method>
  void Call(const LinkPtr& link, Method method, const Request& request, uint64_t timeout_ms,
            ReplyDone<Reply> done);
  template <typename Reply, typename Request, typename Method>
  void Say(const std::string& address, Method method, const Request& request,
           ReplyDone<Reply> done);
  void NameCaller(const PeerLink& link, grpc::ClientContext* context) const;
  void Forget(grpc::ClientContext* context);

  ControlLoop& loop_;
  const Links& links_;
  const PeerIdentity& identity_;
  const LinkTiming& timing_;
  const TlsCredentials* const tls_;

  // Calls that gRPC holds.
  std::mutex mutex_;
  std::condition_variable none_left_;
  std::set<grpc::ClientContext*> calls_;
  bool stopped_ = false;
};

}  // namespace ferry::daemon
