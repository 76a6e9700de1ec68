// What a rank's memory is offered as: of a message, or of a one-sided operation's bytes.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "daemon/registration/registrations.h"
#include "daemon/traffic/directory.h"
#include "daemon/traffic/outbound.h"
#include "daemon/wire/wire.h"

namespace ferry::daemon {

// Fills in state and region of `offer`, whose size is known, and key and address of `wire`. The
// memory is the rank's own, not private; `claim` holds it then, or goes on waiting. kWouldBlock: it
// is being registered; everything else but kOk: nobody can fetch it.
ErrorCode OfferRegion(Registrations& registrations, ServedRank& rank, const shm::Location& where,
                      uint64_t now_ns, Claim* claim, Offer* offer, WireRts* wire);

// Whether the data should go along with the offer: not if that is long, nor while a lot is on its
// way, for the receiver may have no room for it.
bool MayCarry(const Outbound& outbound, const ServedRank& rank, const Offer& offer);

}  // namespace ferry::daemon
