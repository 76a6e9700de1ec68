// What a rank's memory is announced as: of a message, or of a one-sided operation's bytes.
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

// Fills in state and region of `RTS`, whose size is known, and key and address of `wire`. The
// memory is the rank's own, not private; `claim` holds it then, or goes on waiting. kWouldBlock: it
// is being registered; everything else but kOk: nobody can fetch it.
ErrorCode AnnounceRegion(Registrations& registrations, ServedRank& rank, const shm::Location& where,
                         uint64_t now_ns, Claim* claim, SentRts* rts, WireRts* wire);

// The same for memory of any kind. Where the home alone knows the rank's regions, `where` becomes
// an address.
ErrorCode AnnounceMemory(const PrivateMemory& private_memory, Registrations& registrations,
                         ServedRank& rank, shm::Location* where, uint64_t now_ns, Claim* claim,
                         SentRts* rts, WireRts* wire);

// RTSs private memory: by its key, if the home reaches it or `claim` holds it, else to be staged.
// kWouldBlock: it is being registered.
ErrorCode AnnouncePrivate(const PrivateMemory& private_memory, const ServedRank& rank,
                          uint64_t address, uint64_t now_ns, Claim* claim, SentRts* rts,
                          WireRts* wire);

// What to send along with the RTS: all of it, which lies at `where`. `claim`: as of AnnounceRegion.
transport::Attachment DataOf(const SentRts& rts, const shm::Location& where, const Claim& claim);

// Whether the data should go along with the RTS: not if that is long, nor while a lot is on its
// way, for the receiver may have no room for it.
bool MayCarry(const Outbound& outbound, const ServedRank& rank, const SentRts& rts);

}  // namespace ferry::progress
