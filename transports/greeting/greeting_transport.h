// GreetingTransport: connections for a transport that has none of its own, such as libfabric's
// reliable datagrams. Two peers greet each other before they exchange messages; each is told when
// the other one has given up, and when messages were lost.
//
// An address holds 16 random bytes, a secret for one peer only. A greeting that does not prove that
// its sender knows them is dropped, and so is an answer. In their greetings the two peers send each
// other 16 more bytes, which every message of the connection carries. Messages without them are
// dropped unread. So no other process is taken for that peer, and no message that is left over from
// an earlier connection of the two is taken.
//
// The network may lose datagrams that it has accepted, with a connection of its own below, and then
// reports nothing. So messages are numbered. An end that misses a message, or learns by a probe
// that it has missed one, gives the connection up, and tells the other end. A probe is sent when
// messages have not been acknowledged for a while: their receiver may just be busy, or stopped,
// which is no loss. An acknowledgement travels with messages the other way, or answers a probe.
//
// A connection begins by Connect, or by the first post; until it stands, posts return kWouldBlock.
// The other end must know the peer, too (AddPeer), or it does not answer. It ends by FailPeer and
// RemovePeer, and the other end gets OnConnectionEnded. It is not made again: a peer that was lost
// has to be removed, and added anew.
//
// Reads, writes and memory are those of the transport below, whose keys protect them.
//
// Calling thread: as of Transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/status.h"
#include "transports/api/transport.h"

namespace ferry::transport {

// How many bytes it adds to each message: TransportOptions::receive_buffer_bytes of the transport
// below has to be larger by this.
inline constexpr uint32_t kGreetingOverheadBytes = 40;

struct GreetingTimes {
  uint64_t hello_ns = 50'000'000;     // between two greetings that are not answered
  uint64_t probe_ns = 1'000'000'000;  // from a message to a probe; the pauses grow from there
};

// `below` has one NIC. kUnsupported: its addresses are too long; kSystem: there are no random
// bytes.
StatusOr<std::unique_ptr<Transport>> CreateGreetingTransport(std::unique_ptr<Transport> below,
                                                             const GreetingTimes& times = {});

}  // namespace ferry::transport
