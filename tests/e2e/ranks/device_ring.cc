// Rings of devices on the emulated GPU: threads of the rank, and kernels on its stream, ask ferryd
// for something and get answers. Any even number of ranks, on any nodes; rank r and r^1 are
// partners.
//
//   device_ring [link | leave | made]
//
// made: makes rings for a device that is not emulated. link: devices are behind a link. leave: ends
// with a ring open, in good order.
#include "ferry/device_ring.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "ferry/device/ring.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr uint32_t kThreads = 8;

int Partner() { return ferry_rank() ^ 1; }

// Memory of ferry_alloc.
template <typename T>
T* Allocate(size_t count = 1, ferry_memory_kind kind = FERRY_MEMORY_HOST) {
  void* memory = nullptr;
  CHECK_OK(ferry_alloc(sizeof(T) * count, kind, 0, &memory));
  return static_cast<T*>(memory);
}

// Runs `kernel` as so many threads of a launch.
template <typename Kernel>
void Launch(uint32_t count, Kernel&& kernel) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      ferry_device_host_thread = {i, count};
      kernel();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

void RoundTrips(const ferry::DeviceRing& made) {
  Launch(kThreads, [&] {
    const ferry_device_ring ring = ferry_device_ring_open(made.address());
    const auto mine = static_cast<uint32_t>(ferry_device_thread());
    for (uint64_t i = 0; i < 200; ++i) {
      const ferry_device_u64 number = ferry_device_ring_nop(ring, i * kThreads + mine, mine);
      CHECK_OK(ferry_device_ring_wait(ring, mine, number));
      CHECK_EQ(ferry_device_ring_value(ring, mine), i * kThreads + mine);
    }
  });
}

// Counters in host memory and in memory of the device that CPUs reach.
void Counters(const ferry::DeviceRing& made, bool is_device_direct) {
  for (const ferry_memory_kind kind :
       {FERRY_MEMORY_HOST, FERRY_MEMORY_PINNED, FERRY_MEMORY_DEVICE}) {
    auto* const counter = Allocate<ferry_ring_counter>(1, kind);
    if (kind == FERRY_MEMORY_DEVICE && !is_device_direct) {
      ferry_device_place none{};
      CHECK_EQ(ferry_ring_place(made.handle(), counter, sizeof(*counter), &none),
               FERRY_ERR_UNSUPPORTED);
      CHECK_OK(ferry_free(counter));
      continue;
    }
    const ferry_device_place place = made.Place(counter, sizeof(*counter));
    Launch(kThreads, [&] {
      const ferry_device_ring ring = ferry_device_ring_open(made.address());
      const auto mine = static_cast<uint32_t>(ferry_device_thread());
      // The first thread waits for the additions of the others.
      if (mine == 0) {
        const ferry_device_u64 all =
            ferry_device_ring_await(ring, place, (kThreads - 1) * 100, mine);
        CHECK_OK(ferry_device_ring_wait(ring, mine, all));
        return;
      }
      for (int i = 0; i < 99; ++i) {
        ferry_device_ring_add(ring, place, 1, FERRY_DEVICE_RING_SILENT);
      }
      CHECK_OK(ferry_device_ring_wait(ring, mine, ferry_device_ring_add(ring, place, 1, mine)));
    });
    CHECK_EQ(counter->value, (kThreads - 1) * 100);
    CHECK_OK(ferry_free(counter));
  }
}

struct KernelArguments {
  void* ring;
  ferry_device_place counter;
};

// A kernel posts on a stream, and its own rank's CPU never sees the requests.
void OnAStream(const ferry::DeviceRing& made) {
  auto* const counter = Allocate<ferry_ring_counter>();
  KernelArguments arguments{made.address(), made.Place(counter, sizeof(*counter))};
  ferry_stream stream = nullptr;
  CHECK_OK(ferry_stream_create(0, &stream));
  for (int i = 0; i < 10; ++i) {
    CHECK_OK(ferry_stream_launch(
        stream,
        [](void* argument) {
          const auto& its = *static_cast<KernelArguments*>(argument);
          const ferry_device_ring ring = ferry_device_ring_open(its.ring);
          CHECK_OK(ferry_device_ring_wait(ring, 0, ferry_device_ring_add(ring, its.counter, 1, 0)));
        },
        &arguments));
  }
  CHECK_OK(ferry_stream_synchronize(stream));
  CHECK_EQ(counter->value, 10);
  CHECK_OK(ferry_stream_destroy(&stream));
  CHECK_OK(ferry_free(counter));
}

