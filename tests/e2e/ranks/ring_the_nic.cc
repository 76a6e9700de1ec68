// ring_the_nic PAIRS SIZE ROUNDS FERRYCTL HOW: two ranks on two nodes, each with PAIRS matched
// sends to the other one and as many receives, where the rank may ring the NIC's counters itself.
// After one round, ROUNDS are enqueued at once ("queue") or made by the rank ("rank"); each rank
// prints how often its ferryd has added to a counter of the NIC meanwhile.
#include <sched.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "ferry/device/platform.h"
#include "ferry/ferry.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/check.h"
#include "tests/e2e/ranks/queue.h"

namespace {

using namespace ferry::ranks;  // NOLINT: the helpers of this folder

// How often this node's ferryd has added to a counter.
uint64_t Additions(const std::string& ferryctl) {
  FILE* const out = popen((ferryctl + " nics --json").c_str(), "r");
  CHECK_EQ(out != nullptr, true);
  std::string text;
  char part[4096];
  for (size_t size = 0; (size = fread(part, 1, sizeof(part), out)) > 0;) {
    text.append(part, size);
  }
  CHECK_EQ(pclose(out), 0);
  const std::string key = "\"deferred_rings\": ";
  const size_t found = text.find(key);
  CHECK_EQ(found != std::string::npos, true);
  return std::stoull(text.substr(found + key.size()));
}

std::span<uint64_t> Allocate(size_t words) {
  void* memory = nullptr;
  CHECK_OK(ferry_alloc(words * sizeof(uint64_t), FERRY_MEMORY_HOST, 0, &memory));
  return {static_cast<uint64_t*>(memory), words};
}

class Exchange {
 public:
  Exchange(size_t pairs, size_t size_bytes)
      : going_(Allocate(pairs * size_bytes / sizeof(uint64_t))), coming_(Allocate(going_.size())) {
    const size_t words = size_bytes / sizeof(uint64_t);
    for (size_t i = 0; i < pairs; ++i) {
      const auto tag = static_cast<int>(i);
      ferry_request request = FERRY_REQUEST_NULL;
      CHECK_OK(ferry_recv_init(&coming_[i * words], size_bytes, Partner(), tag, &request));
      requests_.push_back(request);
      CHECK_OK(ferry_send_init(&going_[i * words], size_bytes, Partner(), tag, &request));
      requests_.push_back(request);
    }
    CHECK_OK(ferry_matchall(requests_.size(), requests_.data()));
    Fill();
  }
  ~Exchange() {
    for (ferry_request& request : requests_) {
      CHECK_OK(ferry_request_free(&request));
    }
    CHECK_OK(ferry_free(going_.data()));
    CHECK_OK(ferry_free(coming_.data()));
  }

  void Enqueue(const Stream& stream) {
    CHECK_OK(ferry_enqueue_startall(stream.queue, requests_.size(), requests_.data()));
    CHECK_OK(ferry_enqueue_waitall(stream.queue, requests_.size(), requests_.data()));
    CHECK_OK(ferry_stream_launch(
        stream.stream, [](void* exchange) { static_cast<Exchange*>(exchange)->Turn(); }, this));
  }
  void Make() {
    for (const ferry_request request : requests_) {
      CHECK_OK(ferry_start(request));
    }
    CHECK_OK(ferry_waitall(requests_.size(), requests_.data(), nullptr));
    Turn();
  }
  // The kernel starts all requests, and waits for them.
  void MakeByKernel(const Stream& stream) {
    prepared_.resize(requests_.size());
    for (size_t i = 0; i < requests_.size(); ++i) {
      CHECK_OK(ferry_kernel_prepare_start(requests_[i], &prepared_[i]));
    }
    CHECK_OK(ferry_stream_launch(
        stream.stream,
        [](void* exchange) {
          for (const ferry_kernel_start& start : static_cast<Exchange*>(exchange)->prepared_) {
            ferry_device_store_release(reinterpret_cast<ferry_device_u64*>(start.word), 1);
          }
          for (const ferry_kernel_start& start : static_cast<Exchange*>(exchange)->prepared_) {
            while (ferry_device_load_acquire(
                       reinterpret_cast<const ferry_device_u64*>(start.done)) < start.number) {
              sched_yield();
            }
          }
          static_cast<Exchange*>(exchange)->Turn();
        },
        this));
    CHECK_OK(ferry_stream_synchronize(stream.stream));
    CHECK_OK(ferry_waitall(requests_.size(), requests_.data(), nullptr));
  }
  // Before there is a page.
  void ExpectNoPage() {
    ferry_kernel_start start{};
    CHECK_REFUSED(ferry_kernel_prepare_start(requests_[0], &start), FERRY_ERR_UNSUPPORTED,
                  "ferry_ring_prepare_start");
    CHECK_EQ(ferry_kernel_prepare_start(FERRY_REQUEST_NULL, &start), FERRY_ERR_REQUEST);
    CHECK_EQ(ferry_kernel_prepare_start(requests_[0], nullptr), FERRY_ERR_ARGUMENT);
  }
  size_t starts() const { return requests_.size(); }
  uint64_t rounds() const { return round_; }

 private:
  uint64_t Word(int rank, size_t index) const {
    return static_cast<uint64_t>(rank) << 56 | round_ << 32 | index;
  }
  void Fill() {
    for (size_t i = 0; i < going_.size(); ++i) {
      going_[i] = Word(ferry_rank(), i);
    }
  }
  void Turn() {
    for (size_t i = 0; i < coming_.size(); ++i) {
      CHECK_EQ(coming_[i], Word(Partner(), i));
    }
    ++round_;
    Fill();
  }

  std::span<uint64_t> going_;
  std::span<uint64_t> coming_;
  std::vector<ferry_request> requests_;
  std::vector<ferry_kernel_start> prepared_;
  uint64_t round_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc, 6);
  const std::string ferryctl = argv[4];
  const std::string how = argv[5];
  const int rounds = std::atoi(argv[3]);
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  {
    Stream stream;
    Exchange exchange(std::strtoul(argv[1], nullptr, 10), std::strtoul(argv[2], nullptr, 10));
    exchange.ExpectNoPage();
    exchange.Enqueue(stream);
    CHECK_OK(ferry_queue_wait(stream.queue));
    CHECK_OK(ferry_barrier());
    const uint64_t before = Additions(ferryctl);
    CHECK_OK(ferry_barrier());
    for (int round = 0; round < rounds; ++round) {
      if (how == "queue") {
        exchange.Enqueue(stream);
      } else if (how == "kernel") {
        exchange.MakeByKernel(stream);
      } else {
        exchange.Make();
      }
    }
    CHECK_OK(ferry_queue_wait(stream.queue));
    CHECK_EQ(exchange.rounds(), static_cast<uint64_t>(rounds) + 1);
    CHECK_OK(ferry_barrier());
    std::printf("rank %d: ferryd added %llu times in %zu starts\n", ferry_rank(),
                static_cast<unsigned long long>(Additions(ferryctl) - before),
                exchange.starts() * static_cast<size_t>(rounds));
    stream.End();
  }
  CHECK_OK(ferry_finalize());
  return 0;
}
