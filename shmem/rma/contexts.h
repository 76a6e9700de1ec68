// Contexts (OpenSHMEM 1.5, section 9.5). With local PEs a put is over when its call returns, so a
// context has nothing to keep: it stands for its team. Libferry keeps the operations that a context
// has begun with remote PEs (remote.h), and completes them before the context ends.
//
// Calling thread: any. Functions that complete operations block.
#pragma once

#include <cstddef>

#include "shmem/rma/team.h"

namespace ferry::shmem {

// Destroys the shareable contexts of a team that ends. Private ones are the user's to destroy, and
// are of no use until then.
void DestroyContextsOf(const char* call, Team* team);
// Completes, at the end of the program, all operations that contexts, also the default one, have
// begun with remote PEs.
void CompleteContexts(const char* call);
// Returns the number of open contexts without the default one.
size_t CountOpenContexts();
// Marks all contexts as destroyed, but the default one. Call it after CompleteContexts.
void ForgetContexts();

}  // namespace ferry::shmem
