// What queues and matching promise, and refuse: two ranks, on one node or two.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ferry/ferry.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/check.h"

namespace {

int Partner() { return 1 - ferry_rank(); }
bool Sends() { return ferry_rank() == 0; }

// It failed with that, and says this.
void CheckRefused(int got, int wanted, const char* text, int line) {
  const bool says = std::string_view(ferry_last_error()).find(text) != std::string_view::npos;
  if (got != wanted || !says) {
    std::fprintf(stderr, "rank %d: line %d: %d instead of %d, or no \"%s\" in \"%s\"\n",
                 ferry_rank(), line, got, wanted, text, ferry_last_error());
    std::exit(1);
  }
}
#define CHECK_REFUSED(call, wanted, text) CheckRefused(call, wanted, text, __LINE__)

struct Stream {
  ferry_stream stream = nullptr;
  ferry_queue queue = FERRY_QUEUE_NULL;

  Stream() {
    CHECK_OK(ferry_stream_create(0, &stream));
    CHECK_OK(ferry_queue_init(FERRY_QUEUE_FERRY, &stream, &queue));
  }
  void End() {
    CHECK_OK(ferry_queue_wait(queue));
    CHECK_OK(ferry_queue_free(&queue));
    CHECK_OK(ferry_stream_destroy(&stream));
  }
};

// A send from rank 0 to rank 1, or its receive; matched unless `offered` only.
ferry_request Make(void* buffer, size_t size, int tag) {
  ferry_request request = FERRY_REQUEST_NULL;
  CHECK_OK(Sends() ? ferry_send_init(buffer, size, Partner(), tag, &request)
                   : ferry_recv_init(buffer, size, Partner(), tag, &request));
  return request;
}

ferry_request MakeMatched(void* buffer, size_t size, int tag) {
  const ferry_request request = Make(buffer, size, tag);
  CHECK_OK(ferry_match(request));
  return request;
}

// One message by streams.
void Exchange(const Stream& stream, ferry_request request, long* word, long value) {
  *word = Sends() ? value : 0;
  CHECK_OK(ferry_enqueue_start(stream.queue, request));
  CHECK_OK(ferry_enqueue_wait(stream.queue, request));
  CHECK_OK(ferry_queue_wait(stream.queue));
  CHECK_EQ(*word, value);
}

void WhatCannotBeMatched() {
  long word = 0;
  ferry_request request = FERRY_REQUEST_NULL;
  CHECK_OK(ferry_irecv(&word, sizeof(word), Partner(), 1, &request));
  CHECK_REFUSED(ferry_match(request), FERRY_ERR_REQUEST, "only persistent requests");
  int matched = 1;
  CHECK_REFUSED(ferry_is_matched(request, &matched), FERRY_ERR_REQUEST, "only persistent");
  CHECK_OK(ferry_send(&word, sizeof(word), Partner(), 1));
  CHECK_OK(ferry_wait(&request, nullptr));
  CHECK_REFUSED(ferry_match(request), FERRY_ERR_REQUEST, "names no request");

  CHECK_OK(ferry_recv_init(&word, sizeof(word), FERRY_ANY_SOURCE, 1, &request));
  CHECK_REFUSED(ferry_match(request), FERRY_ERR_REQUEST, "no partner for life");
  CHECK_OK(ferry_request_free(&request));
  CHECK_OK(ferry_recv_init(&word, sizeof(word), Partner(), FERRY_ANY_TAG, &request));
  CHECK_REFUSED(ferry_match(request), FERRY_ERR_REQUEST, "no partner for life");
  CHECK_OK(ferry_request_free(&request));

  CHECK_OK(ferry_recv_init(&word, sizeof(word), Partner(), 2, &request));
  CHECK_OK(ferry_start(request));
  CHECK_REFUSED(ferry_match(request), FERRY_ERR_REQUEST, "is active");
  CHECK_OK(ferry_send(&word, sizeof(word), Partner(), 2));
  CHECK_OK(ferry_wait(&request, nullptr));
  CHECK_OK(ferry_request_free(&request));
}

// What a match needs is told apart from what others send with the same envelope.
void MatchedMeetsNothingElse() {
  long word = 0;
  long other = 0;
  ferry_request request = Make(&word, sizeof(word), 3);
  int matched = 1;
  CHECK_OK(ferry_is_matched(request, &matched));
  CHECK_EQ(matched, 0);
  ferry_request match = FERRY_REQUEST_NULL;
  if (Sends()) {  // the other one has not offered its own before this message
    CHECK_OK(ferry_imatch(request, &match));
    CHECK_OK(ferry_is_matched(request, &matched));
    CHECK_EQ(matched, 0);
    CHECK_OK(ferry_cancel(match));  // cannot be
    int done = 1;
    CHECK_OK(ferry_test(&match, &done, nullptr));
    CHECK_EQ(done, 0);
  }
  CHECK_OK(ferry_barrier());
  if (!Sends()) {
    CHECK_OK(ferry_imatch(request, &match));
  }
  CHECK_OK(ferry_wait(&match, nullptr));
  CHECK_EQ(match, FERRY_REQUEST_NULL);
  CHECK_OK(ferry_is_matched(request, &matched));
  CHECK_EQ(matched, 1);
  CHECK_OK(ferry_match(request));  // again: no error

  if (Sends()) {
    word = 11;
    other = 22;
    CHECK_OK(ferry_send(&other, sizeof(other), Partner(), 3));
    CHECK_OK(ferry_start(request));
    CHECK_OK(ferry_wait(&request, nullptr));
  } else {
    CHECK_OK(ferry_start(request));
    ferry_status status;
    CHECK_OK(ferry_wait(&request, &status));
    CHECK_EQ(word, 11);
    CHECK_EQ(status.source, Partner());
    CHECK_EQ(status.tag, 3);
    CHECK_EQ(status.size_bytes, sizeof(word));
    CHECK_OK(ferry_recv(&other, sizeof(other), Partner(), 3, nullptr));
    CHECK_EQ(other, 22);
  }
  CHECK_OK(ferry_request_free(&request));
}

// Requests with one envelope pair in the order in which they were made, however they are offered:
// all at once, backwards, one by one.
void InOrderOfCreation() {
  constexpr int kRequests = 6;
  long words[kRequests] = {};
  std::vector<ferry_request> requests;
  for (int i = 0; i < kRequests; ++i) {
    words[i] = Sends() ? 100 + i : 0;
    requests.push_back(Make(&words[i], sizeof(long), 4));
  }
  if (Sends()) {
    CHECK_OK(ferry_matchall(requests.size(), requests.data()));
  } else {
    std::vector<ferry_request> matches(kRequests);
    for (int i = kRequests - 1; i >= 0; --i) {
      CHECK_OK(ferry_imatch(requests[i], &matches[i]));
    }
    CHECK_OK(ferry_waitall(matches.size(), matches.data(), nullptr));
  }
  for (const ferry_request request : requests) {
    CHECK_OK(ferry_start(request));
  }
  CHECK_OK(ferry_waitall(requests.size(), requests.data(), nullptr));
  for (int i = 0; i < kRequests; ++i) {
    CHECK_EQ(words[i], 100 + i);
    CHECK_OK(ferry_request_free(&requests[i]));
  }
}

void SizesThatDoNotFit() {
  long words[2] = {1, 2};
  ferry_request request = Make(words, Sends() ? sizeof(words) : sizeof(long), 5);
  CHECK_REFUSED(ferry_match(request), FERRY_ERR_TRUNCATED, "longer than the receive buffer");
  CHECK_REFUSED(ferry_match(request), FERRY_ERR_TRUNCATED, "its match has failed");
  CHECK_OK(ferry_request_free(&request));

  words[1] = 7;
  request = Make(words, Sends() ? sizeof(long) : sizeof(words), 6);
  CHECK_OK(ferry_match(request));
  words[0] = Sends() ? 33 : 0;
  CHECK_OK(ferry_start(request));
  ferry_status status;
  CHECK_OK(ferry_wait(&request, &status));
  CHECK_EQ(words[0], 33);
  CHECK_EQ(words[1], 7);
  CHECK_EQ(status.size_bytes, sizeof(long));
  CHECK_OK(ferry_request_free(&request));
}

void PartnersThatGo() {
  long word = 0;
  ferry_request request = Make(&word, sizeof(word), 7);
  if (Sends()) {  // offers, and takes it back
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
    // Its start may come before the news, its wait then ends with it.
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

void RulesOfQueues() {
  Stream one;
  Stream two;
  long words[2] = {};
  ferry_request matched = MakeMatched(&words[0], sizeof(long), 9);
  ferry_request unmatched = Make(&words[1], sizeof(long), 10);

  // Unmatched: nothing of the call is enqueued.
  CHECK_REFUSED(ferry_enqueue_start(one.queue, unmatched), FERRY_ERR_REQUEST, "is not matched");
  const ferry_request both[] = {matched, unmatched};
  CHECK_REFUSED(ferry_enqueue_startall(one.queue, 2, both), FERRY_ERR_REQUEST, "request 1 of 2");
  const ferry_request twice[] = {matched, matched};
  CHECK_REFUSED(ferry_enqueue_startall(one.queue, 2, twice), FERRY_ERR_REQUEST, "twice");
  CHECK_REFUSED(ferry_enqueue_wait(one.queue, matched), FERRY_ERR_REQUEST, "no start of it");
  CHECK_REFUSED(ferry_enqueue_start(one.queue, 12345), FERRY_ERR_REQUEST, "names no request");
  CHECK_REFUSED(ferry_enqueue_start(99, matched), FERRY_ERR_ARGUMENT, "names no queue");
  CHECK_OK(ferry_enqueue_startall(one.queue, 0, nullptr));
  CHECK_REFUSED(ferry_enqueue_startall(one.queue, 1, nullptr), FERRY_ERR_ARGUMENT, "null");

  // Started: nothing but its wait, on the same queue.
  words[0] = Sends() ? 44 : 0;
  CHECK_OK(ferry_enqueue_start(one.queue, matched));
  CHECK_REFUSED(ferry_enqueue_start(one.queue, matched), FERRY_ERR_REQUEST, "has no wait yet");
  CHECK_REFUSED(ferry_enqueue_wait(two.queue, matched), FERRY_ERR_REQUEST, "another queue");
  const ferry_request good_and_bad[] = {matched, unmatched};
  CHECK_REFUSED(ferry_enqueue_waitall(one.queue, 2, good_and_bad), FERRY_ERR_REQUEST, "request 1");
  ferry_request handle = matched;
  int done = 0;
  CHECK_REFUSED(ferry_start(matched), FERRY_ERR_REQUEST, "belongs to a queue");
  CHECK_REFUSED(ferry_wait(&handle, nullptr), FERRY_ERR_REQUEST, "belongs to a queue");
  CHECK_REFUSED(ferry_test(&handle, &done, nullptr), FERRY_ERR_REQUEST, "belongs to a queue");
  CHECK_REFUSED(ferry_waitall(1, &handle, nullptr), FERRY_ERR_REQUEST, "belongs to a queue");
  CHECK_REFUSED(ferry_cancel(matched), FERRY_ERR_REQUEST, "belongs to a queue");
  CHECK_REFUSED(ferry_request_free(&handle), FERRY_ERR_REQUEST, "belongs to a queue");
  CHECK_REFUSED(ferry_queue_free(&one.queue), FERRY_ERR_REQUEST, "have no wait yet");
  CHECK_OK(ferry_enqueue_wait(one.queue, matched));
  CHECK_REFUSED(ferry_enqueue_wait(one.queue, matched), FERRY_ERR_REQUEST, "no start of it");
  CHECK_OK(ferry_queue_wait(one.queue));
  CHECK_EQ(words[0], 44);

  // Over: the rank's again, or another queue's.
  CHECK_OK(ferry_start(matched));
  CHECK_REFUSED(ferry_enqueue_start(one.queue, matched), FERRY_ERR_REQUEST, "started it itself");
  CHECK_OK(ferry_wait(&matched, nullptr));
  Exchange(two, matched, &words[0], 55);
  CHECK_OK(ferry_request_free(&matched));
  CHECK_OK(ferry_request_free(&unmatched));
  one.End();
  two.End();
}

std::atomic<int> gate{0};
std::atomic<bool> at_gate{false};
void AwaitGate(void* /*argument*/) {
  at_gate = true;
  while (gate.load() == 0) {
  }
}

// A start runs when the stream gets there, not before; a stream that goes takes it along.
void StreamsDecide() {
  Stream stream;
  long word = Sends() ? 66 : 0;
  ferry_request request = MakeMatched(&word, sizeof(word), 11);
  gate = 0;
  if (Sends()) {
    CHECK_OK(ferry_stream_launch(stream.stream, AwaitGate, nullptr));
  }
  CHECK_OK(ferry_enqueue_start(stream.queue, request));
  CHECK_OK(ferry_enqueue_wait(stream.queue, request));
  CHECK_OK(ferry_barrier());
  if (Sends()) {
    CHECK_REFUSED(ferry_queue_free(&stream.queue), FERRY_ERR_REQUEST, "not done all");
    gate = 1;
  }
  CHECK_OK(ferry_queue_wait(stream.queue));
  CHECK_EQ(word, 66);

  CHECK_OK(ferry_request_free(&request));
  stream.End();
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
    CHECK_OK(ferry_enqueue_wait(stream.queue, blocker));  // nobody ever starts its send
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

// A short message to another node does not wait for its receive: its stream, and its rank, go on
// before the other side has started. Inside the node both meet.
void ShortSendsRunAhead() {
  if (ferry_node_of(0) == ferry_node_of(1)) {
    return;
  }
  long word = Sends() ? 99 : 0;
  ferry_request request = MakeMatched(&word, sizeof(word), 14);
  Stream stream;
  if (Sends()) {
    CHECK_OK(ferry_enqueue_start(stream.queue, request));
    CHECK_OK(ferry_enqueue_wait(stream.queue, request));
    CHECK_OK(ferry_queue_wait(stream.queue));
  }
  if (Sends()) {  // and its request may go
    CHECK_OK(ferry_request_free(&request));
  }
  CHECK_OK(ferry_barrier());  // only now
  if (!Sends()) {
    CHECK_OK(ferry_enqueue_start(stream.queue, request));
    CHECK_OK(ferry_enqueue_wait(stream.queue, request));
    CHECK_OK(ferry_queue_wait(stream.queue));
    CHECK_EQ(word, 99);
    CHECK_OK(ferry_request_free(&request));
  }
  CHECK_OK(ferry_barrier());
  stream.End();
}

// Whether that thread of this process sleeps.
bool Sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t end = text.rfind(") ");
  return end != std::string::npos && text[end + 2] == 'S';
}

// What is enqueued while another thread waits for the queue is for the next wait to tell.
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
  while (!at_gate) {  // then nothing but the wait itself makes the other thread sleep
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

// From now on no thread can be made: a stream cannot begin its first operation.
void LetThreadsFail(bool fail) {
  static pthread_attr_t usual;
  static const int known = pthread_getattr_default_np(&usual);
  CHECK_EQ(known, 0);
  pthread_attr_t attributes = usual;
  if (fail) {
    CHECK_EQ(pthread_attr_setstacksize(&attributes, size_t{1} << 50), 0);
  }
  CHECK_EQ(pthread_setattr_default_np(&attributes), 0);
}

// A stream that takes no work ends the pairs of the call, and leaves nothing to be waited for.
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
    CHECK_OK(ferry_barrier());
  } else {
    CHECK_OK(ferry_barrier());  // only then
    Stream stream;
    for (const ferry_request request : {requests[0], standard}) {
      int error = ferry_enqueue_start(stream.queue, request);
      if (error == FERRY_SUCCESS) {
        CHECK_OK(ferry_enqueue_wait(stream.queue, request));
        error = ferry_queue_wait(stream.queue);
        // One that leaves ahead of its receive may be over before its node knows.
        CHECK_EQ(error == FERRY_SUCCESS || error == FERRY_ERR_REQUEST, true);
      }
    }
    stream.End();
  }
  CHECK_OK(ferry_barrier());
  for (ferry_request& request : requests) {
    CHECK_OK(ferry_request_free(&request));
  }
  CHECK_OK(ferry_request_free(&standard));
}

// A stream goes in the middle of long messages, which both streams move: when its rank is told that
// it has gone, and the other one that they have failed, nobody writes to their memory any more.
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
  // From another node, what is on its way may still arrive.
  if (!Sends() && ferry_node_of(0) == ferry_node_of(1)) {
    for (size_t i = 0; i < kBytes; ++i) {
      CHECK_EQ(bytes[i], 0xee);
    }
  }
  CHECK_OK(ferry_request_free(&request));
  CHECK_OK(ferry_free(memory));
  CHECK_OK(ferry_barrier());
}

// Over on one queue, and begun on another, before the first was waited for.
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
      CHECK_OK(ferry_queue_wait(one.queue));  // has done all of its own
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

void WrongArguments() {
  ferry_queue queue = FERRY_QUEUE_NULL;
  ferry_stream stream = nullptr;
  CHECK_REFUSED(ferry_stream_create(99, &stream), FERRY_ERR_ARGUMENT, "99");
  CHECK_REFUSED(ferry_queue_init(FERRY_QUEUE_CUDA, &stream, &queue), FERRY_ERR_UNSUPPORTED, "cuda");
  CHECK_REFUSED(ferry_queue_init(FERRY_QUEUE_FERRY, nullptr, &queue), FERRY_ERR_ARGUMENT, "null");
  CHECK_REFUSED(ferry_queue_init(FERRY_QUEUE_FERRY, &stream, &queue), FERRY_ERR_ARGUMENT,
                "no stream of ferry_stream_create");
  CHECK_REFUSED(ferry_queue_init(static_cast<ferry_queue_type>(9), &stream, &queue),
                FERRY_ERR_ARGUMENT, "no queue type 9");
  CHECK_REFUSED(ferry_queue_free(&queue), FERRY_ERR_ARGUMENT, "names no queue");
  CHECK_REFUSED(ferry_queue_wait(7), FERRY_ERR_ARGUMENT, "names no queue");
  CHECK_REFUSED(ferry_stream_synchronize(nullptr), FERRY_ERR_ARGUMENT, "no stream");
  CHECK_REFUSED(ferry_matchall(2, nullptr), FERRY_ERR_ARGUMENT, "null");
  CHECK_OK(ferry_matchall(0, nullptr));
}

// A rank is its own partner.
void WithItself() {
  long going = 77;
  long coming = 0;
  ferry_request requests[2];
  CHECK_OK(ferry_send_init(&going, sizeof(going), ferry_rank(), 1, &requests[0]));
  CHECK_OK(ferry_recv_init(&coming, sizeof(coming), ferry_rank(), 1, &requests[1]));
  CHECK_OK(ferry_matchall(2, requests));
  CHECK_OK(ferry_start(requests[0]));
  CHECK_OK(ferry_start(requests[1]));
  CHECK_OK(ferry_waitall(2, requests, nullptr));
  CHECK_EQ(coming, 77);
  Stream stream;
  going = 88;
  CHECK_OK(ferry_enqueue_startall(stream.queue, 2, requests));
  CHECK_OK(ferry_enqueue_waitall(stream.queue, 2, requests));
  CHECK_OK(ferry_queue_wait(stream.queue));
  CHECK_EQ(coming, 88);
  CHECK_OK(ferry_request_free(&requests[0]));
  CHECK_OK(ferry_request_free(&requests[1]));
  stream.End();
}

}  // namespace

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_MULTIPLE, nullptr));
  CHECK_EQ(ferry_size(), 2);
  WhatCannotBeMatched();
  MatchedMeetsNothingElse();
  InOrderOfCreation();
  SizesThatDoNotFit();
  PartnersThatGo();
  RulesOfQueues();
  StreamsDecide();
  StreamsThatGo();
  ShortSendsRunAhead();
  FailuresAreToldToWhoComesLater();
  StreamsThatRefuse();
  FromQueueToQueue();
  for (int i = 0; i < 4; ++i) {
    LongMessagesThatEnd(i % 2 == 0);
  }
  WrongArguments();
  WithItself();
  CHECK_OK(ferry_finalize());
  return 0;
}
