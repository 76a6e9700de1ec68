// Links to other daemons: Hello, heartbeat, and their ends. PeerCalls has the connections and the
// calls, PeerIdentity the keys, tokens and checks.
//
// A link begins with Hello, tried again every heartbeat interval until it is answered or refused;
// then comes a heartbeat every interval, from one of its ends: the daemon that gets one, with proof
// of who sends it, need not ask itself, but does now and then.
//
// A peer is dead when nothing listens at its address any more, or another incarnation does (it was
// restarted). It is cut off when heartbeats remain without answer for `peer_timeout_ms` (each time
// on a new connection: an old one that lost packets stays silent long after the link is back; time
// for which this daemon is late itself does not count, late_ticks.h), when
// the data plane has lost its connection, or when it says that we were cut off from it. Then this
// life of the link ends, and Hello begins the next one. Both ends count the lives, tell their count
// in Hello, take the larger one, and are up once they agree.
//
// Keys of the data plane. We have a receive key for each daemon and life, and tell it in the answer
// to its Hello. So a send key comes only with the answer to our own Hello, and packets of an
// earlier life are refused.
//
// Identity. A daemon is known by the address at which it answers: a link has the address that jobs
// name, and only a daemon that gives that address as its own is spoken to, so that it cannot be
// named by another one. A daemon that greets us gives its address, too, and proves that it answers
// there: it shows the token whose hash came in the answer to our own Hello to that address. We have
// another token for each daemon, so that no third daemon can show it, and for each incarnation of
// it, so that no earlier user of its port can. So the first greeting of a link, which does not know
// yet which incarnation it finds, carries no token, and the next one follows as soon as it is
// answered. A greeting without proof is answered with the public part of our identity only: no key,
// and neither the address nor the secret of the data plane; nothing of a link changes. Calls about
// jobs show the token, too, so that a node of a job, which knows the job's secret, cannot speak for
// another node.
//
// With TLS (tls_credentials.h) a certificate vouches for both ends as well: it must be valid for
// the host in the address that we call, or in the address that the greeting daemon gives.
//
// A link that is only named (Name) is dormant: it costs an entry. Open, a daemon that greets us
// from there, or a job that acquires it, begins the greetings; from then on it is as any other.
//
// An address that never answers costs little. It has a gRPC channel only while it is greeted; only
// so many of each user's such nodes are greeted at a time (greeting_turns.h), and each again after
// half the time for which it has not answered, at most a minute. A daemon that comes late greets
// us, and need not wait for that.
//
// Thread: the control thread, but for Stop. gRPC's callbacks post to it.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/address_list.h"
#include "common/status.h"
#include "daemon/peers/greeting_turns.h"
#include "daemon/peers/late_ticks.h"
#include "daemon/peers/link_timing.h"
#include "daemon/peers/node_links.h"
#include "daemon/peers/peer_calls.h"
#include "daemon/peers/peer_identity.h"
#include "daemon/plane/control_loop.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

