// One connection of the attach socket: of a rank, of a launcher, or of a process that has not
// identified itself yet.
//
// A connection ends in a turn of its own on the control thread (EndSoon), never inside a handler,
// nor inside a call by the registry: a failure there, such as of an answer to a rank that is gone,
// only marks the connection. So no function loses its session or socket while it runs, and the
// registry is not called from itself.
//
// Thread: the control thread.
#pragma once

#include <atomic>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/job_members.h"
#include "daemon/session/session.h"
#include "daemon/sockets/connection_acceptor.h"
#include "daemon/sockets/packet_socket.h"
#include "proto/attach_protocol.h"

namespace ferry::daemon {

class AttachServer;

// The last question of a rank about the daemon's life.
struct LifeAsked {
  std::atomic<uint32_t> number{0};
  std::atomic<bool> is_on_its_way{false};  // to the progress thread
};

// The answer to a call, beside its status.
struct CallAnswer {
  uint32_t flags = 0;
  std::string text = {};
  JobMembers::Places places = {};
};

class AttachConnection final : public RankConnection,
                               public std::enable_shared_from_this<AttachConnection> {
 public:
  // The server must outlive it.
  AttachConnection(AttachServer& server, UniqueFd socket, const Caller& caller);

  void Start();
  // Closes at once, without a Goodbye. Only for the server, which ends, and for EndSoon.
  void Close();

  void Goodbye(const Status& why) override { Refuse({}, why); }
  void Order(const attach::LinkOrder& order) override;

 private:
  bool identified() const { return session_ != nullptr || !launcher_.empty(); }
  bool is_settled() const { return is_served_ || !launcher_.empty(); }

  // Life (attach_connection.cc).

  // Refuses the connection unless `what` comes within attach_timeout_ms: an idle one would hold a
  // place that another process needs.
  void ExpectSoon(const char* what);
  void WaitForPacket();
  // Waits for the end of the rank's process. The hang-up of its connection comes earlier in most
  // cases, but never while a child of the rank keeps the connection open.
  void WaitForProcess();
  void OnProcess();
  // Looks again and again for the process in /proc, where the system has no descriptors of
  // processes.
  void LookForProcess();
  void OnReadable();
  void OnHangUp();
  void LogRefused(const Status& why) const;
  // Sends kGoodbye with `why`, and ends the connection and its session.
  void Refuse(const attach::AttachHeader& header, const Status& why);
  // Stops all reading and sending at once; closes the socket, and ends the session, once the
  // function that runs now has returned.
  void EndSoon(const Status& why);

  // Requests in packets (attach_requests.cc).

  void Handle(SocketPacket& packet);
  Status CheckPacket(const SocketPacket& packet) const;
  Status ExpectSession(const SocketPacket& packet, size_t descriptors) const;
  void HandleAttach(const attach::AttachRequest& request);
  StatusOr<std::shared_ptr<Session>> AttachAs(const attach::AttachRequest& request);
  Status HandleUser(const attach::UserRequest& request);
  Status HandleSegments(const attach::SegmentsRequest& request, SocketPacket& packet);
  Status HandleLink(const attach::LinkReply& reply, SocketPacket& packet);
  Status HandleLife(const attach::LifeQuestion& question, SocketPacket& packet);
  Status HandleRegion(const attach::RegionRequest& request, SocketPacket& packet);
  void AddRegion(const attach::AttachHeader& asked, const std::shared_ptr<Region>& region);
  Status HandlePeerInbox(const attach::PeerRequest& request);
  Status HandlePeerRegion(const attach::PeerRequest& request);
  Status HandleCounterPages(const attach::NicRequest& request, SocketPacket& packet);
  // The session of the rank that a request names.
  StatusOr<std::shared_ptr<Session>> PeerOf(const attach::PeerRequest& request) const;

  // Calls (attach_calls.cc). Each is answered by a CallReply, now or later.

  // Returns false if the packet is no call.
  bool HandleCall(const attach::AttachHeader& header, SocketPacket& packet);
  // kCorrupt: no correct rank sends it; kNotInitialized: the session has ended.
  Status ExpectServed(const SocketPacket& packet) const;
  // Each answers the call itself, unless it returns an error.
  Status HandleJoin(const attach::JoinRequest& request);
  Status HandlePeers(const attach::PeersRequest& request);
  Status HandleDetach(const attach::DetachRequest& request);
  Status HandleAbort(const attach::AbortRequest& request);
  Status HandleOffer(const SocketPacket& packet);
  Status HandleRegionEnd(const attach::RegionEndRequest& request);
  Status HandleProfile(const attach::ProfileRequest& request, SocketPacket& packet);
  Status HandleWhy(const attach::WhyRequest& request);
  Status HandleCreateJob(const attach::JobRequest& request, SocketPacket& packet);
  void AnswerPeers(const attach::AttachHeader& asked, uint32_t first);
  void AnswerCall(const attach::AttachHeader& asked, const Status& status,
                  const CallAnswer& answer = {});

  // Answers (attach_connection.cc).

  static attach::AttachHeader AnswerTo(const attach::AttachHeader& asked, attach::Kind kind);
  void AnswerAttach(const attach::AttachHeader& asked, const Status& status);
  void Answer(const attach::AttachHeader& asked, const Status& status, uint64_t size_bytes = 0,
              std::span<const int> fds = {});
  void AnswerRegion(const attach::AttachHeader& asked, const Region& region,
                    std::span<const int> fds = {});
  void SendReply(const attach::AttachHeader& asked, attach::Reply& reply, std::span<const int> fds);
  // Sends the waiting orders, in order; those that find no room in the socket wait until the rank
  // has read.
  void SendOrders();
  template <typename Message>
  void Send(const Message& message, std::span<const int> fds = {}) {
    SendBytes(std::as_bytes(std::span(&message, 1)), fds);
  }
  void SendBytes(std::span<const std::byte> bytes, std::span<const int> fds) {
    if (!is_ending_) {
      ExpectSent(SendPacket(socket_.native_handle(), bytes, fds));
    }
  }
  // Ends the connection if a packet could not be sent: the rank is gone, or asks and does not read
  // the answers, or the kernel does not pass descriptors on. A rank that is still there is told
  // why.
  void ExpectSent(const Status& sent);

  AttachServer& server_;
  const Caller caller_;
  boost::asio::posix::stream_descriptor socket_;
  boost::asio::posix::stream_descriptor process_;      // its handle, if there are such
  boost::asio::steady_timer next_look_;                // else
  std::optional<boost::asio::steady_timer> deadline_;  // of ExpectSoon
  std::shared_ptr<Session> session_;                   // once attached
  std::string launcher_;                               // the token of one, else empty
  std::deque<attach::LinkOrder> orders_;               // the rank has not had room for
  const std::shared_ptr<LifeAsked> life_asked_ = std::make_shared<LifeAsked>();
  uint32_t offers_waiting_ = 0;  // for the NIC
  bool is_served_ = false;       // by the data plane, for the rank
  bool is_ending_ = false;       // EndSoon
};

}  // namespace ferry::daemon
