// A node that daemons take for one of theirs: it is made of the parts of a daemon by which nodes
// know each other (PeerLinks), has keys and proofs as a daemon has, and is called back at an
// address of its own. Its other messages are up to the caller, and its answers to the calls of
// daemons are right, wrong, late or none.
//
// One thread, but for the node's own: the control thread and gRPC's, which answer daemons.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/status.h"
#include "daemon/peers/node_links.h"
#include "daemon/peers/peer_links.h"
#include "daemon/plane/control_loop.h"
#include "proto/control.grpc.pb.h"
#include "tests/hostile/dice.h"
#include "transports/api/transport.h"

namespace ferry::hostile {

class LyingNode final : public daemon::NodeEvents {
 public:
  // `is_honest`: all its answers to daemons are right.
  LyingNode(uint64_t seed, bool is_honest);
  ~LyingNode() override;
  LyingNode(const LyingNode&) = delete;
  LyingNode& operator=(const LyingNode&) = delete;

  // Opens a network, and serves.
  Status Open();
  const control::NodeIdentity& self() const { return self_; }
  transport::Transport& fabric() { return *fabric_; }

  // Wants a link to the daemon there, as a job of both does, until Release.
  void Acquire(const std::string& address);
  void Release(const std::string& address);
  // That daemon, once it has taken this node for what it is; nothing if it does not in that time.
  std::optional<daemon::NodeContact> AwaitUp(std::chrono::milliseconds patience);
  // Nothing: the link is cut, or the daemon refuses it.
  std::optional<daemon::NodeContact> contact();
  // Takes the oldest news of direct links that the daemon has told.
  std::optional<control::LinkNews> TakeLinkNews();
  // Every call between daemons says who calls, and proves it.
  void NameCaller(grpc::ClientContext* context);

  // ---- NodeEvents; the control thread's ----
  void OnNodeUp(const daemon::NodeContact& contact) override;
  void OnNodeDown(const std::string& address, uint64_t link, const Status& why) override;
  void OnNodeCut(const std::string& address, uint64_t link, const Status& why) override;
  void OnNodeTrouble(const std::string&, const Status&) override {}
  void OnTick() override {}

 private:
  class AnyAnswers;

  void SetContact(const std::optional<daemon::NodeContact>& contact);

  const bool is_honest_;
  daemon::ControlLoop loop_;
  daemon::PeerLinks links_;
  std::unique_ptr<AnyAnswers> answers_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<transport::Transport> fabric_;
  control::NodeIdentity self_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<daemon::NodeContact> contact_;
};

}  // namespace ferry::hostile
