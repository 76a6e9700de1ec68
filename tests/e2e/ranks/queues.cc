// The promises and the refusals of queues and matching: two ranks, on one node or two.
// queue_ends.cc tests how pairs end.
#include <vector>

#include "ferry/ferry.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/check.h"
#include "tests/e2e/ranks/queue.h"

namespace {

using namespace ferry::ranks;  // NOLINT: the helpers of this folder

// Moves one message by streams.
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

// Packets of a match are told apart from other messages with the same envelope.
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
    CHECK_OK(ferry_cancel(match));  // a match cannot be cancelled
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
  CHECK_OK(ferry_match(request));  // matching again is no error

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

// Requests with one envelope pair in the order of their creation, however they are offered: all at
// once, backwards, one by one.
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

void RulesOfQueues() {
  Stream one;
  Stream two;
  long words[2] = {};
  ferry_request matched = MakeMatched(&words[0], sizeof(long), 9);
  ferry_request unmatched = Make(&words[1], sizeof(long), 10);

  // If one is unmatched, nothing of the call is enqueued.
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

  // After a start only its wait is allowed, on the same queue.
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
  CHECK_REFUSED(ferry_queue_free(&one.queue), FERRY_ERR_REQUEST, "no wait yet");
  CHECK_OK(ferry_enqueue_wait(one.queue, matched));
  CHECK_REFUSED(ferry_enqueue_wait(one.queue, matched), FERRY_ERR_REQUEST, "no start of it");
  CHECK_OK(ferry_queue_wait(one.queue));
  CHECK_EQ(words[0], 44);

  // After the wait the rank may use it again, or another queue.
  CHECK_OK(ferry_start(matched));
  CHECK_REFUSED(ferry_enqueue_start(one.queue, matched), FERRY_ERR_REQUEST, "started it itself");
  CHECK_OK(ferry_wait(&matched, nullptr));
  Exchange(two, matched, &words[0], 55);
  CHECK_OK(ferry_request_free(&matched));
  CHECK_OK(ferry_request_free(&unmatched));
  one.End();
  two.End();
}

// A start runs when the stream gets there, not before; a stream that goes takes its starts along.
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

// A short message to another node does not wait for its receive: its stream, and its rank, go on
// before the other side has started. Inside the node both ends meet.
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
  if (Sends()) {  // and its request may be freed
    CHECK_OK(ferry_request_free(&request));
  }
  CHECK_OK(ferry_barrier());  // only after the barrier
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

void WrongArguments() {
  ferry_queue queue = FERRY_QUEUE_NULL;
  ferry_stream stream = nullptr;
  CHECK_REFUSED(ferry_stream_create(99, &stream), FERRY_ERR_ARGUMENT, "99");
  // No backend has streams of both.
  const int cuda = ferry_queue_init(FERRY_QUEUE_CUDA, &stream, &queue);
  const int hip = ferry_queue_init(FERRY_QUEUE_HIP, &stream, &queue);
  CHECK_EQ(cuda == FERRY_ERR_UNSUPPORTED || hip == FERRY_ERR_UNSUPPORTED, true);
  CHECK_EQ(cuda == FERRY_ERR_UNSUPPORTED || cuda == FERRY_ERR_ARGUMENT, true);
  CHECK_EQ(hip == FERRY_ERR_UNSUPPORTED || hip == FERRY_ERR_ARGUMENT, true);
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
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  CHECK_EQ(ferry_size(), 2);
  WhatCannotBeMatched();
  MatchedMeetsNothingElse();
  InOrderOfCreation();
  SizesThatDoNotFit();
  RulesOfQueues();
  StreamsDecide();
  ShortSendsRunAhead();
  WrongArguments();
  WithItself();
  CHECK_OK(ferry_finalize());
  return 0;
}
