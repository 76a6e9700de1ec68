// Several NICs of a node as one transport (GPU-aware MPI for Intel GPUs, section IV-C).
//
// Messages, and so all envelopes, go by the first rail, in order. Reads and writes go by any rail.
// One of up to `stripe_bytes` goes by the rail with the least to do, or among equals the nearest to
// its rank. Longer ones go in stripes of that size over all rails, each of which takes the next
// stripe when it has finished one. Rail i of a node talks to rail i of the others; a node with more
// rails than its peer does not use the rest.
//
// A further rail carries nothing to a peer before it has answered a probe, nor after it has failed
// a stripe, until it answers again. A failed stripe of a read goes by another rail. A failed stripe
// of a write fails the write, since its data may still arrive, even after that of a repetition.
// Operations that a NIC holds when their deadline passes fail as with one NIC.
//
// Each rail may also be used by itself (Transport::Rails), as deferred work, which belongs to one
// NIC, requires. Operations posted to it share the NIC's slots with the stripes.
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
