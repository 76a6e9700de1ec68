// The peers and operations of a RailSet, which all of its parts change.
//
// Thread: the progress thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/secret.h"
#include "common/slot_map.h"
#include "transports/api/transport.h"
#include "transports/rails/rail_address.h"
#include "transports/rails/rail_keys.h"
#include "transports/rails/rail_memory.h"

namespace ferry::transport {

// Of one operation: one on the wire, one behind it.
inline constexpr uint32_t kPostedStripesPerRail = 2;

// The context that a rail hands back: the index of an operation (a message) or of a stripe; or
// kDirectContext, for an operation posted directly to the rail.
inline constexpr uint64_t kPostedStripeBit = 1;
inline constexpr uint64_t kRailMessageContext = kDirectContext - 1;

struct RailPeer {
  PeerId id{};
  Secret cookie{};      // the peer's for this node
  Secret own_cookie{};  // this node's for the peer
  uint32_t rails = 0;   // that both nodes have
  std::array<PeerId, kMaxRails> of_rail{};
  uint32_t up = 1;       // rails, by bit, that may carry its stripes: the first and those that echo
  bool probing = false;  // the peer was or will be used, so its other rails are probed
  uint64_t asked_ns = 0;  // time of the first probe of those rails; 0: none yet
  ErrorCode failure = ErrorCode::kOk;
  bool removed = false;
  uint32_t outstanding = 0;
  KnownKeys keys;

  bool HasSent(const RailMessage& message) const {
    return SameSecret(message.to, own_cookie) && SameSecret(message.from, cookie);
  }
};

// A range of an operation, carried by one rail.
struct Stripe {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint32_t tried = 0;  // rails that have failed it, by bit
};

struct RailOperation {
  using Kind = OperationKind;

  Kind kind = Kind::kMessage;
  Placement placement = Placement::kLocal;
  ErrorCode result = ErrorCode::kOk;
  bool active = false;  // accepted, and not ended
  bool parked = false;  // no rail had room
  RmaRequest request;   // for a message: peer, region (if `attached`), bytes, context
  bool attached = false;
  RailKeys keys{};
  uint64_t next_offset = 0;   // nothing from here on has been posted
  std::vector<Stripe> again;  // stripes to be posted again
  uint32_t in_flight = 0;
  std::array<uint8_t, kMaxRails> on_rail{};
  uint64_t deadline_ns = 0;  // while it waits for keys
  uint64_t asked_ns = 0;
};

struct RailsState {
  const TransportOptions options;
  const std::vector<Transport*> rails;
  RailMemory memory;
  SlotMap<PeerId, RailPeer> peers;
  std::vector<RailOperation> operations;
  std::vector<uint32_t> ended;       // operations to be reported
  const char* last_error = nullptr;  // this transport's own; null: ask the rails
  uint64_t now_ns = 0;

  uint32_t IndexOf(const RailOperation& operation) const {
    return static_cast<uint32_t>(&operation - operations.data());
  }
};

}  // namespace ferry::transport
