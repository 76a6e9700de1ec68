// Lets a front end watch the messages of its rank (shm/message_watch.h), for tools. libferry
// exports both functions.
//
// While one is set, messages take the ordinary way where they would take a shorter one.
// Calling thread: any. Nothing blocks.
#pragma once

#include <cstdint>

#include "shm/message_watch.h"

namespace ferry::client {

struct QueueLengths {
  uint32_t posted = 0;      // receives that wait for messages
  uint32_t unexpected = 0;  // messages that wait for receives
};

}  // namespace ferry::client

// `watch` stays for as long as the process; null: the watch ends.
extern "C" void ferry_front_end_watch_messages(ferry::shm::MessageWatch* watch);
// 0 and 0 outside of a job.
extern "C" void ferry_front_end_queue_lengths(ferry::client::QueueLengths* lengths);
