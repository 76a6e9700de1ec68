// The guard: the process that starts the ranks of this machine for a ferryrun or an agent, and that
// ends all their processes when that one ends, however it ends.
//
// It is a child of ferryrun, forked before there are threads, in a process group of its own: what
// kills ferryrun or its group does not reach it. It is a subreaper (prctl(2)), so whatever ranks
// start stays below it. It sleeps until an order comes, one of its children ends, or the socket
// hangs up. This header has the orders and answers; slots.h is ferryrun's end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/unique_fd.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {

enum class GuardOrderKind : uint32_t {
  kStart = 1,   // SpawnText follows, with the standard streams and the pmi_fd, if there is one.
                // Answer: kStarted, kFailed
  kSignal = 2,  // to the process groups of all ranks that have not ended
  kFinish = 3,  // kills what is left. Answer: kFinished, then it ends
};
struct GuardOrder {
  GuardOrderKind kind;
  int32_t number;  // the signal
  uint32_t bytes;  // that follow
};

enum class GuardWordKind : uint32_t {
  kStarted = 1,
  kFailed = 2,  // `first`: SpawnFailure::Step; `second`: errno
  kEnded = 3,   // a rank; `first`: si_code, `second`: si_status, as waitid says
  kFinished = 4,
};
struct GuardWord {
  GuardWordKind kind;
  pid_t pid;
  int32_t first;
  int32_t second;
};

// Writes a SpawnRequest as text, without its streams. The death signal is SIGKILL.
std::string SpawnText(const SpawnRequest& request);
// Reads such a text. Returns false if it is none.
bool ReadSpawn(std::string_view text, SpawnRequest* request);

// Runs the guard until it ends. `socket`: a stream to ferryrun, whose other end only ferryrun may
// hold.
[[noreturn]] void LiveAsGuard(UniqueFd socket);

}  // namespace ferry::tools
