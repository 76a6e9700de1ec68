// Packets with descriptors over a Unix seqpacket socket (proto/attach_protocol.h).
//
// Any thread; never blocks. Descriptors received are closed with the SocketPacket.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/passed_descriptors.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "proto/attach_protocol.h"

namespace ferry::daemon {

inline constexpr size_t kMaxPacketFds = kMaxPassedDescriptors;

struct SocketPacket {
  alignas(8) std::array<std::byte, attach::kMaxPacketBytes> bytes;
  size_t size = 0;
  std::vector<UniqueFd> fds;

  // Returns the packet as a T; null if it does not have exactly that size.
  template <typename T>
  const T* As() const {
    static_assert(sizeof(T) <= attach::kMaxPacketBytes && alignof(T) <= 8);
    return size == sizeof(T) ? reinterpret_cast<const T*>(bytes.data()) : nullptr;
  }
};

enum class Received { kPacket, kNothing, kHangUp };

// Takes the next packet, if there is one. kCorrupt: longer than kMaxPacketBytes, or with more than
// kMaxPacketFds descriptors (all are there, in `packet`).
StatusOr<Received> ReceivePacket(int socket, SocketPacket* packet);

// A packet of a process that may pass anything. Descriptors left in it at its end were passed
// unasked (disposal.h).
class ForeignPacket : public SocketPacket {
 public:
  explicit ForeignPacket(uid_t sender) : sender_(sender) {}
  ~ForeignPacket();
  ForeignPacket(const ForeignPacket&) = delete;
  ForeignPacket& operator=(const ForeignPacket&) = delete;

  uid_t sender() const { return sender_; }

 private:
  const uid_t sender_;
};

// ReceivePacket, for a packet that is used once. kLimitExceeded: too many descriptors that the
// sender has passed cannot be closed, so no more are taken from him.
StatusOr<Received> ReceiveForeignPacket(int socket, ForeignPacket* packet);

// Sends a packet. kWouldBlock: the receiver reads too slowly; kInvalidArgument: more than
// kMaxPacketFds descriptors; kSystem.
Status SendPacket(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

template <typename T>
Status SendPacket(int socket, const T& message, std::span<const int> fds = {}) {
  return SendPacket(socket, std::as_bytes(std::span(&message, 1)), fds);
}

// Makes a listening Unix socket of `type` (SOCK_SEQPACKET, SOCK_STREAM) at `path`, which must not
// exist; its file has `mode`.
StatusOr<UniqueFd> ListenUnix(const std::string& path, int type, unsigned mode);
// Makes a connected seqpacket socket, for tests and tools.
StatusOr<UniqueFd> ConnectSeqpacket(const std::string& path);

}  // namespace ferry::daemon
