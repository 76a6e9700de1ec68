// Links to other daemons: Hello, heartbeat, and the calls that the job registry makes.
//
// A link begins with Hello, tried again every heartbeat interval until it is answered or refused;
// then comes a heartbeat every interval.
//
// A peer is dead when nothing listens at its address any more, or another incarnation does (it was
// restarted). It is cut off when heartbeats remain without answer for `peer_timeout_ms` (each time
// on a new connection: an old one that lost packets stays silent long after the link is back), when
// the data plane has lost its connection, or when it says that we were cut off from it: then this
// life of the link ends, and Hello begins the next one. Both ends count the lives, tell their count
// in Hello, take the larger one, and are up once they agree.
//
// Keys of the data plane: we have a receive key for each daemon and life and tell it in the answer
// to its Hello; so a send key comes only with the answer to our own, and packets of an earlier life
// are not taken.
//
// Identity. A daemon is what answers at its address: a link has the address that jobs name, and
// only a daemon that says the same of itself is spoken to, so that nobody can name it by another
// one. A daemon that greets us says its address, too, and proves that it is what answers there: it
// shows the token whose hash came in the answer to our own Hello to that address. Each daemon has
// another token for each of the others, so no third one can show it; and for each incarnation of
// it, so that none can who has had the other one's port before: so the first greeting of a link,
// which does not know whom it finds, has no token, and the next one comes as soon as it is
// answered. Without proof a greeting is answered with what of our identity is public, and no more:
// no key is told, nor where and by what secret the data plane is reached, and nothing of a link
// changes. Calls about jobs show the token, too: so a node of a job, which knows the job's secret,
// cannot speak for another one.
//
// With TLS (tls_credentials.h) a certificate vouches for both ends, besides: it must be valid for
// the host in the address that we call, or that the one who greets us says.
//
// Who never answers costs little: there is a gRPC channel only while an address is greeted or once
// it has answered; of each user's nodes that have never answered so many are greeted at a time
// (greeting_turns.h), and each again after half the time that it has not answered for, at last once
// a minute. A daemon that comes late greets us, and need not wait for that.
//
// Thread: the control thread, but for Stop. gRPC's callbacks post to it.
#pragma once

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "common/address_list.h"
#include "common/status.h"
#include "daemon/peers/greeting_turns.h"
#include "daemon/peers/node_links.h"
#include "daemon/plane/control_loop.h"
#include "proto/control.pb.h"

namespace grpc {
class ClientContext;
}

namespace ferry::daemon {

class TlsCredentials;

// Metadata of each call between daemons: the caller's control address, and its token for the
// callee, once it knows whom it calls.
inline constexpr char kCallerMetadata[] = "ferry-daemon";
inline constexpr char kCallerTokenMetadata[] = "ferry-daemon-token-bin";

struct LinkTiming {
  uint64_t heartbeat_interval_ms = 250;
  uint64_t peer_timeout_ms = 15000;
  // The time-out of one call: several fit into a silence that is not yet a cut.
  uint64_t CallTimeoutMs() const { return peer_timeout_ms / 5; }
  // How often each of so many links has a heartbeat. Links that are many take turns, since what all
  // daemons of a job say to one another would grow with the square of their number; but each has
  // several in a silence that is not yet a cut.
  uint64_t BeatPeriodMs(size_t links) const {
    constexpr size_t kBeatsOfTick = 8;
    const uint64_t turns = (links + kBeatsOfTick - 1) / kBeatsOfTick;
    return std::max(heartbeat_interval_ms,
                    std::min(turns * heartbeat_interval_ms, CallTimeoutMs()));
  }
  // The time from a greeting without answer to the next one, of an address that has not answered
  // any for so long.
  uint64_t GreetingPauseMs(uint64_t unanswered_ms) const {
    constexpr uint64_t kLongestMs = 60'000;
    return std::max(heartbeat_interval_ms, std::min(unanswered_ms / 2, kLongestMs));
  }
};

class PeerLinks final : public NodeLinks {
 public:
  // `loop`, `events` and `tls` must outlive it; `tls` is null where daemons speak without. `nodes`:
  // the hosts that jobs may name; empty: any.
  PeerLinks(ControlLoop& loop, NodeEvents& events, LinkTiming timing, const TlsCredentials* tls,
            AddressList nodes = {});
  ~PeerLinks() override;
  // Sets our identity, without the fabric address, which each peer gets for itself (see
  // NodeContact::link) from `address_for`; before the loop starts.
  using AddressFor = std::function<std::string(uint64_t link)>;
  void set_self(control::NodeIdentity self, AddressFor address_for) {
    self_ = std::move(self);
    address_for_ = std::move(address_for);
  }
  const control::NodeIdentity& self() const { return self_; }

  // Cancels every call and waits until gRPC is done with them. Not on the control thread, which
  // must still run.
  void Stop();

  // ---- NodeLinks ----
  Status Acquire(const std::string& address, uid_t user) override;
  void Release(const std::string& address, uid_t user) override;
  uint64_t Incarnation() const override { return self_.incarnation(); }
  void SendJoined(const std::string& address, const control::JoinedRequest& request,
                  Done done) override;
  void SendLeft(const std::string& address, const control::LeftRequest& request,
                Done done) override;
  void SendPairs(const std::string& address, const control::PairNewsRequest& request,
                 NewsDone done) override;
  void SendLinkNews(const std::string& address, const control::LinkNewsRequest& request,
                    NewsDone done) override;

