// Calls of one_sided.h on queues: order on the stream, failures, and the end. Two ranks or more, on
// one node or several.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "ferry/ferry.h"
#include "ferry/one_sided.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/check.h"
#include "tests/e2e/ranks/queue.h"

namespace {

using ferry::ranks::AwaitGate;
using ferry::ranks::Left;
using ferry::ranks::Right;
using ferry::ranks::Stream;

constexpr size_t kBytes = 20'000;  // more than a message between nodes carries at once
constexpr int kRounds = 20;

// The memory of each rank: bytes, then words.
struct Memory {
  char bytes[kBytes];
  uint64_t words[4];
};

ferry_place At(ferry_place base, size_t offset) {
  base.offset += offset;
  return base;
}
constexpr size_t kWords = offsetof(Memory, words);

// Tells the right neighbour where this rank's memory is; returns where the left one's is, and its
// right neighbour's.
void Meet(Memory* own, ferry_place* left, ferry_place* right) {
  ferry_place place{};
  CHECK_OK(ferry_locate(own, sizeof(*own), &place));
  ferry_request requests[2];
  CHECK_OK(ferry_irecv(left, sizeof(*left), Left(), 1, &requests[0]));
  CHECK_OK(ferry_irecv(right, sizeof(*right), Right(), 2, &requests[1]));
  CHECK_OK(ferry_send(&place, sizeof(place), Right(), 1));
  CHECK_OK(ferry_send(&place, sizeof(place), Left(), 2));
  CHECK_OK(ferry_wait(&requests[0], nullptr));
  CHECK_OK(ferry_wait(&requests[1], nullptr));
}

struct Maker {
  std::vector<char> data;
  int round = 0;
};

// A kernel makes data; the stream puts them, gets them back, and a kernel compares.
void OrderOnTheStream(ferry_place right) {
  Stream stream;
  Maker maker{std::vector<char>(kBytes)};
  std::vector<char> back(kBytes);
  struct Looker {
    Maker* maker;
    std::vector<char>* back;
    int wrong = 0;
  } looker{&maker, &back};
  for (int round = 0; round < kRounds; ++round) {
    CHECK_OK(ferry_stream_launch(
        stream.stream,
        [](void* argument) {
          auto& made = *static_cast<Maker*>(argument);
          std::memset(made.data.data(), ++made.round, kBytes);
        },
        &maker));
    CHECK_OK(
        ferry_enqueue_put(stream.queue, FERRY_CONTEXT_DEFAULT, right, maker.data.data(), kBytes));
    CHECK_OK(ferry_enqueue_quiet(stream.queue, FERRY_CONTEXT_DEFAULT));
    CHECK_OK(ferry_enqueue_get(stream.queue, FERRY_CONTEXT_DEFAULT, back.data(), right, kBytes));
    CHECK_OK(ferry_stream_launch(
        stream.stream,
        [](void* argument) {
          auto& looks = *static_cast<Looker*>(argument);
          looks.wrong += *looks.back != looks.maker->data;
          std::memset(looks.back->data(), 0, kBytes);
        },
        &looker));
    CHECK_OK(ferry_enqueue_atomic(stream.queue, FERRY_CONTEXT_DEFAULT, FERRY_ATOMIC_ADD,
                                  At(right, kWords), 8, 1, 0));
  }
  CHECK_OK(ferry_enqueue_put_signal(stream.queue, FERRY_CONTEXT_DEFAULT, At(right, 0), "end", 4,
                                    FERRY_SIGNAL_SET, At(right, kWords + 8), 3));
  CHECK_OK(ferry_enqueue_quiet(stream.queue, FERRY_CONTEXT_DEFAULT));
  CHECK_OK(ferry_queue_wait(stream.queue));
  CHECK_EQ(maker.round, kRounds);
  CHECK_EQ(looker.wrong, 0);
  stream.End();
}

// The failure of a call is reported once, by the queue's wait, and the stream has gone on.
void FailuresAreToldOnce(ferry_place right) {
  Stream stream;
  ferry_place nobody = right;
  nobody.rank = ferry_size();
  ferry_place nowhere = right;
  nowhere.offset += uint64_t{1} << 40;
  char byte = 1;
  std::atomic<int> runs{0};
  CHECK_OK(ferry_enqueue_get(stream.queue, FERRY_CONTEXT_DEFAULT, &byte, nowhere, 1));
  CHECK_OK(ferry_enqueue_put(stream.queue, FERRY_CONTEXT_DEFAULT, nobody, &byte, 1));
  CHECK_OK(ferry_stream_launch(
      stream.stream, [](void* argument) { ++*static_cast<std::atomic<int>*>(argument); }, &runs));
  CHECK_REFUSED(ferry_queue_wait(stream.queue), FERRY_ERR_BUFFER, "ferry_get: rank ");
  CHECK_EQ(runs.load(), 1);
  CHECK_OK(ferry_queue_wait(stream.queue));
  CHECK_REFUSED(ferry_enqueue_quiet(stream.queue + 1000, FERRY_CONTEXT_DEFAULT), FERRY_ERR_ARGUMENT,
                "names no queue");
  stream.End();
}

// Neither a queue nor the connection ends while calls are enqueued.
void NothingEndsBefore() {
  Stream stream;
  ferry::ranks::gate = 0;
  ferry::ranks::at_gate = false;
  CHECK_OK(ferry_stream_launch(stream.stream, AwaitGate, nullptr));
  CHECK_OK(ferry_enqueue_quiet(stream.queue, FERRY_CONTEXT_DEFAULT));
  CHECK_REFUSED(ferry_queue_free(&stream.queue), FERRY_ERR_REQUEST, "has not done all");
  CHECK_REFUSED(ferry_finalize(), FERRY_ERR_REQUEST, "1 call on queues is not over");
  ferry::ranks::gate = 1;
  stream.End();

  // A stream that goes drops what it has not come to.
  Stream gone;
  uint64_t word = 0;
  ferry_place place{};
  void* memory = nullptr;
  CHECK_OK(ferry_alloc(sizeof(word), FERRY_MEMORY_HOST, 0, &memory));
  std::memset(memory, 0, sizeof(word));
  CHECK_OK(ferry_locate(memory, sizeof(word), &place));
  ferry::ranks::gate = 0;
  ferry::ranks::at_gate = false;
  CHECK_OK(ferry_stream_launch(gone.stream, AwaitGate, nullptr));
  CHECK_OK(
      ferry_enqueue_atomic(gone.queue, FERRY_CONTEXT_DEFAULT, FERRY_ATOMIC_ADD, place, 8, 1, 0));
  while (!ferry::ranks::at_gate) {
    std::this_thread::yield();
  }
  std::thread opener([] { ferry::ranks::gate = 1; });
  CHECK_OK(ferry_stream_destroy(&gone.stream));
  opener.join();
  CHECK_REFUSED(ferry_queue_wait(gone.queue), FERRY_ERR_CANCELLED, "was destroyed");
  CHECK_OK(ferry_queue_free(&gone.queue));
  std::memcpy(&word, memory, sizeof(word));
  CHECK_EQ(word <= 1, true);
  CHECK_OK(ferry_free(memory));
}

// Returns true if this address lies in a heap of Ferry's.
bool IsInHeap(uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2 && begin <= address &&
        address < end) {
      return line.find("memfd:ferry-heap") != std::string::npos;
    }
  }
  return false;
}

}  // namespace

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  void* memory = nullptr;
  CHECK_OK(ferry_alloc(sizeof(Memory), FERRY_MEMORY_HOST, 0, &memory));
  auto* const own = new (memory) Memory();
  ferry_place left{};
  ferry_place right{};
  Meet(own, &left, &right);
  CHECK_OK(ferry_barrier());
  OrderOnTheStream(right);
  CHECK_OK(ferry_barrier());
  CHECK_EQ(own->words[0], static_cast<uint64_t>(kRounds));
  CHECK_EQ(own->words[1], uint64_t{3});
  CHECK_EQ(std::strcmp(own->bytes, "end"), 0);
  CHECK_EQ(own->bytes[kBytes - 1], static_cast<char>(kRounds));
  FailuresAreToldOnce(right);
  NothingEndsBefore();
  CHECK_OK(ferry_barrier());
  CHECK_OK(ferry_free(memory));
  CHECK_EQ(IsInHeap(reinterpret_cast<uintptr_t>(memory)), true);
  CHECK_OK(ferry_finalize());
  // A vendor's stream goes on for a while after it was destroyed, and looks at the heap.
  CHECK_EQ(IsInHeap(reinterpret_cast<uintptr_t>(memory)), true);
  return 0;
}
