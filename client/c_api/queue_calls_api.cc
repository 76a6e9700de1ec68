// The calls of one_sided.h that queues make: each is the call without a queue, made by a thread of
// libferry's when the stream gets there.
#include <functional>
#include <string>
#include <utility>

#include "client/c_api/last_error.h"
#include "client/c_api/running.h"
#include "include/ferry/one_sided.h"

namespace {

using ferry::ErrorCode;
using ferry::Status;
using ferry::client::Client;
using ferry::client::WithClient;

// How a call of the C API has ended, in its own words.
Status StatusOf(int code) {
  if (code == FERRY_SUCCESS) {
    return {};
  }
  std::string sentence = ferry::client::LastError();
  const std::string head = std::string(ferry_error_string(code)) + ": ";
  if (sentence.starts_with(head)) {
    sentence.erase(0, head.size());  // the status says it again
  }
  return {static_cast<ErrorCode>(code), std::move(sentence)};
}

int Enqueue(ferry_queue queue, std::function<int()> call) {
  return WithClient([&](Client& client) {
    return static_cast<ferry::client::FrontEnd&>(client).queues->EnqueueCall(
        queue, {[call = std::move(call)](const std::atomic<bool>& /*is_cancelled*/) {
          return StatusOf(call());
        }});
  });
}

}  // namespace

extern "C" {

int ferry_enqueue_put(ferry_queue queue, ferry_context context, ferry_place to, const void* from,
                      size_t size_bytes) {
  return Enqueue(queue, [=] { return ferry_put(context, to, from, size_bytes); });
}

int ferry_enqueue_put_signal(ferry_queue queue, ferry_context context, ferry_place to,
                             const void* from, size_t size_bytes, ferry_signal_update update,
                             ferry_place signal, uint64_t value) {
  return Enqueue(queue, [=] {
    return ferry_put_signal(context, to, from, size_bytes, update, signal, value);
  });
}

int ferry_enqueue_get(ferry_queue queue, ferry_context context, void* to, ferry_place from,
                      size_t size_bytes) {
  return Enqueue(queue, [=] { return ferry_get(context, to, from, size_bytes); });
}

int ferry_enqueue_atomic(ferry_queue queue, ferry_context context, ferry_atomic_operation operation,
                         ferry_place word, int width, uint64_t operand, uint64_t compare) {
  return Enqueue(queue,
                 [=] { return ferry_atomic(context, operation, word, width, operand, compare); });
}

int ferry_enqueue_quiet(ferry_queue queue, ferry_context context) {
  return Enqueue(queue, [=] { return ferry_quiet(context); });
}

}  // extern "C"
