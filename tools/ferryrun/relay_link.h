// Ferryrun's end of a connection to a relay (relay.h), which carries the streams of all hosts that
// are reached through it.
//
// Main thread; nothing blocks but HostStream::HowEnded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/host_stream.h"

namespace ferry::tools {

// Starts `command`, which is to lead to a relay on the first host of `tree`. Returns a stream for
// each host, in their order; the connection lives as long as one of them. All streams of a
// connection that is lost end. So they do if it brings what no relay would send.
StatusOr<std::vector<std::unique_ptr<HostStream>>> StartRelay(
    const std::vector<std::string>& command, const RelayTree& tree);

}  // namespace ferry::tools