// A thread of the device starts a matched request again and again, and waits for its end.
void Starts(const ferry::DeviceRing& made) {
  constexpr size_t kBytes = 20'000;  // too long for cells
  auto* const going = Allocate<uint8_t>(kBytes);
  auto* const coming = Allocate<uint8_t>(kBytes);
  ferry_request requests[2];
  CHECK_OK(ferry_send_init(going, kBytes, Partner(), 3, &requests[0]));
  CHECK_OK(ferry_recv_init(coming, kBytes, Partner(), 3, &requests[1]));
  ferry_device_place places[2];
  CHECK_EQ(ferry_ring_prepare_start(made.handle(), requests[0], &places[0]), FERRY_ERR_REQUEST);
  CHECK_OK(ferry_matchall(2, requests));
  if (ferry_node_of(Partner()) == ferry_node_of(ferry_rank())) {
    CHECK_EQ(ferry_ring_prepare_start(made.handle(), requests[0], &places[0]),
             FERRY_ERR_UNSUPPORTED);
    CHECK_OK(ferry_barrier());  // a rank that frees its request ends the pair for the other, too
  } else {
    for (uint64_t round = 0; round < 20; ++round) {
      ferry::ranks::Fill(going, kBytes, round * 10 + static_cast<uint64_t>(ferry_rank()));
      places[0] = made.PrepareStart(requests[0]);
      places[1] = made.PrepareStart(requests[1]);
      CHECK_EQ(ferry_ring_prepare_start(made.handle(), requests[1], &places[1]), FERRY_ERR_REQUEST);
      Launch(2, [&] {
        const ferry_device_ring ring = ferry_device_ring_open(made.address());
        const auto mine = static_cast<uint32_t>(ferry_device_thread());
        const ferry_device_u64 number = ferry_device_ring_start(ring, places[mine], mine);
        CHECK_OK(ferry_device_ring_wait(ring, mine, number));
        CHECK_EQ(ferry_device_ring_value(ring, mine), round + 1);
        if (mine == 1) {  // the device has it, before any CPU has asked
          CHECK_BYTES(coming, kBytes, round * 10 + static_cast<uint64_t>(Partner()));
        }
      });
      CHECK_OK(ferry_waitall(2, requests, nullptr));
    }
    // Not prepared any more.
    const ferry_device_ring ring = ferry_device_ring_open(made.address());
    CHECK_EQ(ferry_device_ring_wait(ring, 0, ferry_device_ring_start(ring, places[0], 0)),
             FERRY_ERR_REQUEST);
  }
  for (ferry_request& request : requests) {
    CHECK_OK(ferry_request_free(&request));
  }
  CHECK_OK(ferry_free(going));
  CHECK_OK(ferry_free(coming));
}

