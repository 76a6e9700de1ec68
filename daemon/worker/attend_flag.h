// How the progress thread asks the progress worker to look after a rank: one flag per rank.
#pragma once

#include <atomic>
#include <memory>

namespace ferry::daemon {

// Shared by the two threads; outlives whichever lets go of it first.
struct AttendFlag {
  std::atomic<bool> wanted{false};
};
using AttendFlagPtr = std::shared_ptr<AttendFlag>;

}  // namespace ferry::daemon
