// Sends packets to other daemons.
//
// All packets that one turn has for a node go out together, as one frame (wire.h), at the turn's
// end: a system call costs more than a small packet. An RTS, and a packet with a long body, go at
// once and take the gathered packets along: the transfer may begin while the other commands are
// read.
//
// Calling thread: the progress thread. Does not block; allocates only for packets that must wait.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "internode/delivery/core_hooks.h"
#include "internode/delivery/directory.h"
#include "internode/wire/wire.h"
#include "transports/api/transport.h"

namespace ferry::progress {

class Outbound {
 public:
  // All outlive this.
  Outbound(transport::Transport& transport, Directory& directory, const CoreHooks& hooks)
      : transport_(transport), directory_(directory), hooks_(hooks) {}

  // Fills in the header's magic, keys and sizes, and sends to the node of header.destination. kOk:
  // the packet has been copied. kWouldBlock: no room, the node is not known yet, or its
  // link is broken and not judged yet; try again (the home is asked for a way). Everything else is
  // final: the node is not reachable.
  ErrorCode Send(Job& job, PacketHeader header, std::span<const std::byte> body, uint64_t now_ns);

  // Sends as Send does, with `data`, which is copied, behind the words.
  ErrorCode SendParts(Job& job, PacketHeader header, std::span<const std::byte> words,
                      std::span<const std::byte> data, uint64_t now_ns);

  // Sends as SendParts does, but inside the packet at the frame's end, if that is of the same kind
  // and between the same ranks: the two share a header, and each gives its own length. Words and
  // data are filled up to kPacketAlignment. For packets that have a number.
  ErrorCode SendJoined(Job& job, const PacketHeader& header, std::span<const std::byte> words,
                       std::span<const std::byte> data, uint64_t now_ns);

  // Sends as Send does, with `data`, which may be none, behind the body. The data are not copied:
  // they stay where they are while the transport uses their region. `context`: not 0 if another
  // part of the core gets the message's completion, and passes it on to OnComplete.
  ErrorCode SendWith(Job& job, PacketHeader header, std::span<const std::byte> body,
                     const transport::Attachment& data, uint64_t now_ns, uint64_t context = 0);
  uint64_t max_attachment_bytes() const { return transport_.capabilities().max_attachment_bytes; }

  // Sends a packet of the daemon's own from one rank to another, `data` behind the body: it waits
  // for a slot if need be, and is dropped if the node has failed. A node that does not take the
  // packets that its own requests cause loses its link (node_use.h).
  template <typename Body>
  void Post(Job& job, PacketKind kind, uint32_t source, uint32_t destination, const Body& body,
            uint64_t now_ns, std::span<const std::byte> data = {}, uint8_t flags = 0) {
    PacketHeader header{};
    header.flags = flags;
    header.kind = static_cast<uint8_t>(kind);
    header.source = source;
    header.destination = destination;
    PostBytes(job, header, BytesOf(body), data, now_ns);
  }

  // Asks the home for a way to the node of that rank, unless there is one, or it was asked before.
  void WantWay(Job& job, uint32_t destination);

  // Ends this life of the link: sends nothing more on it, and reports `why` to the home.
  static void Break(Link& link, std::string why);
  // Returns true if packets wait for room: packets that others can replace should come later.
  static bool IsCrowded(const Job& job, uint32_t destination) {
    const Link* const link = job.routes[job.plan.node_of_rank[destination]].link;
    return link != nullptr && !link->waiting.empty();
  }

  // Sends the gathered packets, and those that wait.
  void Flush(uint64_t now_ns);
  // Takes the transport's report on a message.
  void OnComplete(Link* link, ErrorCode code);
  // Returns true if a link is to be failed.
  bool any_broken() const;
  // True until the transport has taken and completed everything.
  bool busy() const;

 private:
  void PostBytes(Job& job, PacketHeader header, std::span<const std::byte> words,
                 std::span<const std::byte> data, uint64_t now_ns);
  ErrorCode SendTo(Link* link, const PacketHeader& header, std::span<const std::byte> words,
                   std::span<const std::byte> data, uint64_t now_ns);
  static bool TryJoin(const Job& job, const Route& route, const PacketHeader& header,
                      std::span<const std::byte> words, std::span<const std::byte> data);
  ErrorCode MakeRoom(Link* link, size_t bytes, uint64_t now_ns);
  ErrorCode EndFrame(Link* link, ErrorCode code);
  ErrorCode SendFrame(Link* link, std::span<const std::byte> body, uint64_t now_ns);

  ErrorCode WithoutWay(Job& job, uint32_t destination);

  transport::Transport& transport_;
  Directory& directory_;
  const CoreHooks& hooks_;
};

// Makes the header of the packet of that kind that passes on a rank's command.
inline PacketHeader HeaderOf(const ServedRank& rank, const shm::Descriptor& command,
                             PacketKind kind) {
  PacketHeader header{};
  header.kind = static_cast<uint8_t>(kind);
  header.source = rank.rank();
  header.destination = command.destination;
  header.context = command.context;
  header.tag = command.tag;
  header.size_bytes = command.size_bytes;
  return header;
}

// The longest frame: as large as a packet with a full cell.
inline constexpr size_t kFrameBytes = sizeof(PacketHeader) + shm::kCellBytes + kPacketAlignment;

// A transport operation's context is the address of the object that it serves, or has the number of
// a matched pair (PairContextOf); bits 0 and 1 tell which, and of messages bit 2 those of
// eager_long_send.h.
inline constexpr uint64_t kReadContext = 1;
inline constexpr uint64_t kWriteContext = 2;
inline constexpr uint64_t kPairContext = kReadContext | kWriteContext;
inline constexpr uint64_t kPushContext = 4;
inline uint64_t MessageContext(Link* link) { return reinterpret_cast<uint64_t>(link); }
inline Link* LinkOf(uint64_t context) { return reinterpret_cast<Link*>(context); }

}  // namespace ferry::progress
