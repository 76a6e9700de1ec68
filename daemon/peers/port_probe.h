// Asks the kernel of another node whether anything listens at an address there.
//
// A refusal comes at once when the daemon there is dead; across a link that is cut nothing comes. A
// daemon that is just dying may still accept connections: its listener may close later than the
// connections that it had accepted, and with it go those that it had not passed on. Such a
// connection closes without a byte, so the address is asked again. A living daemon sends something,
// or nothing for a while.
//
// Thread: the one that runs `context`. Nothing blocks.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>

#include "common/net_address.h"

namespace ferry::daemon {

// A connection may close without a byte so often, with a pause after each time, before the address
// counts as one of a living daemon.
inline constexpr int kMostPortProbes = 10;
inline constexpr std::chrono::milliseconds kPortProbePause{5};
// A daemon that keeps the connection open without a byte for so long, twice, lives: with TLS it
// waits for the caller's first bytes, and a stopped daemon sends nothing at all.
inline constexpr std::chrono::milliseconds kPortProbeWord{100};

// Calls `done` once. `refused`: nothing listens there; otherwise something does, or it is not
// known. Finding the address, and connecting, may take `limit` each time.
void ProbePort(boost::asio::io_context& context, const HostPort& where,
               std::chrono::milliseconds limit, std::function<void(bool refused)> done);

}  // namespace ferry::daemon
