// switching ROUNDS SEED PAUSE_MS: each rank exchanges windows of messages with all ranks of other
// nodes, of all sizes and kinds of memory, in rounds whose receives are named, wild, probed, too
// short or among cancelled ones, with a pause between them now and then that is long enough for
// paths to change. Every message's order and bytes are checked. Rank 0 prints its counters of
// direct links.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr int kWindow = 8;
constexpr size_t kSizes[] = {0,     8,     64,     1000,   8192,    9000,
                             16384, 70000, 300000, 600000, 1000000, 1500000};
constexpr size_t kLargest = 1500000;  // too long to be pushed
constexpr int kNever = 1 << 20;       // a tag that no message is received by

uint64_t seed = 0;

uint64_t Mixed(uint64_t a, uint64_t b) { return ferry::ranks::EightBytesOf(a ^ seed << 40, b); }

// The message with that number among those from one rank to another.
uint64_t NameOf(int from, int to, uint64_t number) {
  return (static_cast<uint64_t>(from) << 48) | (static_cast<uint64_t>(to) << 32) | number;
}
size_t SizeOf(uint64_t name) {
  // Mostly short ones: long ones take most of the time.
  const uint64_t dice = Mixed(name, 1);
  return kSizes[dice % 8 == 0 ? dice / 8 % std::size(kSizes) : dice / 8 % 7];
}

enum class Kind { kNamed, kWild, kProbed, kShort, kCancelled };
constexpr uint64_t kKinds = 5;

struct Buffers {
  explicit Buffers(size_t count) : ordinary(count * kLargest) {
    void* memory = nullptr;
    CHECK_OK(ferry_alloc(count * kLargest, FERRY_MEMORY_HOST, 0, &memory));
    heap = static_cast<uint8_t*>(memory);
  }
  uint8_t* At(size_t index, uint64_t dice) {
    return (dice % 2 == 0 ? ordinary.data() : heap) + index * kLargest;
  }
  std::vector<uint8_t> ordinary;
  uint8_t* heap = nullptr;
};

class Traffic {
 public:
  Traffic() : peers_(ferry::ranks::PeersOfOtherNodes()), going_(Count()), coming_(Count()) {
    sent_.resize(static_cast<size_t>(ferry_size()));
    received_.resize(static_cast<size_t>(ferry_size()));
  }

  void Round(int round) {
    const Kind kind = static_cast<Kind>(Mixed(static_cast<uint64_t>(round), 2) % kKinds);
    std::vector<ferry_request> in_vain;
    if (kind == Kind::kCancelled) {
      in_vain = StartInVain();
    }
    std::vector<ferry_request> receives(Count());
    if (kind != Kind::kProbed) {
      for (size_t i = 0; i < Count(); ++i) {
        CHECK_OK(ferry_irecv(PlaceOf(i, round), kind == Kind::kShort ? RoomOf(i) : kLargest,
                             kind == Kind::kWild ? FERRY_ANY_SOURCE : PeerOf(i), round,
                             &receives[i]));
      }
    }
    std::vector<ferry_request> sends(Count());
    for (size_t i = 0; i < Count(); ++i) {
      const int to = PeerOf(i);
      const uint64_t name = NameOf(ferry_rank(), to, sent_[static_cast<size_t>(to)]++);
      uint8_t* const data = going_.At(i, Mixed(name, 3));
      ferry::ranks::Fill(data, SizeOf(name), name);
      CHECK_OK(ferry_isend(data, SizeOf(name), to, round, &sends[i]));
    }
    std::vector<ferry_status> statuses(Count());
    if (kind == Kind::kProbed) {
      for (size_t i = 0; i < Count(); ++i) {
        ferry_status found;
        CHECK_OK(ferry_probe(FERRY_ANY_SOURCE, round, &found));
        CHECK_OK(
            ferry_recv(PlaceOf(i, round), found.size_bytes, found.source, round, &statuses[i]));
        CHECK_EQ(statuses[i].size_bytes, found.size_bytes);
      }
    } else {
      for (size_t i = 0; i < Count(); ++i) {
        const bool is_short = kind == Kind::kShort && SizeOf(ComingTo(i)) > RoomOf(i);
        CHECK_EQ(ferry_wait(&receives[i], &statuses[i]),
                 is_short ? FERRY_ERR_TRUNCATED : FERRY_SUCCESS);
      }
    }
    // Receives that may take any rank's messages take those of one rank in their order, too.
    for (size_t i = 0; i < Count(); ++i) {
      const int from = statuses[i].source;
      const uint64_t name = NameOf(from, ferry_rank(), received_[static_cast<size_t>(from)]++);
      const size_t size = kind == Kind::kShort ? SizeOf(name) / 2 : SizeOf(name);
      CHECK_EQ(statuses[i].size_bytes, size);
      CHECK_BYTES(PlaceOf(i, round), size, name);
    }
    CHECK_OK(ferry_waitall(sends.size(), sends.data(), nullptr));
    Cancel(in_vain);
  }

 private:
  size_t Count() const { return peers_.size() * kWindow; }
  int PeerOf(size_t index) const { return peers_[index % peers_.size()]; }
  // The message that a receive of this round takes if it names its source, and the room for it
  // where that is too little.
  uint64_t ComingTo(size_t index) const {
    const int from = PeerOf(index);
    return NameOf(from, ferry_rank(), received_[static_cast<size_t>(from)] + index / peers_.size());
  }
  size_t RoomOf(size_t index) const { return SizeOf(ComingTo(index)) / 2; }

  // Offers, and receives, that nothing matches.
  std::vector<ferry_request> StartInVain() {
    std::vector<ferry_request> requests(2 * peers_.size());
    for (size_t i = 0; i < peers_.size(); ++i) {
      CHECK_OK(ferry_isend(never_.data(), never_.size(), peers_[i], kNever, &requests[2 * i]));
      CHECK_OK(
          ferry_irecv(nothing_, sizeof(nothing_), peers_[i], kNever + 1, &requests[2 * i + 1]));
    }
    return requests;
  }
  static void Cancel(std::vector<ferry_request>& requests) {
    for (ferry_request& request : requests) {
      ferry_status status;
      CHECK_OK(ferry_cancel(request));
      CHECK_OK(ferry_wait(&request, &status));
      CHECK_EQ(status.cancelled, 1);
    }
  }

  uint8_t* PlaceOf(size_t index, int round) {
    return coming_.At(index, Mixed(static_cast<uint64_t>(round), index + 10));
  }

  const std::vector<int> peers_;
  Buffers going_;
  Buffers coming_;
  const std::vector<uint8_t> never_ = std::vector<uint8_t>(kLargest);
  uint8_t nothing_[8] = {};
  std::vector<uint64_t> sent_;
  std::vector<uint64_t> received_;
};

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc, 4);
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  seed = std::strtoul(argv[2], nullptr, 10);
  Traffic traffic;
  for (int round = 0; round < std::atoi(argv[1]); ++round) {
    traffic.Round(round);
    if (Mixed(static_cast<uint64_t>(round), 4) % 4 == 0) {
      usleep(static_cast<useconds_t>(std::atoi(argv[3])) * 1000);
    }
  }
  if (ferry_rank() == 0) {
    ferry::ranks::PrintLinkCounters();
  }
  CHECK_OK(ferry_finalize());
}
