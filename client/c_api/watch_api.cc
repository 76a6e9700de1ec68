// Shows a rank's messages to front ends that serve tools (api/message_watch.h).
#include "client/api/message_watch.h"
#include "client/c_api/running.h"
#include "engine/message_watch.h"

using ferry::client::connection;

extern "C" {

FERRY_API void ferry_front_end_watch_messages(ferry::shm::MessageWatch* watch) {
  ferry::engine::WatchMessages(watch);
}

FERRY_API void ferry_front_end_queue_lengths(ferry::client::QueueLengths* lengths) {
  *lengths = ferry::client::IsRunning() ? connection.client->LengthsOfQueues()
                                        : ferry::client::QueueLengths();
}

}  // extern "C"
