// The thread that carries collectives and partitioned messages on while the application computes
// (MPI 5.0, section 6.12: nonblocking collectives).
//
// There is one per process, from the first nonblocking collective that is not over at once, or
// partitioned message that needs it, until the process leaves the job. While some are under way it
// looks now and then whether the program carries them on by itself, in tests and waits; where it
// does not, the thread does, and sleeps meanwhile as libferry's waiting calls do. It rests while
// none is under way. While it rests, threads of the program need not mind it (Threads::BeginCall).
//
// Calling thread: any. Nothing blocks, but for the start of the thread.
#pragma once

#include "mpi/base/object.h"
#include "mpi/coll/channel.h"
#include "mpi/coll/watched.h"
#include "mpi/comm/comm.h"

namespace ferry::mpi {

// `watched`, a part of `owner`, has something under way: looks after it until it has not.
void Watch(Ref<Object> owner, Watched* watched);
// The same of the communicator's channel.
void WatchChannel(Comm& comm, Channel& channel);

// Has the thread end before the process leaves the job, and what is under way then be given up.
// Once in a process, before the first use.
void StopHelperAtLeave();

// Whether the thread carries collectives on, and may sleep meanwhile. If it does not, it looks at
// all of them again before it sleeps.
bool HelperWaits();

}  // namespace ferry::mpi
