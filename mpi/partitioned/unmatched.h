// Receives whose sender has not called its init yet, where there are devices. A sender that makes a
// Prequest waits for the receiver's answer, and the receiver's program may make no call that gives
// it. So the library's thread gives it.
//
// Calling thread: any. Nothing blocks, but for the start of that thread.
#pragma once

namespace ferry::mpi {

class PartitionedReceive;

// Watches the receive until it is matched, or forgotten.
void WatchUnmatched(PartitionedReceive* receive);
// Stops watching a receive that is freed. Does nothing if it is not watched.
void ForgetUnmatched(PartitionedReceive* receive);
// Answers the offers of all watched receives whose sender has come.
void AnswerUnmatched();

}  // namespace ferry::mpi
