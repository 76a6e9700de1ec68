// Calls that a queue's stream makes (ferry_shmem/queues.h): OnQueue of operations.h. libferry has
// the threads that carry them out (client/triggered/queue_calls.h); here is what belongs to
// OpenSHMEM: how a call ends, and that shmem_finalize waits for all.
#pragma once

namespace ferry::shmem {

// Blocks until the calls that are enqueued are over, and their streams have done everything. Says
// for which it waits if that takes long, and what they have failed at. Calling thread: that of
// shmem_finalize.
void AwaitQueues(const char* call);

}  // namespace ferry::shmem
