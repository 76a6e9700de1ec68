// The pipe by which ranks of this machine say that they abort their job (common/abort_notice.h).
//
// Main thread; nothing blocks.
#pragma once

#include <optional>

#include "common/abort_notice.h"
#include "common/status.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/rank_process.h"

namespace ferry::tools {

class AbortPipe {
 public:
  // Adds the pipe to a command for StartRank: the rank inherits it, and finds its number in its
  // environment. kSystem when there are no descriptors left.
  Status GiveTo(RankCommand* command);

  // Readable when a notice waits; -1 while no rank has the pipe.
  int fd() const { return pipe_.read.get(); }
  std::optional<AbortNotice> Read() const;

 private:
  Pipe pipe_;
};

}  // namespace ferry::tools
