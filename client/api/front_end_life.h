// How front ends name the calls by which their program enters the job and leaves it, for what is
// said to the user and to ferryrun (client/bootstrap/job_life.h).
//
// A connection may outlive a front end's life, and serve another one: so it is these two that tell
// whether the program owes a call. libferry exports them. Main thread; do not block.
#pragma once

// Before ferry_front_end_join, or when a new life begins on a connection that is still there.
// Literals: "MPI_Init" and "MPI_Finalize".
extern "C" void ferry_front_end_begin(const char* entry, const char* exit);
// The program has made the second call, and may end when it likes.
extern "C" void ferry_front_end_end(void);
