// Contexts (OpenSHMEM 1.5, section 9.5). Inside a node a put is over when its call returns, so a
// context has nothing to keep: it stands for its team.
//
// Calling thread: any.
#pragma once

#include "client/shmem/team.h"

namespace ferry::shmem {

// Those that are shareable; private ones are the user's to destroy, and are of no use until then.
void DestroyContextsOf(Team* team);
// All, at the end.
void ForgetContexts();

}  // namespace ferry::shmem
