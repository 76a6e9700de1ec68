// What a queue has a thread of libferry do (StreamQueues::EnqueueCall).
#pragma once

#include <atomic>
#include <functional>

#include "common/status.h"

namespace ferry::client {

struct HostCall {
  // Calls what it stands for, which may block and use FrontEnd, and returns how that ended. Throws
  // nothing. Once `is_cancelled` is true nobody waits for it any more: it should end soon, with any
  // status, where it can without harm to others.
  std::function<Status(const std::atomic<bool>& is_cancelled)> run;
};

}  // namespace ferry::client
