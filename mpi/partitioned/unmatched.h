// Receives whose sender has not made its init yet, where there are devices: a sender that makes a
// Prequest waits for the answer of the receiver, which the program may have no other call for. So
// the library's thread gives it.
//
// Calling thread: any. Nothing blocks, but for the start of that thread.
#pragma once

namespace ferry::mpi {

class PartitionedReceive;

// Looks after it until it is matched, or forgotten.
void WatchUnmatched(PartitionedReceive* receive);
// It is freed. Does nothing for one that is not watched.
void ForgetUnmatched(PartitionedReceive* receive);
// Answers all whose sender has come.
void AnswerUnmatched();

}  // namespace ferry::mpi
