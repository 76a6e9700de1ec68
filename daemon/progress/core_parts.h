// Makes the parts and options of ferryd's core from the daemon's options and from the control
// plane's regions.
//
// Calling thread: any. Nothing blocks.
#pragma once

#include <memory>

#include "config/options.h"
#include "daemon/faults/faults.h"
#include "daemon/placement/placement.h"
#include "daemon/progress/pairs_and_rings.h"
#include "daemon/session/session.h"
#include "internode/core/progress_core.h"

namespace ferry::daemon {

// `placement` may be null.
progress::CoreOptions CoreOptionsOf(const config::Options& options,
                                    const std::shared_ptr<const Placement>& placement);
// Has the core pass the points of `faults` that are in its own code. `faults` must outlive the
// core.
void AddFaults(Faults& faults, progress::CoreOptions* core);
DeferredRules DeferredRulesOf(const config::Options& options);
// Returns the region in the form that the core takes.
progress::ClaimableRegion Claimable(const std::string& job_id,
                                    const std::shared_ptr<const Region>& region);

}  // namespace ferry::daemon