void Mistakes() {
  ferry_ring ring = 77;
  CHECK_EQ(ferry_ring_create(-1, 64, 1, &ring), FERRY_ERR_ARGUMENT);
  CHECK_EQ(ring, FERRY_RING_NULL);
  CHECK_EQ(ferry_ring_create(1000, 64, 1, &ring), FERRY_ERR_ARGUMENT);
  for (const uint32_t slots : {0U, 1U, 48U, 131072U}) {
    CHECK_EQ(ferry_ring_create(0, slots, 1, &ring), FERRY_ERR_ARGUMENT);
  }
  CHECK_EQ(ferry_ring_create(0, 64, 1U << 30, &ring), FERRY_ERR_ARGUMENT);
  CHECK_EQ(ferry_ring_create(0, 64, 1, nullptr), FERRY_ERR_ARGUMENT);
  std::vector<ferry_ring> rings(16);
  for (ferry_ring& one : rings) {
    CHECK_OK(ferry_ring_create(0, 64, 4, &one));
  }
  CHECK_EQ(ferry_ring_create(0, 64, 1, &ring), FERRY_ERR_LIMIT);
  ferry_ring gone = rings[3];
  CHECK_OK(ferry_ring_destroy(&rings[3]));
  CHECK_EQ(rings[3], FERRY_RING_NULL);
  CHECK_OK(ferry_ring_create(0, 64, 4, &rings[3]));
  void* address = nullptr;
  ferry_ring_state state{};
  for (ferry_ring bad : {gone, FERRY_RING_NULL, ferry_ring{17}, ~ferry_ring{0}}) {
    CHECK_EQ(ferry_ring_address(bad, &address), FERRY_ERR_ARGUMENT);
    CHECK_EQ(ferry_ring_get_state(bad, &state), FERRY_ERR_ARGUMENT);
    CHECK_EQ(ferry_ring_destroy(&bad), FERRY_ERR_ARGUMENT);
  }
  CHECK_EQ(ferry_ring_address(rings[0], nullptr), FERRY_ERR_ARGUMENT);
  CHECK_EQ(ferry_ring_destroy(nullptr), FERRY_ERR_ARGUMENT);
  ferry_device_place place{};
  int outside = 0;
  CHECK_EQ(ferry_ring_place(rings[0], &outside, sizeof(outside), &place), FERRY_ERR_BUFFER);
  CHECK_EQ(ferry_ring_prepare_start(rings[0], 12345, &place), FERRY_ERR_REQUEST);
  for (ferry_ring& one : rings) {
    CHECK_OK(ferry_ring_destroy(&one));
  }
}

// A kernel's mistakes are reported to it, or to the host, and harm no other rank.
void BadRequests() {
  const ferry::DeviceRing made(0, 16, 1);
  const ferry_device_ring ring = ferry_device_ring_open(made.address());
  const ferry_device_place nowhere{12345, 0, 0};
  CHECK_EQ(ferry_device_ring_wait(ring, 0, ferry_device_ring_add(ring, nowhere, 1, 0)),
           FERRY_ERR_BUFFER);
  const ferry_device_u64 silent =
      ferry_device_ring_ask(ring, 99, nowhere, 1, FERRY_DEVICE_RING_SILENT);
  CHECK_EQ(silent, 2);
  CHECK_OK(ferry_device_ring_wait(ring, 0, ferry_device_ring_nop(ring, 1, 0)));
  const ferry_ring_state state = made.state();
  CHECK_EQ(state.error, FERRY_SUCCESS);
  CHECK_EQ(state.errors, 2);
  CHECK_EQ(state.first_number, 1);
  CHECK_EQ(state.first_kind, FERRY_DEVICE_RING_COUNTER_ADD);
  CHECK_EQ(state.first_error, FERRY_ERR_BUFFER);
}

// Its threads take tickets in its own memory, which a CPU cannot do for it.
void OnADevice() {
  for (int i = 0; i < 100; ++i) {
    const ferry::DeviceRing made(0, 64, 64);
    const auto* const layout = static_cast<const uint64_t*>(made.address());
    CHECK_EQ(layout[35] != 0, true);
    uint64_t words[2] = {1, 1};
    CHECK_OK(ferry_memcpy(words, reinterpret_cast<const void*>(layout[35]), sizeof(words)));
    CHECK_EQ(words[0], 0);
    CHECK_EQ(words[1], 0);
    CHECK_EQ(made.state().requests, 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  if (argc == 2 && argv[1] == std::string_view("leave")) {
    ferry_ring ring = FERRY_RING_NULL;
    void* address = nullptr;
    CHECK_OK(ferry_ring_create(0, 64, 1, &ring));
    CHECK_OK(ferry_ring_address(ring, &address));
    // A ticket that is never published, as a kernel that was killed leaves it.
    (void)ferry_device_fetch_add(ferry_device_ring_open(address).producers, 1);
    CHECK_OK(ferry_finalize());
    return 0;
  }
  if (argc == 2 && argv[1] == std::string_view("made")) {
    OnADevice();
    CHECK_OK(ferry_finalize());
    return 0;
  }
  Mistakes();
  {
    const ferry::DeviceRing ring(0, 64, 64);
    RoundTrips(ring);
    Counters(ring, argc == 1);
    OnAStream(ring);
    Starts(ring);
    CHECK_EQ(ring.state().errors, ferry_node_of(Partner()) == ferry_node_of(ferry_rank()) ? 0 : 1);
  }
  BadRequests();
  CHECK_OK(ferry_finalize());
  return 0;
}
