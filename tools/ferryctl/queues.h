// The message queues of a rank, for `ferryctl queues`: what it sends and receives, and what has
// come without a receive, by communicator. Pure functions; any thread.
#pragma once

#include <string>

#include "proto/control.pb.h"
#include "tools/display/table.h"
#include "tools/display/view.h"

namespace ferry::tools {

// `reply`: all that the daemon knows of one rank. `label`: what people call the job. Of a queue the
// text has the first 32, unless `all` are wanted.
View QueuesView(const std::string& job_id, const std::string& label, const control::WhyReply& reply,
                bool all = false, const Terminal& terminal = {});

}  // namespace ferry::tools
