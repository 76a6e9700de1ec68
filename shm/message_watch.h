// The interface by which a rank's engine tells of messages (engine/message_watch.h).
#pragma once

#include <cstdint>

namespace ferry::shm {

struct MessageSeen {
  uint32_t context;
  int32_t source;  // a rank of the job
  int32_t tag;
  uint64_t size_bytes;
};

// Called by the holder of the rank's progress lease, one call at a time. The functions may neither
// block for long nor call the rank's library.
class MessageWatch {
 public:
  // A message has come. `is_expected`: a receive waited for it, and so Matched follows; else it is
  // kept for one.
  virtual void Arrived(const MessageSeen& message, bool is_expected) = 0;
  // A message has been given to a receive.
  virtual void Matched(const MessageSeen& message, bool was_expected) = 0;
  // How many receives are posted, and how many messages are kept for receives: after each of them
  // has come, and before a message goes.
  virtual void QueuesAre(uint32_t posted, uint32_t unexpected) = 0;

 protected:
  ~MessageWatch() = default;
};

}  // namespace ferry::shm
