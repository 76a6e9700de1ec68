// A front end names the calls by which its program enters the job and leaves it, for messages to
// the user and to ferryrun (client/bootstrap/job_life.h).
//
// A connection may outlive one life of a front end, and serve the next one. So these two functions,
// not the connection, tell whether the program still has to call `exit`. libferry exports them.
// Main thread; do not block.
#pragma once

// Call it before ferry_front_end_join, or when a new life begins on a connection that is still
// there. The names are literals, such as "MPI_Init" and "MPI_Finalize".
extern "C" void ferry_front_end_begin(const char* entry, const char* exit);
// Call it when the program has made the second call: it may end at any time from now on.
extern "C" void ferry_front_end_end(void);
