// The state that a TcpTransport keeps of each accepted operation and each peer, beside that of the
// table (transports/api/operation_table.h), and the frames by which they are sent.
//
// Thread: the one that owns the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transports/api/operation_table.h"
#include "transports/api/transport.h"
#include "transports/tcp/tcp_address.h"
#include "transports/tcp/tcp_frame.h"
#include "transports/tcp/tcp_memory.h"

namespace ferry::transport {

class TcpStream;
struct TcpPeer;
struct TcpRemote;

// A frame to be written: its header and head lie in one piece; the data, if any, lies elsewhere,
// and its trailer here.
struct OutFrame {
  const std::byte* front = nullptr;
  uint64_t front_bytes = 0;
  const std::byte* data = nullptr;
  uint64_t data_bytes = 0;
  FrameTrailer trailer = FrameTrailer::kGood;
  uint64_t sent = 0;  // of all bytes()

  uint64_t bytes() const {
    return front_bytes + data_bytes + (data_bytes != 0 ? sizeof(trailer) : 0);
  }
};

struct TcpOperation : OperationRecord<TcpPeer, TcpRegion> {
  Kind kind = Kind::kMessage;
  Placement placement = Placement::kLocal;
  uint32_t generation = 0;       // of the slot, which answers name with it
  bool written = false;          // a message that the kernel has taken: the next Poll reports it
  TcpStream* landing = nullptr;  // brings the data of this read now

  std::byte* cell = nullptr;  // for header and head of the frame
  OutFrame out;               // the frame of the current fragment
  std::byte* local = nullptr;
  uint64_t remote_address = 0;
  uint64_t key = 0;
  uint64_t bytes = 0;      // in all
  uint64_t remaining = 0;  // the current fragment and those after it
  uint64_t fragment = 0;
  uint64_t arrived = 0;  // of a read's fragment
};

// A name that AddPeer has given.
struct TcpPeer : OperationPeer<TcpOperation> {
  PeerId id{};
  TcpRemote* remote = nullptr;
  ErrorCode failure = ErrorCode::kOk;
};

// The identity by which a transport knows another one: the number by which it proves itself or, of
// all those that have come as guest 0, where they say that they listen.
struct TcpIdentity {
  uint64_t guest = 0;
  TcpEndpoint endpoint;  // of guest 0

  static TcpIdentity Of(uint64_t guest, const TcpEndpoint& endpoint) {
    return {guest, guest == 0 ? endpoint : TcpEndpoint()};
  }
  auto operator<=>(const TcpIdentity&) const = default;
};

// Another transport, or this one. It may have several names, or none.
struct TcpRemote {
  TcpIdentity identity;
  TcpAddress address;  // if it has had a name; else where it says that it listens
  std::vector<TcpPeer*> names;
  // Operations go by this one; null: there is no connection.
  TcpStream* stream = nullptr;
  // Of a transport's connection to itself, the end that is called.
  TcpStream* called = nullptr;
  uint64_t retry_ns = 0;  // no connection is tried before
  std::string refusal;    // why the last try of ours has failed; empty: it has not
  // When it first connected anew though the connection was not known to have ended; 0: it has not.
  uint64_t anew_ns = 0;
  uint64_t failures = 0;  // calls of FailPeer
};

}  // namespace ferry::transport
