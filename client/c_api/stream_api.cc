// The C API of stream.h over client/triggered. It only checks arguments and turns codes into
// sentences.
#include <span>
#include <string>

#include "client/c_api/running.h"
#include "include/ferry/stream.h"

namespace {

using ferry::ErrorCode;
using ferry::Status;
using ferry::StatusOr;
using ferry::client::Client;
using ferry::client::FerryStream;
using ferry::client::WithClient;

Status CheckAddress(const void* address, const char* what) {
  return address != nullptr ? Status()
                            : Status(ErrorCode::kInvalidArgument,
                                     std::string("the address of the ") + what + " is null");
}

// A null array is allowed if `count` is 0.
StatusOr<std::span<const ferry_request>> RequestsOf(size_t count, const ferry_request* requests) {
  if (count != 0) {
    FERRY_RETURN_IF_ERROR(CheckAddress(requests, "requests"));
  }
  return std::span<const ferry_request>(requests, count);
}

int BeginMatch(size_t count, const ferry_request* requests, ferry_request* match) {
  return WithClient([&](Client& client) -> Status {
    FERRY_RETURN_IF_ERROR(CheckAddress(match, "match request"));
    auto all = RequestsOf(count, requests);
    FERRY_RETURN_IF_ERROR(all.status());
    return client.BeginMatch(*all, match);
  });
}

template <typename Use>
int WithStream(ferry_stream handle, Use&& use) {
  return WithClient([&](Client& client) -> Status {
    auto stream = client.queues().Find(reinterpret_cast<FerryStream*>(handle));
    FERRY_RETURN_IF_ERROR(stream.status());
    return use(**stream);
  });
}

// The call in which the rank waits for a queue, with the place of its steps.
struct QueueCall : ferry::client::CallNote {
  explicit QueueCall(uint64_t queue_steps) : CallNote(&DescribeIt), steps(queue_steps) {}

  const uint64_t steps;

 private:
  static void DescribeIt(const CallNote& note, ferry::shm::CallDescription* description) {
    description->name = ferry::shm::CallName::kFerryQueueWait;
    description->object = static_cast<const QueueCall&>(note).steps;
    description->flags = description->object == 0 ? 0 : ferry::shm::kCallHasObject;
  }
};

// By what measures the rank, if anything does. Client's own `queues` are its innermost part.
ferry::client::StreamQueues& QueuesOf(Client& client) {
  return *static_cast<ferry::client::FrontEnd&>(client).queues;
}

using Enqueue = Status (ferry::client::StreamQueues::*)(ferry_queue,
                                                        std::span<const ferry_request>);

int EnqueueAll(Enqueue enqueue, ferry_queue queue, size_t count, const ferry_request* requests) {
  return WithClient([&](Client& client) -> Status {
    auto all = RequestsOf(count, requests);
    FERRY_RETURN_IF_ERROR(all.status());
    return (QueuesOf(client).*enqueue)(queue, *all);
  });
}

}  // namespace