  // Asks the daemon there what a rank of its node waits for. `done` comes later, or never if the
  // links stop.
  using WhyDone = std::function<void(const Status&, const control::WhyReply&)>;
  void SendWhy(const std::string& address, const control::PeerWhyRequest& request, WhyDone done);

  // ---- The callee's side, for the service Peer ----
  // `certificate` is the caller's, in PEM form; empty without TLS. kVersionMismatch (both versions
  // named), kUnsupported (another provider), kInvalidArgument (ourselves, nobody, or a life that no
  // link reaches), kPermissionDenied (the certificate is for others).
  StatusOr<control::HelloReply> HandleHello(const control::HelloRequest& request,
                                            const std::string& certificate);
  // Tell any caller how it is seen here: kDaemonDied for an incarnation at `address` that was taken
  // for dead, kLinkDown for one whose `life` of the link has ended here. They change nothing.
  Status CheckAlive(const std::string& address, uint64_t incarnation) const;
  // Whether the caller is that incarnation of the daemon that answers at `address`, as its token
  // proves: kNodeUnreachable if nobody has answered there yet, or another incarnation;
  // kPermissionDenied.
  Status CheckCaller(const std::string& address, uint64_t incarnation,
                     const std::string& token) const;
  Status CheckHeartbeat(const std::string& address, const control::HeartbeatRequest& request);

  // Our token for that incarnation of the daemon at `address`.
  std::string TokenFor(const std::string& address, uint64_t incarnation) const;

  // The data plane has lost its connection to the daemon of that NodeContact::link: finds out
  // whether it lives. Unknown ones are ignored.
  void Lose(uint64_t lost, const Status& why);

  std::vector<control::PeerStatus> Report() const;

 private:
  struct Link;
  using LinkPtr = std::shared_ptr<Link>;

  template <typename Request, typename Reply, typename Method>
  void Call(const LinkPtr& link, Method method, const Request& request,
            std::function<void(const Status&, const Reply&)> done);
  template <typename Reply, typename Request, typename Method>
  void Say(const std::string& address, Method method, const Request& request,
           std::function<void(const Status&, const Reply&)> done);
  void SendHello(const LinkPtr& link, const control::HelloRequest& request,
                 std::function<void(const Status&, const control::HelloReply&)> done);
  void SendHeartbeat(const LinkPtr& link, const control::HeartbeatRequest& request,
                     std::function<void(const Status&, const control::HeartbeatReply&)> done);
  void NameCaller(const Link& link, grpc::ClientContext* context) const;
  void Forget(grpc::ClientContext* context);
  void Connect(const LinkPtr& link) const;
  void RefreshConnection(const LinkPtr& link) const;

  Status CheckAddress(const std::string& host) const;
  void GreetStranger(const LinkPtr& link);
  void SayHello(const LinkPtr& link);
  void GreetNow(const LinkPtr& link);
  Status CheckReply(const LinkPtr& link, const control::HelloReply& reply) const;
  void Learn(const LinkPtr& link, const control::HelloReply& reply);
  static bool IsFrom(const Link& link, uint64_t incarnation, const std::string& token);
  void OnHello(const LinkPtr& link, const Status& status, const control::HelloReply& reply);
  void Beat(const LinkPtr& link);
  void OnBeat(const LinkPtr& link, const Status& status, uint64_t incarnation);
  void ReportUp(const LinkPtr& link);
  void MarkDownIfDead(const LinkPtr& link);
  void MarkDown(const LinkPtr& link, const Status& why);
  void MarkCut(const LinkPtr& link, uint64_t next_life, const Status& why);
  void Probe(const LinkPtr& link, std::function<void(bool refused)> done);
  LinkPtr FindUp(uint64_t link) const;
  Status CheckIdentity(const control::NodeIdentity& peer) const;
  static Status CheckLife(uint64_t life);
  Status CheckCertificate(const control::NodeIdentity& peer, const std::string& certificate) const;
  uint64_t ReceiveKey(const control::NodeIdentity& peer, uint64_t life) const;
  uint64_t LinkTo(const control::NodeIdentity& peer) const;
  bool IsCurrent(const LinkPtr& link) const;
  bool IsBeatDue(const Link& link, uint64_t now_ns) const;
  void TickLater();
  void Tick();

  ControlLoop& loop_;
  NodeEvents& events_;
  const LinkTiming timing_;
  const TlsCredentials* const tls_;
  const AddressList nodes_;
  control::NodeIdentity self_;
  AddressFor address_for_;
  std::map<std::string, LinkPtr> links_;  // by address
  std::string key_secret_;                // keys, tokens and links are derived from it
  std::map<std::string, uint64_t> dead_;  // by address: the incarnation taken for dead
  GreetingTurns turns_;
  boost::asio::steady_timer timer_;
  bool ticking_ = false;

  // Calls that gRPC holds.
  std::mutex mutex_;
  std::condition_variable none_left_;
  std::set<grpc::ClientContext*> calls_;
  bool stopped_ = false;
};

}  // namespace ferry::daemon
