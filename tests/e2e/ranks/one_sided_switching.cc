// one_sided_switching ROUNDS SEED PAUSE_MS: each rank works in the memory of all ranks of other
// nodes, in rounds of all kinds: puts and a flag behind a fence, puts with a signal, puts and a
// message behind a quiet, gets, atomic operations; with a pause now and then that is long enough
// for paths to change. A rank that waits calls Ferry, or only looks at its memory. Every byte is
// checked, and every sum. Rank 0 prints its counters of direct links.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "ferry/one_sided.h"
#include "shm/atomic.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr size_t kSizes[] = {1, 8, 16, 17, 1000, 8192, 8193, 20'000, 65'536, 70'000, 300'000};
constexpr size_t kLargest = 300'000;
constexpr size_t kShelfBytes = 100'000;  // what others get, that never changes

uint64_t seed = 0;

uint64_t Mixed(uint64_t a, uint64_t b) { return ferry::ranks::EightBytesOf(a ^ seed << 40, b); }

// The data that one rank puts to another in a round.
struct Delivery {
  Delivery(int from, int to, int round)
      : name(static_cast<uint64_t>(from) << 48 | static_cast<uint64_t>(to) << 32 |
             static_cast<uint64_t>(round)),
        size(kSizes[Mixed(name, 1) % std::size(kSizes)]),
        kind(static_cast<Kind>(Mixed(name, 2) % 4)),
        waits_in_ferry(Mixed(name, 3) % 2 == 0) {}
  enum class Kind { kFence, kSignal, kMessage, kNonblocking };

  const uint64_t name;
  const size_t size;
  const Kind kind;
  const bool waits_in_ferry;
};

// Of each rank: words of 8 bytes for each rank of the job, then what that one puts there, then the
// shelf.
struct Layout {
  static size_t Words() { return 3 * sizeof(uint64_t) * static_cast<size_t>(ferry_size()); }
  static size_t Flag(int of) { return 3 * sizeof(uint64_t) * static_cast<size_t>(of); }
  static size_t Answer(int of) { return Flag(of) + sizeof(uint64_t); }
  static size_t Sum(int of) { return Flag(of) + 2 * sizeof(uint64_t); }
  static size_t Field(int of) { return Words() + kLargest * static_cast<size_t>(of); }
  static size_t Shelf() { return Field(ferry_size()); }
  static size_t Bytes() { return Shelf() + kShelfBytes; }
};

class Work {
 public:
  Work() : peers_(ferry::ranks::PeersOfOtherNodes()), bases_(static_cast<size_t>(ferry_size())) {
    void* memory = nullptr;
    CHECK_OK(ferry_alloc(Layout::Bytes(), FERRY_MEMORY_HOST, 0, &memory));
    memory_ = static_cast<uint8_t*>(memory);
    std::memset(memory_, 0, Layout::Bytes());
    ferry::ranks::Fill(memory_ + Layout::Shelf(), kShelfBytes, ShelfOf(ferry_rank()));
    ferry_place own;
    CHECK_OK(ferry_locate(memory_, Layout::Bytes(), &own));
    for (const int peer : peers_) {
      CHECK_OK(ferry_sendrecv_place(peer, own));
    }
    CHECK_OK(ferry_barrier());
  }

  void Round(int round) {
    for (const int peer : peers_) {
      Deliver(Delivery(ferry_rank(), peer, round), peer, round);
    }
    for (const int peer : peers_) {
      Await(Delivery(peer, ferry_rank(), round), peer, round);
    }
    for (const int peer : peers_) {  // that the buffers may be used again
      AwaitWord(Layout::Answer(peer), static_cast<uint64_t>(round) + 1, round % 2 == 0);
    }
    CHECK_OK(ferry_quiet(0));
  }

  void CheckSums(int rounds) {
    CHECK_OK(ferry_quiet(0));
    CHECK_OK(ferry_barrier());
    for (const int peer : peers_) {
      uint64_t wanted = 0;
      for (int round = 0; round < rounds; ++round) {
        wanted += Mixed(Delivery(peer, ferry_rank(), round).name, 5) % 1000;
      }
      CHECK_EQ(WordAt(Layout::Sum(peer)), wanted);
    }
  }

