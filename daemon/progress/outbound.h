// Sends packets to other daemons.
//
// Calling thread: the progress thread. Does not block; allocates only for packets that must wait.
#pragma once

#include <cstdint>
#include <span>

#include "daemon/progress/directory.h"
#include "daemon/progress/wire.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

class Outbound {
 public:
  // Both outlive this.
  Outbound(transport::Transport& transport, Directory& directory)
      : transport_(transport), directory_(directory) {}

  // Fills in the header's magic, keys and sizes, and sends to the node of header.destination. kOk:
  // the transport has copied the packet. kWouldBlock: no slot, or the node is not known yet; try
  // again. Everything else is final: the node is not reachable.
  ErrorCode Send(Job& job, PacketHeader header, std::span<const std::byte> body, uint64_t now_ns);

  // A packet of the daemon's own from one rank to another: it waits for a slot if need be, and is
  // dropped if the node has failed.
  template <typename Body>
  void Post(Job& job, PacketKind kind, uint32_t source, uint32_t destination, const Body& body,
            uint64_t now_ns) {
    PacketHeader header{};
    header.kind = static_cast<uint8_t>(kind);
    header.source = source;
    header.destination = destination;
    PostBytes(job, header, BytesOf(body), now_ns);
  }

  // Sends what waits.
  void Flush(uint64_t now_ns);
  // What the transport reports of a message.
  void OnComplete(Link* link, ErrorCode code);
  // True until the transport has taken and completed everything.
  bool busy() const;

 private:
  void PostBytes(Job& job, PacketHeader header, std::span<const std::byte> body, uint64_t now_ns);
  ErrorCode SendTo(Link* link, std::span<const std::byte> header, std::span<const std::byte> body,
                   uint64_t now_ns);

  transport::Transport& transport_;
  Directory& directory_;
};

// A transport operation's context is the address of what it is for; bit 0 tells which.
inline constexpr uint64_t kReadContext = 1;
inline uint64_t MessageContext(Link* link) { return reinterpret_cast<uint64_t>(link); }
inline Link* LinkOf(uint64_t context) { return reinterpret_cast<Link*>(context); }

}  // namespace ferry::daemon
