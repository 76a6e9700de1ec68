// The thread that carries collectives and partitioned messages on while the application computes
// (MPI 5.0, section 6.12: nonblocking collectives).
//
// There is one per process, from the first nonblocking collective that is not over at once, or
// partitioned message that needs it, until the process leaves the job. While some are under way the
// thread checks now and then that the program carries them on by itself, in tests and waits; where
// it does not, the thread does, and sleeps meanwhile as libferry's waiting calls do. It rests while
// none is under way. While it rests, threads of the program need not mind it (Threads::BeginCall).
//
// Calling thread: any. Nothing blocks, but for the start of the thread.
#pragma once

#include "mpi/base/object.h"
#include "mpi/coll/channel.h"
#include "mpi/coll/watched.h"
#include "mpi/comm/comm.h"

namespace ferry::mpi {

// Looks after `watched`, a part of `owner` with an operation under way, until it has none.
void Watch(Ref<Object> owner, Watched* watched);
// Looks after the communicator's channel, as Watch does.
void WatchChannel(Comm& comm, Channel& channel);

// Makes the thread end before the process leaves the job, and give up the operations that are then
// under way. To be called once in a process, before the first use.
void StopHelperAtLeave();

// Returns true while the thread carries collectives on, and may sleep meanwhile. Else it looks at
// all of them again before it sleeps.
bool HelperWaits();

}  // namespace ferry::mpi
