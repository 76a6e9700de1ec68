// How matched pairs end while queues use them: freed requests, streams that go or take no work,
// failures that are told once. Two ranks, on one node or two.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "ferry/ferry.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/check.h"
#include "tests/e2e/ranks/queue.h"

namespace {

using namespace ferry::ranks;  // NOLINT: the helpers of this folder

void PartnersThatGo() {
  long word = 0;
  ferry_request request = Make(&word, sizeof(word), 7);
  if (Sends()) {  // offers a match, and takes it back
    ferry_request match = FERRY_REQUEST_NULL;
    CHECK_OK(ferry_imatch(request, &match));
    CHECK_OK(ferry_request_free(&request));
    CHECK_EQ(ferry_wait(&match, nullptr), FERRY_ERR_REQUEST);
    CHECK_OK(ferry_barrier());
  } else {
    CHECK_OK(ferry_barrier());
    const int error = ferry_match(request);
    // From another node the news may come a moment later than the match.
    if (error != FERRY_SUCCESS || ferry_node_of(0) == ferry_node_of(1)) {
      CHECK_REFUSED(error, FERRY_ERR_REQUEST, "has freed its request");
    }
    CHECK_OK(ferry_request_free(&request));
  }

  // Matched, used, and freed by one side.
  request = MakeMatched(&word, sizeof(word), 8);
  word = Sends() ? 5 : 0;
  CHECK_OK(ferry_start(request));
  CHECK_OK(ferry_wait(&request, nullptr));
  CHECK_EQ(word, 5);
  CHECK_OK(ferry_barrier());
  if (Sends()) {
    CHECK_OK(ferry_request_free(&request));
  } else {
    Stream stream;
    // The start may come before the news: then its wait ends with the error.
    const int started = ferry_enqueue_start(stream.queue, request);
    if (started == FERRY_SUCCESS) {
      CHECK_OK(ferry_enqueue_wait(stream.queue, request));
      CHECK_EQ(ferry_queue_wait(stream.queue), FERRY_ERR_REQUEST);
      CHECK_OK(ferry_queue_wait(stream.queue));  // told once
    } else {
      CHECK_EQ(started, FERRY_ERR_REQUEST);
    }
    CHECK_EQ(ferry_start(request), FERRY_ERR_REQUEST);
    CHECK_EQ(ferry_enqueue_start(stream.queue, request), FERRY_ERR_REQUEST);
    CHECK_OK(ferry_request_free(&request));
    stream.End();
  }
  CHECK_OK(ferry_barrier());
}

// The receiver's stream is held up, and destroyed before it gets to the start of the receive: the
// sender's wait ends all the same.
void StreamsThatGo() {
  long words[2] = {1, 2};
  ferry_request blocker = MakeMatched(&words[0], sizeof(long), 12);
  ferry_request request = MakeMatched(&words[1], sizeof(long), 13);
  Stream stream;
  if (Sends()) {
    int error = FERRY_SUCCESS;
    for (int round = 0; round < 3 && error == FERRY_SUCCESS; ++round) {
      error = ferry_enqueue_start(stream.queue, request);
      if (error == FERRY_SUCCESS) {
        CHECK_OK(ferry_enqueue_wait(stream.queue, request));
      }
    }
    CHECK_EQ(error == FERRY_SUCCESS ? ferry_queue_wait(stream.queue) : error, FERRY_ERR_REQUEST);
    CHECK_EQ(ferry_start(request), FERRY_ERR_REQUEST);
    (void)ferry_queue_wait(stream.queue);
    stream.End();
  } else {
    CHECK_OK(ferry_enqueue_start(stream.queue, blocker));
    CHECK_OK(ferry_enqueue_wait(stream.queue, blocker));  // the send for it is never started
    CHECK_OK(ferry_enqueue_start(stream.queue, request));
    CHECK_OK(ferry_enqueue_wait(stream.queue, request));
    ferry_stream gone = stream.stream;
    CHECK_OK(ferry_stream_destroy(&stream.stream));
    CHECK_EQ(stream.stream == nullptr, true);
    CHECK_REFUSED(ferry_stream_destroy(&gone), FERRY_ERR_ARGUMENT, "no stream");
    CHECK_REFUSED(ferry_queue_wait(stream.queue), FERRY_ERR_CANCELLED, "was destroyed");
    CHECK_EQ(ferry_enqueue_start(stream.queue, request), FERRY_ERR_CANCELLED);
    CHECK_OK(ferry_queue_free(&stream.queue));
  }
  CHECK_OK(ferry_request_free(&request));
  CHECK_OK(ferry_request_free(&blocker));
  CHECK_OK(ferry_barrier());
}

// Returns true if that thread of this process sleeps.
bool Sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t end = text.rfind(") ");
  return end != std::string::npos && text[end + 2] == 'S';
}

