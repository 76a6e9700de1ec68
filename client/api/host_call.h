// A function that a thread of libferry calls when a queue reaches it (StreamQueues::EnqueueCall).
#pragma once

#include <atomic>
#include <functional>

#include "common/status.h"

namespace ferry::client {

struct HostCall {
  // Does the work, and returns how that ended. May block and use FrontEnd; throws nothing. Once
  // `is_cancelled` is true the queue no longer waits for the call, which should then return soon,
  // with any status, where it can without harm to others.
  std::function<Status(const std::atomic<bool>& is_cancelled)> run;
};

}  // namespace ferry::client
