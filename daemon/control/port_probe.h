// Asks the kernel of another node whether anything listens at an address there: a refusal comes at
// once when its daemon is dead, while a link that is cut answers nothing.
//
// Calling thread: the one that runs `context`. Does not block.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <string>

namespace ferry::daemon {

// Calls `done` once: now, if `address` is no host:port, or within about `limit`. `refused`: nothing
// listens there; otherwise something does, or nobody knows.
void ProbePort(boost::asio::io_context& context, const std::string& address,
               std::chrono::milliseconds limit, std::function<void(bool refused)> done);

}  // namespace ferry::daemon
