// A rank that a fault or abort() ends says where it was: one line on its standard error, such as
//   libferry: rank 2: SIGSEGV at address 0x10 in solve (heat+0x1189), from step (heat+0x11b0), from
//   main (heat+0x11d4)
// Ranks that end at the same place say the same, so ferryrun shows it once. `addr2line -e heat
// 0x1189` finds the line of the source, where the program was built with -g.
//
// How the process ends does not change: the signal, and with it the exit code, and the core dump,
// whose innermost frame is the program's.
#pragma once

#include <cstdint>

namespace ferry::client {

// Reports the end of this process by SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT, each unless the
// program, Python, a sanitizer or a language's run time has a handler for it or ignores it; a later
// handler of theirs takes the place of this one. Children that are forked report nothing. Gives the
// calling thread a stack for signals, if it has none, so that an overflow of its own is reported.
//
// Any thread, once; does not block. `rank`: below 0 for a process that is none.
void ReportCrashes(int64_t rank);

}  // namespace ferry::client
