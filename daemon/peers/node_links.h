// The calls of the job registry to the links to other daemons (NodeLinks), and the events that the
// links report to it (NodeEvents). PeerLinks and JobNodes implement them; tests of the registry use
// a fake. All on the control thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "common/status.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// Another daemon that answered Hello.
struct NodeContact {
  std::string address;  // as the job names it, and as it says itself: the key of its link
  std::string name;
  uint64_t incarnation = 0;
  uint64_t link = 0;  // our own number for that incarnation at that address: no other daemon has it
  std::string fabric_address;  // for us only
  uint64_t send_key = 0;
  uint64_t receive_key = 0;
  uint64_t life = 0;  // of the link to it: each cut begins another
  bool direct_links = false;
};

class NodeLinks {
 public:
  using Done = std::function<void(const Status&)>;
  using NewsDone = std::function<void(const Status&, const control::NewsReply&)>;
  virtual ~NodeLinks() = default;

  // Wants a link to the daemon at `address` (host:port) for a job of `user`; NodeEvents::OnNodeUp
  // follows, soon after for one that is up already. Counted: each success needs a Release. Errors:
  // kInvalidArgument (not a host:port), kPermissionDenied (not loopback, and no TLS; or not one of
  // node_addresses).
  virtual Status Acquire(const std::string& address, uid_t user) = 0;
  // Counted as Acquire's, by Release, too; but the daemon there is not greeted before Open, before
  // it greets this one, or before another job acquires it. Errors of Acquire.
  virtual Status Name(const std::string& address, uid_t user) { return Acquire(address, user); }
  // Greets the daemon at an address that was only named. `incarnation`: of the daemon that jobs
  // have known there; not 0: OnNodeRefused comes if no process listens there any more.
  virtual void Open(const std::string& /*address*/, uint64_t /*incarnation*/) {}
  // Finds out soon if the daemon there has died: others say so.
  virtual void Check(const std::string& /*address*/) {}
  // Returns true if the daemon there has not answered for longer than a healthy one takes.
  virtual bool IsSilent(const std::string& /*address*/) const { return false; }
  // Drops the link when no job wants it any more. Ignores unknown addresses.
  virtual void Release(const std::string& address, uid_t user) = 0;

  // This daemon's own incarnation, which requests carry.
  virtual uint64_t Incarnation() const = 0;
  // Calls the daemon there; `done` comes later, never from within.
  virtual void SendJoined(const std::string& address, const control::JoinedRequest& request,
                          Done done) = 0;
  virtual void SendLeft(const std::string& address, const control::LeftRequest& request,
                        Done done) = 0;
  virtual void SendRelay(const std::string& /*address*/, const control::RelayRequest& /*request*/,
                         Done /*done*/) {}
  virtual void SendPairs(const std::string& address, const control::PairNewsRequest& request,
                         NewsDone done) = 0;
  virtual void SendLinkNews(const std::string& address, const control::LinkNewsRequest& request,
                            NewsDone done) = 0;
};

class NodeEvents {
 public:
  virtual ~NodeEvents() = default;
  virtual void OnNodeUp(const NodeContact& contact) = 0;
  // The daemon is dead, or refuses to talk (then `link` may be 0). Its link, NodeContact::link, is
  // gone.
  virtual void OnNodeDown(const std::string& address, uint64_t link, const Status& why) = 0;
  // The daemon cannot be reached, but need not be dead. It is greeted until OnNodeUp or OnNodeDown.
  virtual void OnNodeCut(const std::string& address, uint64_t link, const Status& why) = 0;
  // No process listens at an address at which jobs have known a daemon, and which has never been up
  // here (Open). It is greeted on, for jobs that know of none.
  virtual void OnNodeRefused(const std::string& /*address*/, const Status& /*why*/) {}
  // Not up yet; it will be tried again.
  virtual void OnNodeTrouble(const std::string& address, const Status& why) = 0;
  // Every heartbeat interval while there are links: time to try again what failed.
  virtual void OnTick() = 0;
};

}  // namespace ferry::daemon
