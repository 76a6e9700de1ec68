// receiver_first on|off: two ranks on two nodes exchange messages that are too long to travel with
// an RTS, by receives that are there first and by others: in many orders, with wildcards,
// cancelled, too short, from persistent requests. Every byte is checked, and the counters say which
// way the messages went.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr size_t kBytes = 200'000;
constexpr int kSlots = 12;

int Peer() { return 1 - ferry_rank(); }

uint8_t* Buffers() {
  void* memory = nullptr;
  CHECK_OK(ferry_alloc(kSlots * kBytes, FERRY_MEMORY_HOST, 0, &memory));
  return static_cast<uint8_t*>(memory);
}

uint64_t Written() { return ferry::ranks::CounterNamed("written_messages"); }

// The receive is posted, and its source has heard of it, before the message is sent: the barrier's
// messages travel behind the RTR.
void Expected(uint8_t* going, uint8_t* coming, uint64_t message, size_t capacity) {
  ferry_request receive = 0;
  ferry_request send = 0;
  ferry_status status;
  CHECK_OK(ferry_irecv(coming, capacity, Peer(), 1, &receive));
  CHECK_OK(ferry_barrier());
  ferry::ranks::Fill(going, kBytes, message);
  CHECK_OK(ferry_isend(going, kBytes, Peer(), 1, &send));
  CHECK_EQ(ferry_wait(&receive, &status), capacity < kBytes ? FERRY_ERR_TRUNCATED : FERRY_SUCCESS);
  CHECK_EQ(status.size_bytes, capacity < kBytes ? capacity : kBytes);
  CHECK_EQ(status.source, Peer());
  CHECK_EQ(status.tag, 1);
  CHECK_OK(ferry_wait(&send, nullptr));
  CHECK_BYTES(coming, status.size_bytes, message);
}

// The first receives make the daemon register the memory; from some message on, all are written.
void BecomesReceiverFirst(uint8_t* going, uint8_t* coming, bool on) {
  constexpr int kPatience = 5000;
  int round = 0;
  if (on) {
    for (uint64_t ours = 0, theirs = 0; ours == 0 || theirs == 0; ++round) {
      CHECK_EQ(round < kPatience, true);
      Expected(going, coming, static_cast<uint64_t>(round), kBytes);
      ours = Written();
      ferry_request request = 0;
      CHECK_OK(ferry_isend(&ours, sizeof(ours), Peer(), 2, &request));
      CHECK_OK(ferry_recv(&theirs, sizeof(theirs), Peer(), 2, nullptr));
      CHECK_OK(ferry_wait(&request, nullptr));
    }
  }
  const uint64_t before = Written();
  constexpr int kMessages = 50;
  for (int i = 0; i < kMessages; ++i) {
    Expected(going, coming, static_cast<uint64_t>(round) + static_cast<uint64_t>(i), kBytes);
  }
  CHECK_EQ(Written() - before, on ? kMessages : 0);
  Expected(going, coming, 77, kBytes - 1);
  Expected(going, coming, 78, 1);
  Expected(going, coming, 79, kBytes);
}

void Cancels(uint8_t* going, uint8_t* coming) {
  ferry_request receive = 0;
  ferry_status status;
  CHECK_OK(ferry_irecv(coming, kBytes, Peer(), 3, &receive));
  CHECK_OK(ferry_barrier());
  CHECK_OK(ferry_cancel(receive));
  CHECK_OK(ferry_wait(&receive, &status));
  CHECK_EQ(status.cancelled, 1);
  CHECK_OK(ferry_barrier());
  Expected(going, coming, 80, kBytes);
  // The receive is cancelled while the message may be on its way: this receive gets it, or the next
  // one.
  for (uint64_t i = 0; i < 100; ++i) {
    ferry_request send = 0;
    CHECK_OK(ferry_irecv(coming, kBytes, Peer(), 4, &receive));
    ferry::ranks::Fill(going, kBytes, i);
    CHECK_OK(ferry_isend(going, kBytes, Peer(), 4, &send));
    CHECK_OK(ferry_cancel(receive));
    CHECK_OK(ferry_wait(&receive, &status));
    if (status.cancelled != 0) {
      CHECK_OK(ferry_recv(coming, kBytes, Peer(), 4, &status));
    }
    CHECK_OK(ferry_wait(&send, nullptr));
    CHECK_BYTES(coming, kBytes, i);
  }
}

