// The answer to `ferryctl why`, as JSON and as text for people. Pure; any thread.
#pragma once

#include <string>

#include "proto/control.pb.h"
#include "tools/display/view.h"

namespace ferry::tools {

// For one rank, all that is known; for several (`all` was asked), a line each.
View WhyView(const std::string& job_id, bool all, const control::WhyReply& reply,
             const Terminal& terminal = {});
// Ranks of any jobs that wait, the longest first.
View WaitingView(const control::WhyReply& reply, const Terminal& terminal = {});

}  // namespace ferry::tools
