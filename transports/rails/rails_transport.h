// Several NICs of a node as one transport (GPU-aware MPI for Intel GPUs, section IV-C).
//
// Messages, and so all envelopes, go by the first rail, in order. Reads and writes go by any: one
// of up to `stripe_bytes` by the rail with the least to do, the nearest to its rank among equals;
// longer ones in pieces of that size over all rails, each of which takes the next piece when it has
// finished one. Rail i of a node talks to rail i of the others; a node with more rails than its
// peer leaves the further ones alone.
//
// A further rail carries nothing to a peer before it has answered a probe, nor after it has failed
// a piece, until it answers again. A failed piece of a read goes by another rail; a write fails, as
// its data may arrive yet, and after that of its repetition. What a NIC holds when its deadline
// passes fails as with one NIC.
//
// Each rail may be used by itself, too (Transport::Rails), as deferred work has to be, which is
// each NIC's own. What is posted to it shares the NIC's slots with the pieces.
//
// Thread and errors: as Transport. Allocates when memory of a peer is first used.
#pragma once

#include <functional>
#include <memory>

#include "common/status.h"
#include "transports/api/transport.h"

namespace ferry::transport {

using OpenRail = std::function<StatusOr<std::unique_ptr<Transport>>(const TransportOptions&)>;

// Opens the NIC that the options describe and those that options.rails names, all with the same
// provider. Errors: those of `open`, with the rail's name; kInvalidArgument (too many rails, or no
// stripe_bytes).
StatusOr<std::unique_ptr<Transport>> CreateRailsTransport(const TransportOptions& options,
                                                          const OpenRail& open);

}  // namespace ferry::transport
