// Contexts (OpenSHMEM 1.5, section 9.5). With local PEs a put is over when its call returns, so a
// context has nothing to keep: it stands for its team. What it has begun with remote PEs, libferry
// keeps (remote.h); that is completed before a context ends.
//
// Calling thread: any. What completes blocks.
#pragma once

#include <cstddef>

#include "shmem/rma/team.h"

namespace ferry::shmem {

// Those that are shareable; private ones are the user's to destroy, and are of no use until then.
void DestroyContextsOf(const char* call, Team* team);
// At the end: completes what all of them, also the default one, have begun with remote PEs.
void CompleteContexts(const char* call);
// But the default one.
size_t CountOpenContexts();
// After it: no context is any more.
void ForgetContexts();

}  // namespace ferry::shmem
