// A private daemon for a job that no ferryrun started: its ranks were started under PMIx, and
// libferry calls ferryrun for this (client/pmix/own_daemon.h).
#pragma once

namespace ferry::tools {

// The flag that makes a ferryrun such a helper.
inline constexpr char kHelperFlag[] = "--daemon";

// Starts a daemon with the options of the environment and writes "serves RUN_DIRECTORY", or why
// there is none, to standard output. Stops it when standard input ends, or on a signal. Returns the
// exit code. Main thread.
int RunDaemonHelper();

}  // namespace ferry::tools
