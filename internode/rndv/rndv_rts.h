// Fills in RTSs: how the memory of a message, or of a one-sided operation, is announced to the
// other node.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "internode/delivery/directory.h"
#include "internode/delivery/outbound.h"
#include "internode/registration/registrations.h"
#include "internode/rndv/private_memory.h"
#include "internode/wire/wire.h"

namespace ferry::progress {

// Announces memory in a region of the rank's own: fills in state and region of `rts`, whose size is
// known, and key and address of `wire`. `claim` holds the memory then, or goes on waiting.
// kWouldBlock: the memory is being registered; any other error: no peer can fetch it.
ErrorCode AnnounceRegion(Registrations& registrations, ServedRank& rank, const shm::Location& where,
                         uint64_t now_ns, Claim* claim, SentRts* rts, WireRts* wire);

// Announces memory of any kind: calls AnnounceRegion or AnnouncePrivate. Where the home alone knows
// the rank's regions, `where` becomes an address.
ErrorCode AnnounceMemory(const PrivateMemory& private_memory, Registrations& registrations,
                         ServedRank& rank, shm::Location* where, uint64_t now_ns, Claim* claim,
                         SentRts* rts, WireRts* wire);

// Announces private memory: by its key, if the home reaches it or `claim` holds it, else as memory
// to be staged. kWouldBlock: it is being registered.
ErrorCode AnnouncePrivate(const PrivateMemory& private_memory, const ServedRank& rank,
                          uint64_t address, uint64_t now_ns, Claim* claim, SentRts* rts,
                          WireRts* wire);

// Returns the data that the RTS carries: all of the message, which lies at `where`. `claim`: as of
// AnnounceRegion.
transport::Attachment DataOf(const SentRts& rts, const shm::Location& where, const Claim& claim);

// Returns true if the RTS should carry its data: not if that is long, nor while a lot is on its
// way, since the receiver may have no room for it.
bool MayCarry(const Outbound& outbound, const ServedRank& rank, const SentRts& rts);

}  // namespace ferry::progress
