// Sends what measured ranks have left here to their launcher and `ferryctl`: the stream of
// JobProfile (proto/control.proto).
//
// Calling thread: any but the control thread, which it asks; blocks for as long as `write` does.
#pragma once

#include <functional>
#include <string>

#include "common/status.h"
#include "daemon/admin/reporter.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/plane/control_loop.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// Sends the parts that `request` names by `write`, which returns false once the caller has gone.
// The first has no data: the node, its clock, the processor time of this process. kNotFound: there
// is no such job here, or none of the viewer's; kSystem.
Status SendJobProfile(ControlLoop& loop, const JobRegistry& registry, const std::string& node_name,
                      Viewer viewer, const control::JobProfileRequest& request,
                      const std::function<bool(const control::JobProfilePart&)>& write);

}  // namespace ferry::daemon
