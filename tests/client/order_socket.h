// The daemon's end of a rank's attach socket, for tests of what the rank does when it is ordered
// direct links, and when the daemon goes.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "client/bootstrap/attach_connection.h"
#include "common/unique_fd.h"
#include "common/version.h"
#include "daemon/sockets/packet_socket.h"
#include "proto/attach_protocol.h"

namespace ferry::client {

class OrderSocket {
 public:
  OrderSocket() {
    char path[] = "/tmp/ferry-orders-XXXXXX";
    directory_ = mkdtemp(path);
    StatusOr<UniqueFd> listener =
        daemon::ListenUnix(directory_ + "/attach.sock", SOCK_SEQPACKET, 0600);
    EXPECT_TRUE(listener.ok());
    EXPECT_TRUE(attach_.Connect(directory_, 20'000).ok());
    daemon_.Reset(accept(listener->get(), nullptr, nullptr));
  }
  ~OrderSocket() { std::filesystem::remove_all(directory_); }
  OrderSocket(const OrderSocket&) = delete;
  OrderSocket& operator=(const OrderSocket&) = delete;

  // The rank's end.
  AttachConnection& attach() { return attach_; }
  // Fills in the header.
  void Send(attach::LinkOrder order) {
    order.header = {attach::kMagic, static_cast<uint32_t>(attach::Kind::kLink), 0, kLayoutVersion,
                    kProtocolVersion};
    EXPECT_TRUE(daemon::SendPacket(daemon_.get(), order).ok());
  }
  int daemon_end() const { return daemon_.get(); }
  void HangUp() { daemon_.Reset(); }
  void SayGoodbye(ErrorCode code, const std::string& why) {
    attach::Reply goodbye{};
    goodbye.header = {attach::kMagic, static_cast<uint32_t>(attach::Kind::kGoodbye), 0,
                      kLayoutVersion, kProtocolVersion};
    goodbye.code = static_cast<int32_t>(code);
    why.copy(goodbye.text, sizeof(goodbye.text) - 1);
    EXPECT_TRUE(daemon::SendPacket(daemon_.get(), goodbye).ok());
  }
  daemon::SocketPacket TakePacket() {
    daemon::SocketPacket packet;
    EXPECT_TRUE(daemon::ReceivePacket(daemon_.get(), &packet).ok());
    return packet;
  }
  // Those that have come since.
  std::vector<attach::LinkReply> TakeReplies() {
    std::vector<attach::LinkReply> replies;
    daemon::SocketPacket packet;
    while (true) {
      const auto received = daemon::ReceivePacket(daemon_.get(), &packet);
      if (!received.ok() || *received != daemon::Received::kPacket) {
        return replies;
      }
      const auto* reply = packet.As<attach::LinkReply>();
      EXPECT_NE(reply, nullptr);
      replies.push_back(*reply);
    }
  }

 private:
  std::string directory_;
  UniqueFd daemon_;
  AttachConnection attach_;
};

}  // namespace ferry::client