struct PeerLink;
class TlsCredentials;

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
    identity_.set_self(std::move(self));
    address_for_ = std::move(address_for);
  }
  const control::NodeIdentity& self() const { return identity_.self(); }
  const PeerIdentity& identity() const { return identity_; }

  // Cancels every call and waits until gRPC is done with them. Not on the control thread, which
  // must still run.
  void Stop();

  // ---- NodeLinks ----
  Status Acquire(const std::string& address, uid_t user) override;
  Status Name(const std::string& address, uid_t user) override;
  void Open(const std::string& address, uint64_t incarnation) override;
  void Check(const std::string& address) override;
  bool IsSilent(const std::string& address) const override;
  void Release(const std::string& address, uid_t user) override;
  uint64_t Incarnation() const override { return identity_.self().incarnation(); }
  void SendJoined(const std::string& address, const control::JoinedRequest& request,
                  Done done) override {
    calls_.SendJoined(address, request, std::move(done));
  }
  void SendLeft(const std::string& address, const control::LeftRequest& request,
                Done done) override {
    calls_.SendLeft(address, request, std::move(done));
  }
  void SendRelay(const std::string& address, const control::RelayRequest& request,
                 Done done) override {
    calls_.SendRelay(address, request, std::move(done));
  }
  void SendPairs(const std::string& address, const control::PairNewsRequest& request,
                 NewsDone done) override {
    calls_.SendPairs(address, request, std::move(done));
  }
  void SendLinkNews(const std::string& address, const control::LinkNewsRequest& request,
                    NewsDone done) override {
    calls_.SendLinkNews(address, request, std::move(done));
  }

  // Asks the daemon there what a rank of its node waits for; a dormant link is opened for that.
  // `done` comes later; never, if the links stop, or the daemon there is not reached.
  void SendWhy(const std::string& address, const control::PeerWhyRequest& request,
               PeerCalls::ReplyDone<control::WhyReply> done);

  // ---- The callee's side, for the service Peer ----
  // `certificate` is the caller's, in PEM form; empty without TLS. kVersionMismatch (both versions
  // named), kUnsupported (another provider), kInvalidArgument (ourselves, no incarnation, or a life
  // that no link reaches), kPermissionDenied (the certificate is for others).
  StatusOr<control::HelloReply> HandleHello(const control::HelloRequest& request,
                                            const std::string& certificate);
  // Tells any caller how it is seen here. kDaemonDied: the incarnation at `address` was taken for
  // dead. Changes nothing.
  Status CheckAlive(const std::string& address, uint64_t incarnation) const;
  // Ok if the caller is that incarnation of the daemon that answers at `address`, as its token
  // proves. kNodeUnreachable: no daemon has answered there yet, or another incarnation has;
  // kPermissionDenied.
  Status CheckCaller(const std::string& address, uint64_t incarnation,
                     const std::string& token) const;
  // Answers a heartbeat. As CheckAlive, and kLinkDown: its life of the link has ended here.
  // One with the caller's token spares the link its own heartbeat for now.
  Status CheckHeartbeat(const std::string& address, const std::string& token,
                        const control::HeartbeatRequest& request);

  // Finds out if the daemon of that NodeContact::link lives: the data plane has lost its connection
  // to it. Ignores unknown links.
  void Lose(uint64_t lost, const Status& why);

  std::vector<control::PeerStatus> Report() const;

 private:
  using LinkPtr = PeerCalls::LinkPtr;

  Status CheckAddress(const std::string& host) const;
  StatusOr<LinkPtr> Want(const std::string& address, uid_t user, bool is_dormant);
  void Awake(const LinkPtr& link);
  size_t OpenLinks() const;
  void GreetStranger(const LinkPtr& link);
  void SayHello(const LinkPtr& link);
  void GreetNow(const LinkPtr& link);
  Status CheckReply(const LinkPtr& link, const control::HelloReply& reply) const;
  void Learn(const LinkPtr& link, const control::HelloReply& reply);
  void OnHello(const LinkPtr& link, const Status& status, const control::HelloReply& reply);
  void Beat(const LinkPtr& link);
  void OnBeat(const LinkPtr& link, const Status& status, uint64_t incarnation);
  void ReportUp(const LinkPtr& link);
  void MarkDownIfDied(const LinkPtr& link);
  void MarkDown(const LinkPtr& link, const Status& why);
  void MarkCut(const LinkPtr& link, uint64_t next_life, const Status& why);
  void Probe(const LinkPtr& link, std::function<void(bool refused)> done);
  LinkPtr FindUp(uint64_t link) const;
  bool IsCurrent(const LinkPtr& link) const;
  void TickLater();
  void Tick();

  ControlLoop& loop_;
  NodeEvents& events_;
  const LinkTiming timing_;
  LateTicks late_;
  const TlsCredentials* const tls_;
  const AddressList nodes_;
  PeerIdentity identity_;
  AddressFor address_for_;
  PeerCalls::Links links_;                // by address
  std::map<std::string, uint64_t> down_;  // by address: the incarnation that is down
  GreetingTurns turns_;
  boost::asio::steady_timer timer_;
  bool ticking_ = false;
  size_t open_links_ = 0;  // at the last tick: not dormant
  PeerCalls calls_;
};

}  // namespace ferry::daemon
