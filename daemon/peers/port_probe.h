// Asks the kernel of another node whether anything listens at an address there.
//
// A refusal comes at once when the daemon there is dead; a link that is cut answers nothing. A
// daemon that is just dying may still be connected to: its listener may go later than the
// connections that it had accepted, and what the listener had not passed on goes with it. Such a
// connection is closed without a word, so the address is asked again. A living daemon says
// something, or nothing for a while.
//
// Thread: the one that runs `context`. Nothing blocks.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>

#include "common/net_address.h"

namespace ferry::daemon {

// So often a connection may be closed without a word before the address counts as one of a living
// daemon, with a pause after each time.
inline constexpr int kMostPortProbes = 10;
inline constexpr std::chrono::milliseconds kPortProbePause{5};
// A daemon that has said nothing for so long, twice, lives: with TLS it waits for the caller's
// word, and one that is stopped says nothing at all.
inline constexpr std::chrono::milliseconds kPortProbeWord{100};

// Calls `done` once. `refused`: nothing listens there; otherwise something does, or nobody knows.
// Finding the address, and connecting, may take `limit` each time.
void ProbePort(boost::asio::io_context& context, const HostPort& where,
               std::chrono::milliseconds limit, std::function<void(bool refused)> done);

}  // namespace ferry::daemon
