// A client of a gRPC server that writes HTTP/2's frames by hand, so that it may write any, in any
// order, and never read. It connects at once, and greets only when it is told to.
//
// One thread; what blocks says so.
#pragma once

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/unique_fd.h"
#include "daemon/grpc/http2_frames.h"

namespace ferry::tests {

namespace http2 = daemon::http2;

// The connection's first words, without which no server listens.
inline std::string Http2Greeting() {
  return std::string(http2::kClientPreface) + http2::Frame(http2::FrameType::kSettings, 0, 0, {});
}

// The header fields of a call of `method`, as "/ferry.control.Launcher/Status".
inline std::string CallFields(const std::string& method, const std::string& te = "trailers") {
  std::string fields;
  http2::AppendField(":method", "POST", &fields);
  http2::AppendField(":scheme", "http", &fields);
  http2::AppendField(":path", method, &fields);
  http2::AppendField(":authority", "localhost", &fields);
  http2::AppendField("te", te, &fields);
  http2::AppendField("content-type", "application/grpc", &fields);
  return fields;
}

// Begins the call number `call`, counted from 0, of a connection; the caller ends it, or not.
inline std::string BeginCall(uint32_t call, const std::string& fields, uint8_t flags = 0) {
  return http2::Frame(http2::FrameType::kHeaders, http2::kEndHeaders | flags, 2 * call + 1, fields);
}
inline std::string ResetCall(uint32_t call) {
  return http2::Frame(http2::FrameType::kResetStream, 0, 2 * call + 1,
                      std::string_view("\0\0\0\x8", 4));  // CANCEL
}

class Http2Client {
 public:
  // Takes a socket that is connected already.
  explicit Http2Client(UniqueFd socket) : socket_(std::move(socket)) {}
  // Both are not connected if no process listens there, or the listener's queue is full.
  static Http2Client ToSocket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    return Connect(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  static Http2Client ToPort(uint16_t port) {  // at 127.0.0.1
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return Connect(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }

  int fd() const { return socket_.get(); }
  bool connected() const { return socket_.valid(); }
  void HangUp() { socket_.Reset(); }

  // Sends it in pieces of so many bytes; blocks for as long as the server takes nothing. False: it
  // has hung up.
  bool Send(std::string_view bytes, size_t piece = 1 << 20) {
    while (!bytes.empty()) {
      const ssize_t size =
          send(socket_.get(), bytes.data(), std::min(piece, bytes.size()), MSG_NOSIGNAL);
      if (size < 0 && errno != EINTR) {
        return false;
      }
      bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(size, 0)));
    }
    return true;
  }
  // Sends as much as the server's queue takes now, which may end in the middle of a frame; throws
  // away what the server has said. The number of bytes; -1: it has hung up. Does not block.
  ssize_t SendSome(std::string_view bytes) {
    const ssize_t size =
        send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno != EAGAIN && errno != EINTR) {
      return -1;
    }
    std::array<char, 16'384> answer;
    while (recv(socket_.get(), answer.data(), answer.size(), MSG_DONTWAIT) > 0) {
    }
    return std::max<ssize_t>(size, 0);
  }
  // Reads until the ping with these eight bytes is answered. False: it has hung up. Blocks.
  bool WaitForPing(std::string_view ping) {
    std::string header(http2::kFrameHeaderBytes, '\0');
    while (Receive(&header)) {
      const http2::FrameHeader frame = http2::ReadFrameHeader(header);
      std::string payload(frame.payload_bytes, '\0');
      if (!Receive(&payload)) {
        return false;
      }
      if (frame.type == http2::FrameType::kPing && (frame.flags & http2::kAck) != 0 &&
          payload == ping) {
        return true;
      }
    }
    return false;
  }
  // Returns true if the server, after all that was sent before, answers a ping. False: it has hung
  // up.
  bool Ask() {
    return Send(http2::Frame(http2::FrameType::kPing, 0, 0, "question")) && WaitForPing("question");
  }

 private:
  static Http2Client Connect(const sockaddr* address, socklen_t size) {
    UniqueFd fd(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(fd.get(), address, size) != 0) {
      fd.Reset();
    }
    return Http2Client(std::move(fd));
  }
  bool Receive(std::string* bytes) {
    return bytes->empty() || recv(socket_.get(), bytes->data(), bytes->size(), MSG_WAITALL) ==
                                 static_cast<ssize_t>(bytes->size());
  }

  UniqueFd socket_;
};

}  // namespace ferry::tests
