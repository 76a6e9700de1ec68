// A transport with faults: refuses memory, fails and holds back reads and writes, loses and holds
// back packets, loses deferred operations of the NIC, and ends the process when packets leave or
// arrive. There is one only if the option `faults` is set.
//
// A packet that is lost takes its connection with it, as with the real ones: later packets to that
// peer are lost too, and every loss is reported, until the peer is forgotten.
//
// Thread: as Transport.
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/faults/faults.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

// `faults` outlives the result. Reads and writes that are held back fail after `timeout_ns`, as
// real ones do; those of one NIC of several are not.
std::unique_ptr<transport::Transport> MakeFaultyTransport(
    std::unique_ptr<transport::Transport> real, Faults& faults, uint64_t timeout_ns);

}  // namespace ferry::daemon
