// One connection of the attach socket: a private part of attach_server.h.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/status.h"
#include "daemon/control/job_registry.h"
#include "daemon/sockets/packet_socket.h"

namespace ferry::daemon {

class AttachServer;

class AttachConnection final : public RankConnection,
                               public std::enable_shared_from_this<AttachConnection> {
 public:
  AttachConnection(AttachServer& server, UniqueFd socket, pid_t pid, uid_t uid);

  void Start();
  // Closes without a word: the server ends.
  void Close();
  void Goodbye(const Status& why) override;
  uid_t uid() const { return uid_; }

 private:
  void WaitForPacket();
  void WaitForProcess();
  void OnReadable();
  bool identified() const { return session_ != nullptr || !launcher_.empty(); }
  // Says kGoodbye with `why` and ends the connection, and the session with it.
  void Refuse(const attach::AttachHeader& header, const Status& why);
  void OnHangUp();

  void Handle(SocketPacket& packet);
  Status CheckPacket(const SocketPacket& packet) const;
  void HandleAttach(const attach::AttachRequest& request);
  Status HandleUser(const attach::UserRequest& request);
  Status HandleSegments(const attach::SegmentsRequest& request, SocketPacket& packet);
  Status HandleRegion(const attach::RegionRequest& request, SocketPacket& packet);
  void OfferRegion(const attach::AttachHeader& asked, std::shared_ptr<Region> region);
  Status HandlePeerInbox(const attach::PeerRequest& request);
  Status HandlePeerRegion(const attach::PeerRequest& request);
  StatusOr<std::shared_ptr<Session>> AttachAs(const attach::AttachRequest& request);
  Status ExpectSession(const SocketPacket& packet, size_t descriptors) const;
  void AnswerAttach(const attach::AttachHeader& asked, const Status& status);
  void Answer(const attach::AttachHeader& asked, const Status& status, uint64_t size_bytes = 0,
              std::span<const int> fds = {});
  void AnswerRegion(const attach::AttachHeader& asked, const Region& region,
                    std::span<const int> fds = {});
  void SendReply(const attach::AttachHeader& asked, attach::Reply& reply, std::span<const int> fds);

  AttachServer& server_;
  const pid_t pid_;
  const uid_t uid_;
  boost::asio::posix::stream_descriptor socket_;
  boost::asio::posix::stream_descriptor process_;      // pidfd
  std::optional<boost::asio::steady_timer> deadline_;  // for kAttach
  std::shared_ptr<Session> session_;                   // once attached
  std::string launcher_;                               // the token of one, else empty
};

}  // namespace ferry::daemon
