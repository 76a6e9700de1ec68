// Measures a rank (option `profile`), from its joining to its end: the
// memory, which its daemon keeps, and those that write into it.
//
// Calling thread: that of ferry_init and ferry_finalize. Make blocks until the daemon has answered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "client/api/calls.h"
#include "client/bootstrap/attach_connection.h"
#include "client/profile/event_log.h"
#include "client/profile/measured_messages.h"
#include "client/profile/measured_queues.h"
#include "client/profile/profile.h"
#include "config/options.h"
#include "shm/segment.h"

namespace ferry::client {

class Measure {
 public:
  struct Parts {
    AttachConnection* attach = nullptr;
    Calls* calls = nullptr;  // outlives it, as does what follows
    Messaging* messages = nullptr;
    StreamQueues* queues = nullptr;
    uint32_t rank = 0;
    uint32_t size = 0;  // of the job
    uint32_t node = 0;
    uint32_t node_ranks = 0;
    bool is_crowded = false;
    const bool* shared = nullptr;               // as that of Calls
    std::function<bool(int32_t rank)> by_link;  // as EventLog's
  };
  // Null: `options` do not ask for it, the daemon keeps no more of this job, which the report will
  // say, or there is no memory.
  static std::unique_ptr<Measure> Make(const Parts& parts, const config::Options& options);
  ~Measure();
  Measure(const Measure&) = delete;
  Measure& operator=(const Measure&) = delete;

  // Front ends take it for the rank's messages.
  Messaging* messages() { return messages_.has_value() ? &*messages_ : own_messages_; }
  // Front ends take it for the rank's queues.
  StreamQueues* queues() { return queues_.has_value() ? &*queues_ : own_queues_; }
  // Null: only events are wanted.
  Profile* profile() { return profile_.has_value() ? &*profile_ : nullptr; }
  // Null: no events are wanted.
  EventLog* events() { return events_.has_value() ? &*events_ : nullptr; }
  // A call has completed a request otherwise than by messages().
  void NoteMessageEnd(RequestHandle handle, const Completion& completion) {
    if (messages_.has_value()) {
      messages_->NoteEnd(handle, completion);
    }
  }
  // The rank leaves in good order.
  void NoteEnd();

 private:
  Measure(const Parts& parts, shm::Mapping mapping);

  Calls& calls_;
  shm::Mapping mapping_;
  std::optional<Profile> profile_;
  std::optional<EventLog> events_;
  Messaging* const own_messages_;
  StreamQueues* const own_queues_;
  std::optional<MeasuredMessages> messages_;
  std::optional<MeasuredQueues> queues_;
};

}  // namespace ferry::client