// A failure that is enqueued while another thread waits for the queue is told to the next wait.
void FailuresAreToldToWhoComesLater() {
  std::vector<char> message(100'000);  // does not leave ahead of its receive
  ferry_request request = MakeMatched(message.data(), message.size(), 15);
  if (!Sends()) {
    CHECK_OK(ferry_barrier());  // the other side has enqueued
    CHECK_OK(ferry_request_free(&request));
    CHECK_OK(ferry_barrier());
    return;
  }
  Stream stream;
  gate = 0;
  at_gate = false;
  CHECK_OK(ferry_stream_launch(stream.stream, AwaitGate, nullptr));
  while (!at_gate) {  // from now on only the wait itself makes the other thread sleep
    std::this_thread::yield();
  }
  std::atomic<pid_t> waiter{0};
  std::thread thread([&] {
    waiter = gettid();
    CHECK_OK(ferry_queue_wait(stream.queue));
  });
  while (waiter == 0 || !Sleeps(waiter)) {
    std::this_thread::yield();
  }
  CHECK_OK(ferry_enqueue_start(stream.queue, request));
  CHECK_OK(ferry_enqueue_wait(stream.queue, request));
  gate = 1;
  thread.join();
  CHECK_OK(ferry_barrier());
  CHECK_REFUSED(ferry_queue_wait(stream.queue), FERRY_ERR_REQUEST, "with tag 15 failed");
  CHECK_OK(ferry_queue_wait(stream.queue));  // told once
  CHECK_OK(ferry_request_free(&request));
  CHECK_OK(ferry_barrier());
  stream.End();
}

// From now on this thread can create none, so that a stream cannot begin its first operation.
// Others still can: gRPC, in which one that fails leaves grpc_shutdown waiting for it for ever.
thread_local bool do_threads_fail = false;
void LetThreadsFail(bool fail) { do_threads_fail = fail; }

// A stream that takes no work ends the pairs whose starts it was given, and leaves nothing to wait
// for. Between nodes the first of a call is refused already: the second pair lives on, and its
// sender would wait for a receive that is never started, so its receiver frees it.
void StreamsThatRefuse() {
  long words[3] = {};
  ferry_request requests[3];
  for (int i = 0; i < 3; ++i) {  // the start of a ready receive takes nothing of a stream in a node
    CHECK_OK(Sends() ? ferry_rsend_init(&words[i], sizeof(long), Partner(), 16, &requests[i])
                     : ferry_recv_init(&words[i], sizeof(long), Partner(), 16, &requests[i]));
  }
  CHECK_OK(ferry_matchall(3, requests));
  ferry_request standard = MakeMatched(&words[2], sizeof(long), 17);
  if (!Sends()) {
    Stream stream;
    LetThreadsFail(true);
    const ferry_request mixed[] = {requests[0], standard};
    CHECK_REFUSED(ferry_enqueue_startall(stream.queue, 2, mixed), FERRY_ERR_SYSTEM, "thread");
    if (ferry_node_of(0) == ferry_node_of(1)) {
      CHECK_OK(ferry_enqueue_startall(stream.queue, 2, &requests[1]));
      CHECK_REFUSED(ferry_enqueue_waitall(stream.queue, 2, &requests[1]), FERRY_ERR_SYSTEM,
                    "thread");
    }
    LetThreadsFail(false);
    CHECK_REFUSED(ferry_enqueue_start(stream.queue, requests[0]), FERRY_ERR_SYSTEM, "has failed");
    stream.End();  // its queue can be freed
    CHECK_OK(ferry_request_free(&standard));
    CHECK_OK(ferry_barrier());
  } else {
    CHECK_OK(ferry_barrier());  // only after the barrier
    Stream stream;
    for (const ferry_request request : {requests[0], standard}) {
      int error = ferry_enqueue_start(stream.queue, request);
      if (error == FERRY_SUCCESS) {
        CHECK_OK(ferry_enqueue_wait(stream.queue, request));
        error = ferry_queue_wait(stream.queue);
        // A send that leaves ahead of its receive may be over before its node knows.
        CHECK_EQ(error == FERRY_SUCCESS || error == FERRY_ERR_REQUEST, true);
      }
    }
    stream.End();
  }
  CHECK_OK(ferry_barrier());
  for (ferry_request& request : requests) {
    CHECK_OK(ferry_request_free(&request));
  }
  if (Sends()) {
    CHECK_OK(ferry_request_free(&standard));
  }
}

// A stream goes in the middle of long messages, which both streams move: when its rank learns that
// it has gone, and the other rank that they have failed, no stream writes to their memory any more.
void LongMessagesThatEnd(bool sender_goes) {
  constexpr size_t kBytes = 4 << 20;
  void* memory = nullptr;
  CHECK_OK(ferry_alloc(kBytes, FERRY_MEMORY_HOST, 0, &memory));
  auto* const bytes = static_cast<unsigned char*>(memory);
  std::memset(bytes, Sends() ? 1 : 0, kBytes);
  ferry_request request = MakeMatched(bytes, kBytes, 19);
  CHECK_OK(ferry_barrier());
  Stream stream;
  constexpr int kRounds = 40;
  int error = FERRY_SUCCESS;
  int started = 0;
  for (; started < kRounds && error == FERRY_SUCCESS; ++started) {
    error = ferry_enqueue_start(stream.queue, request);
    if (error == FERRY_SUCCESS) {
      error = ferry_enqueue_wait(stream.queue, request);
    }
  }
  if (Sends() == sender_goes) {
    CHECK_EQ(error, FERRY_SUCCESS);
    CHECK_OK(ferry_stream_destroy(&stream.stream));
    CHECK_OK(ferry_queue_free(&stream.queue));
  } else {
    // Unless it has heard before.
    const int ended = error == FERRY_SUCCESS ? ferry_queue_wait(stream.queue) : error;
    CHECK_EQ(ended == FERRY_ERR_REQUEST || ended == FERRY_SUCCESS, true);
    if (ended == FERRY_SUCCESS) {
      CHECK_EQ(started, kRounds);
    }
    (void)ferry_queue_wait(stream.queue);
    stream.End();
  }
  if (!Sends()) {
    std::memset(bytes, 0xee, kBytes);
  }
  CHECK_OK(ferry_barrier());
  // Messages on their way from another node may still arrive.
  if (!Sends() && ferry_node_of(0) == ferry_node_of(1)) {
    for (size_t i = 0; i < kBytes; ++i) {
      CHECK_EQ(bytes[i], 0xee);
    }
  }
  CHECK_OK(ferry_request_free(&request));
  CHECK_OK(ferry_free(memory));
  CHECK_OK(ferry_barrier());
}

// The request's round ends on one queue, and the next begins on another, before a wait for the
// first queue.
void FromQueueToQueue() {
  std::vector<char> message(100'000);
  ferry_request request = MakeMatched(message.data(), message.size(), 18);
  Stream one;
  Stream two;
  CHECK_OK(ferry_enqueue_start(one.queue, request));
  CHECK_OK(ferry_enqueue_wait(one.queue, request));
  CHECK_OK(ferry_stream_synchronize(one.stream));
  CHECK_OK(ferry_barrier());
  if (!Sends()) {
    CHECK_OK(ferry_request_free(&request));
    CHECK_OK(ferry_barrier());
  } else {
    const int error = ferry_enqueue_start(two.queue, request);
    if (error == FERRY_SUCCESS) {
      CHECK_OK(ferry_enqueue_wait(two.queue, request));
      CHECK_OK(ferry_queue_wait(one.queue));  // has done all its own operations
      CHECK_EQ(ferry_queue_wait(two.queue), FERRY_ERR_REQUEST);
    } else {
      CHECK_EQ(error, FERRY_ERR_REQUEST);
    }
    CHECK_OK(ferry_request_free(&request));
    CHECK_OK(ferry_barrier());
  }
  one.End();
  two.End();
}

}  // namespace

// In place of the C library's, in the whole process.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) {
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return do_threads_fail ? EAGAIN : real(thread, attributes, run, argument);
}

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_MULTIPLE, nullptr));
  CHECK_EQ(ferry_size(), 2);
  PartnersThatGo();
  StreamsThatGo();
  FailuresAreToldToWhoComesLater();
  StreamsThatRefuse();
  FromQueueToQueue();
  for (int i = 0; i < 4; ++i) {
    LongMessagesThatEnd(i % 2 == 0);
  }
  CHECK_OK(ferry_finalize());
  return 0;
}
