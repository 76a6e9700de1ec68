// A peer of a TcpTransport that says whatever a test wants.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "common/unique_fd.h"
#include "transports/tcp/tcp_address.h"
#include "transports/tcp/tcp_frame.h"

namespace ferry::transport {

class RawTcpPeer {
 public:
  // Connects to the address of a transport, and says nothing.
  explicit RawTcpPeer(std::span<const std::byte> address) : to_(*ParseTcpAddress(address)) {
    const SocketAddress target = SocketAddressOf(to_);
    fd_.Reset(socket(to_.family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // TCP_NODELAY: <linux/tcp.h> and <netinet/tcp.h> exclude each other.
    constexpr int kNoDelay = 1;
    const int yes = 1;
    setsockopt(fd_.get(), IPPROTO_TCP, kNoDelay, &yes, sizeof(yes));
    if (connect(fd_.get(), target.get(), target.bytes) != 0) {
      fd_.Reset();
    }
  }

  int fd() const { return fd_.get(); }
  void Close() { fd_.Reset(); }

  bool Send(const void* data, size_t bytes) {
    return send(fd_.get(), data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
  }
  template <typename T>
  bool Send(const T& value) {
    return Send(&value, sizeof(value));
  }

  // Returns the hello of a peer that listens at `port`, where in truth no process does.
  TcpHello Hello(uint16_t port = 9) const {
    TcpHello hello;
    hello.guest = to_.guest;
    hello.proof = to_.calls;
    hello.from = to_;
    hello.from.port = port;
    return hello;
  }
  // The address of that peer.
  static TcpAddress AddressOf(const TcpHello& hello) { return {hello.from}; }
  bool SendFrame(FrameKind kind, uint64_t address, uint64_t id, uint64_t data_bytes,
                 std::span<const std::byte> head) {
    FrameHeader frame;
    frame.kind = static_cast<uint32_t>(kind);
    frame.head_bytes = static_cast<uint32_t>(head.size());
    frame.data_bytes = data_bytes;
    frame.address = address;
    frame.id = id;
    return Send(frame) && (head.empty() || Send(head.data(), head.size()));
  }
  bool SendKeyFrame(FrameKind kind, uint64_t key, uint64_t address, uint64_t id,
                    uint64_t data_bytes) {
    return SendFrame(kind, address, id, data_bytes, std::as_bytes(std::span(&key, 1)));
  }

  // Reads what is there, without waiting.
  void Drain() {
    std::byte buffer[4096];
    ssize_t count = 0;
    while ((count = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT)) > 0) {
      received_.insert(received_.end(), buffer, buffer + count);
    }
    ended_ = count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
  }
  // Returns true if the other side has closed the connection, as far as Drain has seen.
  bool ended() const { return ended_; }
  size_t received_bytes() const { return received_.size(); }
  // Takes the next T out of what Drain has read.
  template <typename T>
  std::optional<T> Take() {
    T value;
    if (received_.size() < sizeof(value)) {
      return std::nullopt;
    }
    std::memcpy(&value, received_.data(), sizeof(value));
    received_.erase(received_.begin(), received_.begin() + sizeof(value));
    return value;
  }
  // Takes the next frame, and returns its header.
  std::optional<FrameHeader> TakeFrame() {
    FrameHeader frame;
    if (received_.size() < sizeof(frame)) {
      return std::nullopt;
    }
    std::memcpy(&frame, received_.data(), sizeof(frame));
    uint64_t bytes = sizeof(frame) + frame.head_bytes;
    if (HasData(static_cast<FrameKind>(frame.kind))) {
      bytes += frame.data_bytes + sizeof(FrameTrailer);
    }
    if (received_.size() < bytes) {
      return std::nullopt;
    }
    received_.erase(received_.begin(), received_.begin() + static_cast<ptrdiff_t>(bytes));
    return frame;
  }

 private:
  const TcpAddress to_;
  UniqueFd fd_;
  std::vector<std::byte> received_;
  bool ended_ = false;
};

}  // namespace ferry::transport