 private:
  static uint64_t ShelfOf(int rank) { return 0xabc000 + static_cast<uint64_t>(rank); }
  ferry_place At(int rank, size_t offset) const {
    ferry_place place = bases_[static_cast<size_t>(rank)];
    place.offset += offset;
    return place;
  }
  uint64_t WordAt(size_t offset) const {
    return ferry::shm::LoadAcquire(*reinterpret_cast<uint64_t*>(memory_ + offset));
  }
  void AwaitWord(size_t offset, uint64_t wanted, bool in_ferry) const {
    while (WordAt(offset) < wanted) {
      if (in_ferry) {
        int flag = 0;
        ferry_status status;
        CHECK_OK(ferry_iprobe(FERRY_ANY_SOURCE, 9999, &flag, &status));
      } else {
        sched_yield();
      }
    }
  }
  int ferry_sendrecv_place(int peer, const ferry_place& own) {
    ferry_request request;
    CHECK_OK(ferry_irecv(&bases_[static_cast<size_t>(peer)], sizeof(own), peer, 1, &request));
    CHECK_OK(ferry_send(&own, sizeof(own), peer, 1));
    return ferry_wait(&request, nullptr);
  }

  void Deliver(const Delivery& delivery, int peer, int round) {
    going_.resize(delivery.size);
    ferry::ranks::Fill(going_.data(), delivery.size, delivery.name);
    const ferry_place to = At(peer, Layout::Field(ferry_rank()));
    const ferry_place flag = At(peer, Layout::Flag(ferry_rank()));
    const uint64_t number = static_cast<uint64_t>(round) + 1;
    const uint8_t* const bytes = going_.data();
    switch (delivery.kind) {
      case Delivery::Kind::kFence:
        CHECK_OK(ferry_put(0, to, bytes, delivery.size));
        CHECK_OK(ferry_fence(0));
        CHECK_OK(ferry_atomic(0, FERRY_ATOMIC_SET, flag, 8, number, 0));
        break;
      case Delivery::Kind::kSignal:
        CHECK_OK(ferry_put_signal(0, to, bytes, delivery.size, FERRY_SIGNAL_SET, flag, number));
        break;
      case Delivery::Kind::kMessage:
        CHECK_OK(ferry_put(0, to, bytes, delivery.size));
        CHECK_OK(ferry_quiet_rank(0, peer));
        CHECK_OK(ferry_send(&number, sizeof(number), peer, 2));
        break;
      case Delivery::Kind::kNonblocking:
        CHECK_OK(ferry_put_nbi(0, to, bytes, delivery.size));
        CHECK_OK(ferry_quiet(0));
        CHECK_OK(ferry_put(0, flag, &number, sizeof(number)));
        break;
    }
    CHECK_OK(ferry_atomic(0, FERRY_ATOMIC_ADD, At(peer, Layout::Sum(ferry_rank())), 8,
                          Mixed(delivery.name, 5) % 1000, 0));
    if (Mixed(delivery.name, 6) % 4 == 0) {
      const size_t size = 1 + Mixed(delivery.name, 7) % (kShelfBytes - 1);
      got_.assign(size, 0);
      CHECK_OK(ferry_get(0, got_.data(), At(peer, Layout::Shelf()), size));
      CHECK_BYTES(got_.data(), size, ShelfOf(peer));
    }
    if (Mixed(delivery.name, 8) % 4 == 0) {
      uint64_t found = 0;
      CHECK_OK(ferry_atomic_fetch(0, FERRY_ATOMIC_ADD, At(peer, Layout::Sum(ferry_rank())), 8, 0, 0,
                                  &found));
    }
  }

  void Await(const Delivery& delivery, int peer, int round) {
    const uint64_t number = static_cast<uint64_t>(round) + 1;
    if (delivery.kind == Delivery::Kind::kMessage) {
      uint64_t got = 0;
      CHECK_OK(ferry_recv(&got, sizeof(got), peer, 2, nullptr));
      CHECK_EQ(got, number);
    } else {
      AwaitWord(Layout::Flag(peer), number, delivery.waits_in_ferry);
    }
    CHECK_BYTES(memory_ + Layout::Field(peer), delivery.size, delivery.name);
    CHECK_OK(ferry_put(0, At(peer, Layout::Answer(ferry_rank())), &number, sizeof(number)));
  }

  const std::vector<int> peers_;
  uint8_t* memory_ = nullptr;
  std::vector<ferry_place> bases_;  // by rank
  std::vector<uint8_t> going_;
  std::vector<uint8_t> got_;
};

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc, 4);
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  seed = std::strtoul(argv[2], nullptr, 10);
  const int rounds = std::atoi(argv[1]);
  Work work;
  for (int round = 0; round < rounds; ++round) {
    work.Round(round);
    if (Mixed(static_cast<uint64_t>(round), 4) % 4 == 0) {
      usleep(static_cast<useconds_t>(std::atoi(argv[3])) * 1000);
    }
  }
  work.CheckSums(rounds);
  if (ferry_rank() == 0) {
    ferry::ranks::PrintLinkCounters();
  }
  CHECK_OK(ferry_finalize());
}
