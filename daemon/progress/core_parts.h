// What ferryd gives its core, from the options of the daemon and from what the control plane knows.
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
// Has the core pass those points of `faults`, which outlives it, that are its own.
void AddFaults(Faults& faults, progress::CoreOptions* core);
DeferredRules DeferredRulesOf(const config::Options& options);
// A region, as the core needs it.
progress::ClaimableRegion Claimable(const std::string& job_id,
                                    const std::shared_ptr<const Region>& region);

}  // namespace ferry::daemon
