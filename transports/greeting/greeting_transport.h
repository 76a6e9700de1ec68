// Connections for a transport that has none of its own: reliable datagrams, as libfabric's. Two
// peers greet each other before they exchange messages; each hears when the other one has given up,
// and when messages were lost.
//
// An address holds 16 random bytes, which it has for one peer only. A greeting that does not prove
// that its sender knows them is dropped, and so is an answer. In their greetings the two tell each
// other 16 more, which every message of the connection has. What has not, is dropped unseen. So
// nobody is heard as a peer but that peer, and nothing that is left over from an earlier connection
// of the two.
//
// Datagrams that have been taken by the network may get lost with whatever connection that has
// below, and then nobody is told. So messages are numbered. An end that misses one, or hears of one
// by a probe, gives the connection up, and says so. A probe is sent when messages have not been
// acknowledged for a while: their receiver may just be busy, or stopped, which is no loss. An
// acknowledgement travels with messages the other way, or answers a probe.
//
// A connection begins by Connect, or by the first post; until it stands, posts return kWouldBlock.
// The other end must know the peer, too (AddPeer), or it does not answer. It ends by FailPeer and
// RemovePeer, for the other end with OnPeerLost, and is not made again: a peer that was lost has to
// be removed, and added anew.
//
// Reads, writes and memory are those of the transport below, whose keys protect them.
//
// Thread: as Transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/status.h"
#include "transports/api/transport.h"

namespace ferry::transport {

// That much longer than its messages are those that it sends:
// TransportOptions::receive_buffer_bytes of the transport below has to be larger by so much.
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
