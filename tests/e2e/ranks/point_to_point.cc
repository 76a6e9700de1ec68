// Checks what ferry.h promises about messages, between every pair of ranks of the job: run it under
// ferryrun with any number of ranks and nodes. Prints "point_to_point: ok" on rank 0.
#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"

namespace {

using ferry::ranks::Fill;
using ferry::ranks::Left;
using ferry::ranks::Right;

constexpr size_t kSizes[] = {
    0,         1,    8,    31,    32,     33,     100,        4096,
    8191,      8192, 8193, 65536, 131072, 131073, (1U << 20), (1U << 20) + 7,
    (4U << 20)};

struct Place {
  const char* name;
  bool own;  // plain private memory
  ferry_memory_kind kind;
};
constexpr Place kPlaces[] = {{"private", true, FERRY_MEMORY_HOST},
                             {"heap", false, FERRY_MEMORY_HOST},
                             {"pinned", false, FERRY_MEMORY_PINNED},
                             {"device", false, FERRY_MEMORY_DEVICE}};

uint8_t* Allocate(const Place& place, size_t size_bytes) {
  void* memory = nullptr;
  if (place.own) {
    memory = std::malloc(size_bytes + 1);
  } else {
    CHECK_OK(ferry_alloc(size_bytes + 1, place.kind, 0, &memory));
  }
  return static_cast<uint8_t*>(memory);
}

void Release(const Place& place, void* memory) {
  if (place.own) {
    std::free(memory);
  } else {
    CHECK_OK(ferry_free(memory));
  }
}

// Every size, from every kind of memory to every kind, round the ring.
void EverySizeFromEveryMemory() {
  for (const Place& from : kPlaces) {
    for (const Place& to : kPlaces) {
      uint8_t* source = Allocate(from, 4U << 20);
      uint8_t* target = Allocate(to, 4U << 20);
      for (size_t size : kSizes) {
        Fill(source, size, static_cast<uint64_t>(ferry_rank()) * 100 + size);
        std::memset(target, 0xee, size + 1);
        ferry_request requests[2];
        CHECK_OK(ferry_irecv(target, size, Left(), 5, &requests[0]));
        CHECK_OK(ferry_isend(source, size, Right(), 5, &requests[1]));
        ferry_status statuses[2];
        CHECK_OK(ferry_waitall(2, requests, statuses));
        CHECK_EQ(statuses[0].source, Left());
        CHECK_EQ(statuses[0].tag, 5);
        CHECK_EQ(statuses[0].size_bytes, size);
        CHECK_BYTES(target, size, static_cast<uint64_t>(Left()) * 100 + size);
        CHECK_EQ(target[size], 0xee);
      }
      Release(from, source);
      Release(to, target);
    }
  }
}

// Messages of one sender arrive in the order in which they were sent, whatever way each of them
// takes.
void OrderIsKeptAcrossPaths() {
  constexpr int kCount = 400;
  std::vector<std::vector<uint8_t>> sent(kCount);
  std::vector<std::vector<uint8_t>> received(kCount);
  std::vector<ferry_request> requests(2 * kCount);
  for (int i = 0; i < kCount; ++i) {
    const size_t size = kSizes[static_cast<size_t>(i) % 13];
    sent[i].resize(size);
    received[i].resize(size + 1);
    Fill(sent[i].data(), size, static_cast<uint64_t>(i));
    CHECK_OK(ferry_isend(sent[i].data(), size, Right(), 6, &requests[i]));
  }
  for (int i = 0; i < kCount; ++i) {
    CHECK_OK(ferry_irecv(received[i].data(), received[i].size(),
                         i % 3 == 0 ? FERRY_ANY_SOURCE : Left(), i % 5 == 0 ? FERRY_ANY_TAG : 6,
                         &requests[kCount + i]));
  }
  std::vector<ferry_status> statuses(2 * kCount);
  CHECK_OK(ferry_waitall(requests.size(), requests.data(), statuses.data()));
  for (int i = 0; i < kCount; ++i) {
    CHECK_EQ(statuses[kCount + i].size_bytes, sent[i].size());
    CHECK_BYTES(received[i].data(), sent[i].size(), static_cast<uint64_t>(i));
  }
}

void TagsSelect() {
  int values[3] = {10, 20, 30};
  ferry_request requests[3];
  for (int i = 0; i < 3; ++i) {
    CHECK_OK(ferry_isend(&values[i], sizeof(int), Right(), i, &requests[i]));
  }
  for (int tag : {2, 0, 1}) {
    int value = 0;
    ferry_status status;
    CHECK_OK(ferry_recv(&value, sizeof(value), FERRY_ANY_SOURCE, tag, &status));
    CHECK_EQ(value, (tag + 1) * 10);
    CHECK_EQ(status.source, Left());
  }
  CHECK_OK(ferry_waitall(3, requests, nullptr));
}

// MPI_ERR_TRUNCATE: an error, and the buffer holds the first bytes.
void TruncatedMessagesSayso() {
  for (size_t size : {size_t{30}, size_t{5000}, size_t{300000}}) {
    std::vector<uint8_t> sent(size);
    std::vector<uint8_t> received(size, 0xee);
    Fill(sent.data(), size, 7);
    ferry_request send;
    CHECK_OK(ferry_isend(sent.data(), size, Right(), 8, &send));
    ferry_status status;
    CHECK_EQ(ferry_recv(received.data(), size / 2, Left(), 8, &status), FERRY_ERR_TRUNCATED);
    CHECK_EQ(status.error, FERRY_ERR_TRUNCATED);
    CHECK_EQ(status.size_bytes, size / 2);
    CHECK_BYTES(received.data(), size / 2, 7);
    CHECK_EQ(received[size / 2], 0xee);
    CHECK_OK(ferry_wait(&send, nullptr));
  }
}

void PersistentRequestsRunAgain() {
  for (size_t size : {size_t{16}, size_t{6000}, size_t{200000}}) {
    std::vector<uint8_t> sent(size);
    std::vector<uint8_t> received(size);
    ferry_request send;
    ferry_request receive;
    CHECK_OK(ferry_send_init(sent.data(), size, Right(), 9, &send));
    CHECK_OK(ferry_recv_init(received.data(), size, Left(), 9, &receive));
    for (uint64_t round = 0; round < 20; ++round) {
      Fill(sent.data(), size, round);
      CHECK_OK(ferry_start(receive));
      CHECK_OK(ferry_start(send));
      CHECK_EQ(ferry_start(receive) == FERRY_SUCCESS, false);  // active already, or complete
      ferry_status status;
      CHECK_OK(ferry_wait(&send, nullptr));
      CHECK_OK(ferry_wait(&receive, &status));
      CHECK_EQ(status.size_bytes, size);
      CHECK_BYTES(received.data(), size, round);
    }
    CHECK_OK(ferry_request_free(&send));
    CHECK_OK(ferry_request_free(&receive));
    CHECK_EQ(send, FERRY_REQUEST_NULL);
  }
}

void ProbeSeesWithoutTaking() {
  int value = ferry_rank();
  ferry_request send;
  CHECK_OK(ferry_isend(&value, sizeof(value), Right(), 11, &send));
  ferry_status status;
  CHECK_OK(ferry_probe(FERRY_ANY_SOURCE, 11, &status));
  CHECK_EQ(status.source, Left());
  CHECK_EQ(status.size_bytes, sizeof(int));
  int found = 0;
  CHECK_OK(ferry_iprobe(Left(), 11, &found, &status));
  CHECK_EQ(found, 1);
  CHECK_OK(ferry_iprobe(Left(), 12, &found, &status));
  CHECK_EQ(found, 0);
  int got = -1;
  CHECK_OK(ferry_recv(&got, sizeof(got), Left(), 11, nullptr));
  CHECK_EQ(got, Left());
  CHECK_OK(ferry_wait(&send, nullptr));
}

void CancelTakesBackAReceive() {
  int value = 0;
  ferry_request receive;
  CHECK_OK(ferry_irecv(&value, sizeof(value), Left(), 13, &receive));
  CHECK_OK(ferry_cancel(receive));
  ferry_status status;
  CHECK_OK(ferry_wait(&receive, &status));
  CHECK_EQ(status.cancelled, 1);
  CHECK_EQ(receive, FERRY_REQUEST_NULL);
}

void WaitanyAndTestFinishRequests() {
  int values[4] = {};
  ferry_request requests[4];
  for (int i = 0; i < 4; ++i) {
    CHECK_OK(ferry_irecv(&values[i], sizeof(int), Left(), 20 + i, &requests[i]));
  }
  for (int i : {2, 0, 3, 1}) {
    const int value = 100 + i;
    CHECK_OK(ferry_send(&value, sizeof(value), Right(), 20 + i));
  }
  bool seen[4] = {};
  for (int n = 0; n < 3; ++n) {
    int index = -1;
    CHECK_OK(ferry_waitany(4, requests, &index, nullptr));
    CHECK_EQ(seen[index], false);
    CHECK_EQ(values[index], 100 + index);
    CHECK_EQ(requests[index], FERRY_REQUEST_NULL);
    seen[index] = true;
  }
  const auto last = static_cast<size_t>(std::find(seen, seen + 4, false) - seen);
  int done = 0;
  while (done == 0) {
    CHECK_OK(ferry_test(&requests[last], &done, nullptr));
  }
  CHECK_EQ(values[last], 100 + static_cast<int>(last));
  int index = 0;
  CHECK_OK(ferry_waitany(4, requests, &index, nullptr));
  CHECK_EQ(index, -1);
}

void ASelfMessageArrives() {
  for (size_t size : {size_t{4}, size_t{4000}, size_t{500000}}) {
    std::vector<uint8_t> sent(size);
    std::vector<uint8_t> received(size);
    Fill(sent.data(), size, 3);
    ferry_request send;
    CHECK_OK(ferry_isend(sent.data(), size, ferry_rank(), 30, &send));
    CHECK_OK(ferry_recv(received.data(), size, ferry_rank(), 30, nullptr));
    CHECK_OK(ferry_wait(&send, nullptr));
    CHECK_BYTES(received.data(), size, 3);
  }
}

// A middle-sized private buffer is sent to a rank of the node at once, through a heap block; where
// all blocks are under way, it waits for its receive. Each round needs all the blocks again.
void PrivateBuffersGoThroughHeapBlocks() {
  if (ferry_node_of(Right()) != ferry_node_of(ferry_rank()) ||
      ferry_node_of(Left()) != ferry_node_of(ferry_rank())) {
    return;
  }
  constexpr size_t kSize = 64 << 10;
  constexpr int kAtOnce = 60;  // blocking sends without a receive
  constexpr int kCount = 200;
  std::vector<uint8_t> sent(kSize);
  std::vector<uint8_t> later((kCount - kAtOnce) * kSize);
  std::vector<uint8_t> received(kSize);
  std::vector<ferry_request> requests(kCount - kAtOnce);
  for (int round = 0; round < 3; ++round) {
    const auto name = [round](int i) { return static_cast<uint64_t>(1000 * round + i); };
    for (int i = 0; i < kAtOnce; ++i) {
      Fill(sent.data(), kSize, name(i));
      CHECK_OK(ferry_send(sent.data(), kSize, Right(), 35));
    }
    for (int i = kAtOnce; i < kCount; ++i) {
      uint8_t* const buffer = later.data() + (i - kAtOnce) * kSize;
      Fill(buffer, kSize, name(i));
      CHECK_OK(ferry_isend(buffer, kSize, Right(), 35, &requests[i - kAtOnce]));
    }
    for (int i = 0; i < kCount; ++i) {
      CHECK_OK(ferry_recv(received.data(), kSize, Left(), 35, nullptr));
      CHECK_BYTES(received.data(), kSize, name(i));
    }
    CHECK_OK(ferry_waitall(requests.size(), requests.data(), nullptr));
    CHECK_OK(ferry_barrier());
  }
}

// More messages than any lane, cell or credit can hold; the receiver wants the last one first.
void ManyUnexpectedMessagesDoNotBlock() {
  constexpr int kCount = 5000;
  std::vector<ferry_request> requests;
  std::vector<uint8_t> payload(2000, 0x5a);
  for (int i = 0; i < kCount; ++i) {
    ferry_request request;
    CHECK_OK(ferry_isend(payload.data(), i % 2 == 0 ? 8 : payload.size(), Right(), 40, &request));
    requests.push_back(request);
  }
  const int last = 1;
  ferry_request request;
  CHECK_OK(ferry_isend(&last, sizeof(last), Right(), 41, &request));
  requests.push_back(request);
  int got = 0;
  CHECK_OK(ferry_recv(&got, sizeof(got), Left(), 41, nullptr));
  CHECK_EQ(got, 1);
  std::vector<uint8_t> received(payload.size());
  for (int i = 0; i < kCount; ++i) {
    ferry_status status;
    CHECK_OK(ferry_recv(received.data(), received.size(), Left(), 40, &status));
    CHECK_EQ(status.size_bytes, i % 2 == 0 ? 8 : payload.size());
  }
  CHECK_OK(ferry_waitall(requests.size(), requests.data(), nullptr));
}

// FERRY_THREAD_MULTIPLE: four threads of each rank talk to their counterparts at the same time.
void ThreadsTalkAtTheSameTime() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        const size_t size = kSizes[static_cast<size_t>(i) % 13];
        std::vector<uint8_t> sent(size);
        std::vector<uint8_t> received(size);
        const auto message = static_cast<uint64_t>(t * 1000 + i);
        Fill(sent.data(), size, message);
        ferry_request requests[2];
        CHECK_OK(ferry_irecv(received.data(), size, Left(), 60 + t, &requests[0]));
        CHECK_OK(ferry_isend(sent.data(), size, Right(), 60 + t, &requests[1]));
        CHECK_OK(ferry_waitall(2, requests, nullptr));
        CHECK_BYTES(received.data(), size, message);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool hidden = argc > 1 && std::string_view(argv[1]) == "--hidden";
  if (hidden) {
    prctl(PR_SET_DUMPABLE, 0);  // no other process may read or write this one's memory
  }
  int provided = -1;
  CHECK_OK(ferry_init(FERRY_THREAD_MULTIPLE, &provided));
  CHECK_EQ(provided, FERRY_THREAD_MULTIPLE);
  void (*const tests[])() = {EverySizeFromEveryMemory,
                             OrderIsKeptAcrossPaths,
                             TagsSelect,
                             TruncatedMessagesSayso,
                             PersistentRequestsRunAgain,
                             ProbeSeesWithoutTaking,
                             CancelTakesBackAReceive,
                             WaitanyAndTestFinishRequests,
                             ASelfMessageArrives,
                             PrivateBuffersGoThroughHeapBlocks,
                             ManyUnexpectedMessagesDoNotBlock,
                             ThreadsTalkAtTheSameTime};
  for (auto test : tests) {
    test();
    CHECK_OK(ferry_barrier());
  }
  const int rank = ferry_rank();
  CHECK_OK(ferry_finalize());
  CHECK_EQ(ferry_initialized(), 0);
  CHECK_EQ(ferry_barrier(), FERRY_ERR_NOT_INITIALIZED);
  if (rank == 0) {
    std::puts("point_to_point: ok");
  }
  return 0;
}