extern "C" {

int ferry_matchall(size_t count, const ferry_request* requests) {
  ferry_request match = FERRY_REQUEST_NULL;
  if (const int error = BeginMatch(count, requests, &match); error != FERRY_SUCCESS) {
    return error;
  }
  ErrorCode outcome = ErrorCode::kOk;
  const int error = WithClient([&](Client& client) -> Status {
    ferry::client::NamedCall call(ferry::shm::CallName::kFerryMatchall);
    const ferry::client::CallScope scope(client.calls, &call);
    ferry::client::Completion completion;
    client.Wait(match, &completion);
    outcome = completion.error;
    return {};
  });
  return error == FERRY_SUCCESS ? ferry::client::Report(outcome) : error;
}

int ferry_match(ferry_request request) { return ferry_matchall(1, &request); }

int ferry_imatchall(size_t count, const ferry_request* requests, ferry_request* match) {
  return BeginMatch(count, requests, match);
}

int ferry_imatch(ferry_request request, ferry_request* match) {
  return BeginMatch(1, &request, match);
}

int ferry_kernel_prepare_start(ferry_request request, ferry_kernel_start* start) {
  return WithClient([&](Client& client) -> Status {
    FERRY_RETURN_IF_ERROR(CheckAddress(start, "kernel's start"));
    auto prepared = client.matching().PrepareKernelStart(request);
    FERRY_RETURN_IF_ERROR(prepared.status());
    *start = {prepared->word, prepared->done, prepared->number};
    return {};
  });
}

int ferry_is_matched(ferry_request request, int* matched) {
  return WithClient([&](Client& client) -> Status {
    FERRY_RETURN_IF_ERROR(CheckAddress(matched, "flag"));
    bool is_matched = false;
    FERRY_RETURN_IF_ERROR(client.IsMatched(request, &is_matched));
    *matched = is_matched ? 1 : 0;
    return {};
  });
}

int ferry_queue_init(ferry_queue_type type, const void* stream_address, ferry_queue* queue) {
  return WithClient([&](Client& client) -> Status {
    FERRY_RETURN_IF_ERROR(CheckAddress(queue, "queue"));
    *queue = FERRY_QUEUE_NULL;
    auto made = client.MakeQueue(static_cast<uint32_t>(type), stream_address);
    FERRY_RETURN_IF_ERROR(made.status());
    *queue = *made;
    return {};
  });
}

int ferry_queue_free(ferry_queue* queue) {
  return WithClient([&](Client& client) -> Status {
    FERRY_RETURN_IF_ERROR(CheckAddress(queue, "queue"));
    FERRY_RETURN_IF_ERROR(QueuesOf(client).FreeQueue(*queue));
    *queue = FERRY_QUEUE_NULL;
    return {};
  });
}

int ferry_queue_wait(ferry_queue queue) {
  return WithClient([&](Client& client) {
    QueueCall call(client.queues().StepsOf(queue));
    const ferry::client::CallScope scope(client.calls, &call);
    client.calls->NoteWait();  // the stream's own wait does not
    return QueuesOf(client).AwaitQueue(queue);
  });
}

int ferry_enqueue_startall(ferry_queue queue, size_t count, const ferry_request* requests) {
  return EnqueueAll(&ferry::client::StreamQueues::EnqueueStart, queue, count, requests);
}

int ferry_enqueue_start(ferry_queue queue, ferry_request request) {
  return ferry_enqueue_startall(queue, 1, &request);
}

int ferry_enqueue_waitall(ferry_queue queue, size_t count, const ferry_request* requests) {
  return EnqueueAll(&ferry::client::StreamQueues::EnqueueWait, queue, count, requests);
}

int ferry_enqueue_wait(ferry_queue queue, ferry_request request) {
  return ferry_enqueue_waitall(queue, 1, &request);
}

int ferry_stream_create(int device, ferry_stream* stream) {
  return WithClient([&](Client& client) -> Status {
    FERRY_RETURN_IF_ERROR(CheckAddress(stream, "stream"));
    *stream = nullptr;
    auto made = client.queues().MakeStream(device);
    FERRY_RETURN_IF_ERROR(made.status());
    *stream = reinterpret_cast<ferry_stream>(*made);
    return {};
  });
}

int ferry_stream_destroy(ferry_stream* stream) {
  return WithClient([&](Client& client) -> Status {
    FERRY_RETURN_IF_ERROR(CheckAddress(stream, "stream"));
    FERRY_RETURN_IF_ERROR(client.queues().DestroyStream(reinterpret_cast<FerryStream*>(*stream)));
    *stream = nullptr;
    return {};
  });
}

int ferry_stream_synchronize(ferry_stream stream) {
  return WithStream(stream, [](ferry::gpu::Stream& found) {
    ferry::client::NamedCall call(ferry::shm::CallName::kFerryStreamSynchronize);
    const ferry::client::CallScope scope(ferry::client::connection.client->calls, &call);
    ferry::client::connection.client->calls->NoteWait();
    return found.Synchronize();
  });
}

int ferry_stream_memcpy(ferry_stream stream, void* destination, const void* source,
                        size_t size_bytes) {
  return WithStream(stream, [&](ferry::gpu::Stream& found) {
    return found.CopyAsync(destination, source, size_bytes);
  });
}

int ferry_stream_launch(ferry_stream stream, void (*kernel)(void* argument), void* argument) {
  return WithStream(stream, [&](ferry::gpu::Stream& found) -> Status {
    if (kernel == nullptr) {
      return {ErrorCode::kInvalidArgument, "the kernel is null"};
    }
    return found.LaunchHost([kernel, argument] {
      kernel(argument);
      return Status();
    });
  });
}

}  // extern "C"
