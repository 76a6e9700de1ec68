// Ranks whose kernels ask ferryd through device rings, for `ferryctl why`. Each first prints
// "rank R: under way". A rank that has nothing to do sleeps outside Ferry.
//
// Two ranks that get stuck:
//   stuck_rings signal    a kernel of rank 0 waits for a counter to which rank 1 never adds; the
//                         rank waits for the kernel outside Ferry
//   stuck_rings queue     likewise, and the rank waits for its queue
//   stuck_rings behind    a kernel of rank 1 waits so, and the rank for its stream; rank 0 waits
//   for
//                         a message of rank 1
//   stuck_rings signals   a kernel of each waits for the other one's, which would add later
//   stuck_rings start     a kernel of rank 0 starts a matched receive, whose send rank 1 never
//                         starts; the ranks are on two nodes
//   stuck_rings starts    a kernel of each receives before it sends, on two nodes
// Ranks that go on for ever:
//   stuck_rings puts      a kernel of rank 0 puts to rank 1, as long as the ring has room
//   stuck_rings halo      a kernel of each adds to its right neighbour's counter, and waits for its
//                         own; any number of ranks
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string_view>
#include <thread>

#include "ferry/device/ring_operations.h"
#include "ferry/device_ring.hpp"
#include "ferry/ferry.h"
#include "ferry/one_sided.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/check.h"
#include "tests/e2e/ranks/queue.h"

namespace {

using namespace ferry::ranks;  // NOLINT: the helpers of this folder

constexpr size_t kBytes = 20'000;  // of matched messages: too long for cells

template <typename T>
T* Allocate(size_t count = 1) {
  void* memory = nullptr;
  CHECK_OK(ferry_alloc(sizeof(T) * count, FERRY_MEMORY_HOST, 0, &memory));
  std::memset(memory, 0, sizeof(T) * count);
  return static_cast<T*>(memory);
}

// The ring of a rank, its counter, and its right neighbour's; and what its kernels do with them.
class Rings {
 public:
  Rings() : counter_(Allocate<ferry_ring_counter>()), ring_(0, 64, 2) {
    own_ = ring_.Place(counter_, sizeof(*counter_));
    ferry_place mine{};
    ferry_place right{};
    CHECK_OK(ferry_locate(counter_, sizeof(*counter_), &mine));
    ferry_request request = FERRY_REQUEST_NULL;
    CHECK_OK(ferry_irecv(&right, sizeof(right), Right(), 1, &request));
    CHECK_OK(ferry_send(&mine, sizeof(mine), Left(), 1));
    CHECK_OK(ferry_wait(&request, nullptr));
    right_ = {static_cast<ferry_device_u32>(right.rank), right.segment, right.offset};
    random_.seed(static_cast<unsigned>(ferry_rank() + 1));
  }

  using Kernel = void (*)(void*);
  void Launch(Kernel kernel) { CHECK_OK(ferry_stream_launch(stream_.stream, kernel, this)); }
  // One after the other, by a device of which Ferry sees only its ring.
  void RunOutside(Kernel first, Kernel second) {
    std::thread([&] {
      first(this);
      second(this);
    }).join();
  }
  void Synchronize() { CHECK_OK(ferry_stream_synchronize(stream_.stream)); }
  void WaitForQueue() { CHECK_OK(ferry_queue_wait(stream_.queue)); }

  // Prepares a start of the matched receive from the other rank, and makes its send.
  void MakePair() {
    auto* const data = Allocate<uint8_t>(2 * kBytes);
    ferry_request requests[2];
    CHECK_OK(ferry_recv_init(data, kBytes, Partner(), 3, &requests[0]));
    CHECK_OK(ferry_send_init(data + kBytes, kBytes, Partner(), 3, &requests[1]));
    CHECK_OK(ferry_matchall(2, requests));
    receive_ = ring_.PrepareStart(requests[0]);
    send_ = ring_.PrepareStart(requests[1]);
  }

  // ---- Kernels ----

  static void Await(void* argument) {
    auto& its = *static_cast<Rings*>(argument);
    const ferry_device_ring ring = its.Open();
    ++its.rounds_;
    CHECK_OK(
        ferry_device_ring_wait(ring, 0, ferry_device_ring_await(ring, its.own_, its.rounds_, 0)));
  }
  static void Add(void* argument) {
    auto& its = *static_cast<Rings*>(argument);
    ferry_device_ring_atomic(its.Open(), its.right_, FERRY_DEVICE_RING_ADD, 8, 1, 0, 0,
                             FERRY_DEVICE_RING_SILENT);
  }
  // Up to a tenth of a second: longer than the time between two looks.
  static void Compute(void* argument) {
    usleep(static_cast<useconds_t>(static_cast<Rings*>(argument)->random_() % 100'000));
  }
  static void Receive(void* argument) { Start(argument, &Rings::receive_); }
  static void Send(void* argument) { Start(argument, &Rings::send_); }
  static void Put(void* argument) {
    auto& its = *static_cast<Rings*>(argument);
    const ferry_device_ring ring = its.Open();
    while (ferry_device_ring_put_value(ring, its.right_, 1, 0, 8, 0, FERRY_DEVICE_RING_SILENT) !=
           0) {
    }
  }

 private:
  static void Start(void* argument, ferry_device_place Rings::*request) {
    auto& its = *static_cast<Rings*>(argument);
    const ferry_device_ring ring = its.Open();
    CHECK_OK(ferry_device_ring_wait(ring, 0, ferry_device_ring_start(ring, its.*request, 0)));
  }
  ferry_device_ring Open() const { return ferry_device_ring_open(ring_.address()); }

  const Stream stream_;
  ferry_ring_counter* const counter_;
  const ferry::DeviceRing ring_;
  ferry_device_place own_{};
  ferry_device_far_place right_{};
  ferry_device_place receive_{};
  ferry_device_place send_{};
  uint64_t rounds_ = 0;
  std::minstd_rand random_;
};

void GetStuck(std::string_view what, Rings* rings) {
  const bool is_first = ferry_rank() == 0;
  const bool is_of_both = what == "signals" || what == "starts";
  if (what == "start" || what == "starts") {
    rings->MakePair();
  }
  if (what == "behind" && is_first) {
    char message = 0;
    CHECK_OK(ferry_recv(&message, sizeof(message), Partner(), 2, nullptr));
  }
  if (!is_of_both && is_first == (what == "behind")) {
    return;
  }
  if (what == "puts") {
    rings->Launch(Rings::Put);
    rings->Synchronize();
  } else if (what == "start" || what == "starts") {
    rings->RunOutside(Rings::Receive, Rings::Send);
  } else if (what == "signal" || what == "signals") {
    rings->RunOutside(Rings::Await, Rings::Add);
  } else {
    rings->Launch(Rings::Await);
    what == "queue" ? rings->WaitForQueue() : rings->Synchronize();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  Rings rings;
  std::printf("rank %d: under way\n", ferry_rank());
  std::fflush(stdout);
  while (what == "halo") {
    for (int round = 0; round < 4; ++round) {
      rings.Launch(Rings::Compute);
      rings.Launch(Rings::Add);
      rings.Launch(Rings::Await);
    }
    rings.WaitForQueue();
  }
  GetStuck(what, &rings);
  while (true) {
    pause();
  }
}