void Persistent(uint8_t* going, uint8_t* coming) {
  std::array<ferry_request, 2> requests;
  CHECK_OK(ferry_recv_init(coming, kBytes, Peer(), 5, &requests[0]));
  CHECK_OK(ferry_send_init(going, kBytes, Peer(), 5, &requests[1]));
  for (uint64_t i = 0; i < 50; ++i) {
    ferry::ranks::Fill(going, kBytes, i);
    CHECK_OK(ferry_start(requests[0]));
    CHECK_OK(ferry_start(requests[1]));
    CHECK_OK(ferry_waitall(requests.size(), requests.data(), nullptr));
    CHECK_BYTES(coming, kBytes, i);
  }
  for (ferry_request& request : requests) {
    CHECK_OK(ferry_request_free(&request));
  }
}

// Both ranks send kSlots messages of three tags in their own order, and receive as many, some by
// wildcards, in another order. Messages of one tag keep their order, large and small.
void ManyOrders(uint8_t* going, uint8_t* coming, uint64_t round) {
  std::mt19937 both(static_cast<uint32_t>(round));  // both ranks know what both send
  std::array<std::vector<int>, 2> tags;
  std::array<std::vector<size_t>, 2> sizes;
  for (int rank = 0; rank < 2; ++rank) {
    for (int i = 0; i < kSlots; ++i) {
      tags[rank].push_back(static_cast<int>(10 + both() % 3));
      sizes[rank].push_back(both() % 4 == 0 ? 100 + both() % 9000 : kBytes - both() % 60'000);
    }
  }
  std::mt19937 own(static_cast<uint32_t>(2 * round + static_cast<uint64_t>(ferry_rank())));
  std::vector<ferry_request> receives;
  std::vector<ferry_request> sends;
  // Posts one receive for each message that comes. A wildcard may take a message that was meant for
  // a later receive, so all receives behind the first wildcard are wildcards.
  std::vector<int> wanted = tags[Peer()];
  std::shuffle(wanted.begin(), wanted.end(), own);
  const size_t wild = own() % 2 == 0 ? wanted.size() : own() % wanted.size();
  for (size_t i = 0; i < wanted.size() || sends.size() < wanted.size();) {
    if (i < wanted.size() && (own() % 2 == 0 || sends.size() == wanted.size())) {
      const bool any = i >= wild;
      receives.push_back(0);
      CHECK_OK(ferry_irecv(coming + i * kBytes, kBytes,
                           any && own() % 2 == 0 ? FERRY_ANY_SOURCE : Peer(),
                           any ? FERRY_ANY_TAG : wanted[i], &receives.back()));
      ++i;
    } else if (sends.size() < wanted.size()) {
      const size_t n = sends.size();
      const size_t size_bytes = sizes[ferry_rank()][n];
      ferry::ranks::Fill(going + n * kBytes, size_bytes, round * 1000 + n);
      sends.push_back(0);
      CHECK_OK(ferry_isend(going + n * kBytes, size_bytes, Peer(), tags[ferry_rank()][n],
                           &sends.back()));
    }
  }
  std::vector<ferry_status> statuses(receives.size());
  CHECK_OK(ferry_waitall(receives.size(), receives.data(), statuses.data()));
  CHECK_OK(ferry_waitall(sends.size(), sends.data(), nullptr));
  std::array<size_t, 3> next{};  // by tag: where to look for the next message of it
  for (size_t i = 0; i < receives.size(); ++i) {
    const int tag = statuses[i].tag;
    CHECK_EQ(statuses[i].source, Peer());
    CHECK_EQ(i < wild ? tag : wanted[i], wanted[i]);
    size_t& n = next[static_cast<size_t>(tag - 10)];
    while (n < tags[Peer()].size() && tags[Peer()][n] != tag) {
      ++n;
    }
    CHECK_EQ(n < tags[Peer()].size(), true);
    CHECK_EQ(statuses[i].size_bytes, sizes[Peer()][n]);
    CHECK_BYTES(coming + i * kBytes, statuses[i].size_bytes, round * 1000 + n);
    ++n;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc, 2);
  const bool on = std::string_view(argv[1]) == "on";
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  CHECK_EQ(ferry_size(), 2);
  CHECK_EQ(ferry_node_of(0) != ferry_node_of(1), true);
  uint8_t* going = Buffers();
  uint8_t* coming = Buffers();
  BecomesReceiverFirst(going, coming, on);
  Cancels(going, coming);
  Persistent(going, coming);
  for (uint64_t round = 0; round < 60; ++round) {
    ManyOrders(going, coming, round);
  }
  CHECK_EQ(ferry::ranks::CounterNamed("rtrs") > 0, on);
  CHECK_EQ(Written() > 0, on);
  CHECK_EQ(ferry::ranks::CounterNamed("errors"), 0);
  CHECK_OK(ferry_finalize());
}
