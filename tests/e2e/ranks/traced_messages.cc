// Messages of ferry.h whose timeline is known (tests/mpi/e2e/trace_test.cc): each has a size of its
// own among those of its sender, receiver and tag. As tests/mpi/ranks/traced.c with "messages".
#include <cstddef>
#include <vector>

#include "ferry/ferry.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/check.h"
#include "tests/e2e/ranks/queue.h"

namespace {

using namespace ferry::ranks;  // NOLINT: the helpers of this folder

constexpr int kFirstTag = 1000;
constexpr int kEach = 12;
constexpr size_t kBuffer = 1 << 21;

int Next() { return (ferry_rank() + 1) % ferry_size(); }
int Before() { return (ferry_rank() + ferry_size() - 1) % ferry_size(); }

// Of the i-th message of a tag: empty, short, as long as a cell, and long ones.
size_t BytesOf(int tag, int i) {
  constexpr size_t kBases[] = {0, 100, 3000, 70'000, 300'000, 1'100'000};
  return kBases[(tag + i) % 6] + static_cast<size_t>(i);
}

std::vector<char> out(kBuffer);
std::vector<std::vector<char>> in(kEach, std::vector<char>(kBuffer));

// Of the receives, which were posted first, one after the other is found by ferry_waitany.
void Nonblocking(int tag) {
  ferry_request receives[kEach];
  ferry_request sends[kEach];
  for (int i = 0; i < kEach; ++i) {
    CHECK_OK(ferry_irecv(in[i].data(), kBuffer, Before(), kFirstTag + tag, &receives[i]));
  }
  CHECK_OK(ferry_barrier());
  for (int i = 0; i < kEach; ++i) {
    CHECK_OK(ferry_isend(out.data(), BytesOf(tag, i), Next(), kFirstTag + tag, &sends[i]));
  }
  for (int i = 0; i < kEach; ++i) {
    int index = -1;
    CHECK_OK(ferry_waitany(kEach, receives, &index, nullptr));
    CHECK_EQ(index >= 0, true);
  }
  CHECK_OK(ferry_waitall(kEach, sends, nullptr));
}

// Receives of any source and tag.
void Blocking(int tag) {
  for (int i = 0; i < kEach; ++i) {
    ferry_request send = FERRY_REQUEST_NULL;
    CHECK_OK(ferry_isend(out.data(), BytesOf(tag, i), Next(), kFirstTag + tag, &send));
    CHECK_OK(ferry_recv(in[0].data(), kBuffer, FERRY_ANY_SOURCE, FERRY_ANY_TAG, nullptr));
    CHECK_OK(ferry_wait(&send, nullptr));
  }
}

// Short ones by ferry_send, which have come before they are looked for.
void Unexpected(int tag) {
  for (int i = 0; i < kEach; ++i) {
    CHECK_OK(ferry_send(out.data(), BytesOf(tag, i) % 3000, Next(), kFirstTag + tag));
  }
  CHECK_OK(ferry_barrier());
  for (int i = 0; i < kEach; ++i) {
    CHECK_OK(ferry_probe(Before(), kFirstTag + tag, nullptr));
    ferry_request receive = FERRY_REQUEST_NULL;
    CHECK_OK(ferry_irecv(in[0].data(), kBuffer, Before(), kFirstTag + tag, &receive));
    int is_done = 0;
    while (is_done == 0) {
      CHECK_OK(ferry_test(&receive, &is_done, nullptr));
    }
  }
}

void Persistent(int tag) {
  ferry_request both[2];
  CHECK_OK(ferry_recv_init(in[0].data(), kBuffer, Before(), kFirstTag + tag, &both[0]));
  CHECK_OK(ferry_send_init(out.data(), BytesOf(tag, 4), Next(), kFirstTag + tag, &both[1]));
  for (int i = 0; i < kEach; ++i) {
    CHECK_OK(ferry_start(both[0]));
    CHECK_OK(ferry_start(both[1]));
    CHECK_OK(ferry_waitall(2, both, nullptr));
  }
  CHECK_OK(ferry_request_free(&both[0]));
  CHECK_OK(ferry_request_free(&both[1]));
}

// On a queue, whose operations have a track of their own.
void ByQueue() {
  ferry_request both[2];
  CHECK_OK(ferry_recv_init(in[0].data(), 64, Before(), 7, &both[0]));
  CHECK_OK(ferry_send_init(out.data(), 64, Next(), 7, &both[1]));
  CHECK_OK(ferry_matchall(2, both));
  Stream stream;
  CHECK_OK(ferry_enqueue_startall(stream.queue, 2, both));
  CHECK_OK(ferry_enqueue_waitall(stream.queue, 2, both));
  CHECK_OK(ferry_queue_wait(stream.queue));
  CHECK_OK(ferry_request_free(&both[0]));
  CHECK_OK(ferry_request_free(&both[1]));
  stream.End();
}

}  // namespace

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  Nonblocking(0);
  CHECK_OK(ferry_barrier());
  Blocking(1);
  CHECK_OK(ferry_barrier());
  Unexpected(2);
  CHECK_OK(ferry_barrier());
  Persistent(3);
  ByQueue();
  CHECK_OK(ferry_finalize());
  return 0;
}
