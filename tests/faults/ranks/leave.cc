// Ranks that die, and leave, while others need them. Run it on three ranks or more; the last one
// dies.
//
//   leave early     rank 0 hears of the death, and leaves; the others wait for more than it has
//                   sent. They learn that it has left, and so on, though no rank that they wait for
//                   has died
//   leave unused    dies before any other has talked to it. A rank maps nothing of the others of
//                   its node before that
//   leave staged    rank 0 fills all the heap blocks that stand in for its private buffers with
//                   messages to the last rank, which receives none. Then it needs them for rank 1
//   leave stopped   of two ranks with a link, the last is stopped: it takes nothing. Rank 0 starts
//                   more messages to it than may be on their way, then sends it blocks: what waits
//                   before these would take the room that the receiver has for them. Then it is
//                   killed
//   leave late      rank 0 leaves, because of the death (otherwise it would wait for the others
//                   first), while a heap block, which stands in for its private buffer, waits for
//                   rank 1. That receives only after rank 0 is gone
//   leave barrier   of three ranks: dies in a barrier, once rank 0 waits there for rank 1 alone.
//                   That one comes later, finds that its barrier fails, and does not wait
//
// All but the last print "rank R: all right"; with "late", rank 1 prints "told: " and the error.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ferry/ferry.h"
#include "ferry/one_sided.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/mapped.h"
#include "tests/faults/ranks/say.h"
#include "tests/support/processes.h"

namespace {

using ferry::ranks::Say;

constexpr int kDataTag = 1;
constexpr int kWordTag = 2;
constexpr size_t kBlock = 64 << 10;
constexpr int kBlocks = 60;  // that there are

int Last() { return ferry_size() - 1; }

int Receive(int source, int tag, int* word) {
  return ferry_recv(word, sizeof(*word), source, tag, nullptr);
}

void Early() {
  const int self = ferry_rank();
  int word = 0;
  if (self == 0) {
    for (int peer = 1; peer < Last(); ++peer) {
      CHECK_OK(ferry_send(&peer, sizeof(peer), peer, kDataTag));
    }
    CHECK_EQ(Receive(Last(), kWordTag, &word), FERRY_ERR_PEER_DIED);
    return;
  }
  // Each waits for the one before: rank 1 for rank 0, which leaves, rank 2 for rank 1, ...
  CHECK_EQ(Receive(self - 1, kWordTag, &word), FERRY_ERR_NOT_FOUND);
  CHECK_OK(Receive(0, kDataTag, &word));
  CHECK_EQ(word, self);
  CHECK_EQ(Receive(0, kWordTag, &word), FERRY_ERR_NOT_FOUND);
  const ferry_place there = {0, 1, 0};
  CHECK_REFUSED(ferry_put(FERRY_CONTEXT_DEFAULT, there, &word, sizeof(word)), FERRY_ERR_NOT_FOUND,
                "ferry_put: rank 0 has left the job");
  CHECK_EQ(ferry_send(&word, sizeof(word), 0, kDataTag), FERRY_ERR_NOT_FOUND);
}

void ExpectMapped(size_t inboxes) { CHECK_EQ(ferry::ranks::Mapped("ferry-inbox").size(), inboxes); }

void Unused() {
  int number = ferry_rank();
  // Blocks until the death is known.
  CHECK_EQ(Receive(Last(), 1, &number), FERRY_ERR_PEER_DIED);
  ExpectMapped(1);
  for (const size_t size_bytes : {sizeof(number), size_t{1} << 20}) {
    const std::string bytes(size_bytes, 'x');
    CHECK_EQ(ferry_send(bytes.data(), bytes.size(), Last(), 1), FERRY_ERR_PEER_DIED);
    CHECK_EQ(std::string(ferry_last_error()).empty(), false);
  }
  ExpectMapped(1);
  if (ferry_rank() == 0) {
    CHECK_OK(ferry_send(&number, sizeof(number), 1, 2));
    ExpectMapped(2);
  } else if (ferry_rank() == 1) {
    CHECK_OK(Receive(0, 2, &number));
    ExpectMapped(1);
  }
}

// The blocking sends return before their receives are posted: only the blocks allow that.
void SendAll(int destination) {
  std::vector<char> buffer(kBlock);
  for (int i = 0; i < kBlocks; ++i) {
    ferry::ranks::Fill(buffer.data(), kBlock, static_cast<uint64_t>(i));
    CHECK_OK(ferry_send(buffer.data(), kBlock, destination, kDataTag));
  }
  const int word = 1;
  CHECK_OK(ferry_send(&word, sizeof(word), destination, kWordTag));
}

void Staged() {
  int word = 0;
  std::vector<char> buffer(kBlock);
  if (ferry_rank() == 0) {
    SendAll(Last());
    CHECK_EQ(Receive(Last(), kWordTag, &word), FERRY_ERR_PEER_DIED);
    CHECK_EQ(ferry_send(buffer.data(), kBlock, Last(), kDataTag), FERRY_ERR_PEER_DIED);
    SendAll(1);
    return;
  }
  CHECK_OK(Receive(0, kWordTag, &word));
  for (int i = 0; i < kBlocks; ++i) {
    CHECK_OK(ferry_recv(buffer.data(), kBlock, 0, kDataTag, nullptr));
    CHECK_BYTES(buffer.data(), kBlock, static_cast<uint64_t>(i));
  }
}

void Stopped() {
  constexpr int kStarted = 200;  // more than wait for the receiver without its credit
  pid_t other = 0;
  CHECK_OK(ferry_recv(&other, sizeof(other), Last(), kWordTag, nullptr));
  while (ferry::ranks::CounterNamed("link_messages_sent") == 0) {
    CHECK_OK(ferry_send(nullptr, 0, Last(), kDataTag));
    CHECK_OK(ferry_recv(nullptr, 0, Last(), kDataTag, nullptr));
  }
  ferry::tests::Stop(other);
  const std::vector<char> small(1000);
  std::vector<ferry_request> requests(kStarted);
  for (ferry_request& request : requests) {
    CHECK_OK(ferry_isend(small.data(), small.size(), Last(), kDataTag, &request));
  }
  std::vector<char> buffer(kBlock);
  for (int i = 0; i < kBlocks; ++i) {
    CHECK_OK(ferry_send(buffer.data(), kBlock, Last(), kDataTag));
  }
  (void)kill(other, SIGKILL);
  for (ferry_request& request : requests) {
    const int code = ferry_wait(&request, nullptr);
    CHECK_EQ(code == FERRY_SUCCESS || code == FERRY_ERR_PEER_DIED, true);
  }
}

// The last rank's part in that.
void EchoUntilStopped() {
  const pid_t self = getpid();
  CHECK_OK(ferry_send(&self, sizeof(self), 0, kWordTag));
  for (;;) {
    CHECK_OK(ferry_recv(nullptr, 0, 0, kDataTag, nullptr));
    CHECK_OK(ferry_send(nullptr, 0, 0, kDataTag));
  }
}

void Late() {
  std::vector<char> buffer(kBlock);
  if (ferry_rank() == 0) {
    CHECK_OK(ferry_send(buffer.data(), kBlock, 1, kDataTag));
    const pid_t self = getpid();
    CHECK_OK(ferry_send(&self, sizeof(self), 1, kWordTag));
    return;
  }
  pid_t sender = 0;
  CHECK_OK(Receive(0, kWordTag, &sender));
  pollfd gone{static_cast<int>(syscall(SYS_pidfd_open, sender, 0)), POLLIN, 0};
  CHECK_EQ(gone.fd >= 0 || errno == ESRCH, true);
  if (gone.fd >= 0) {
    CHECK_EQ(poll(&gone, 1, -1), 1);
  }
  CHECK_EQ(ferry_recv(buffer.data(), kBlock, 0, kDataTag, nullptr), FERRY_ERR_NOT_FOUND);
  Say((std::string("told: ") + ferry_last_error()).c_str());
}

// Once a barrier has failed on a rank, the others do not wait for it there, now and later. By then
// the other one may have left.
void Barrier() {
  if (int word = 0; ferry_rank() == 1) {
    CHECK_EQ(Receive(Last(), kWordTag, &word), FERRY_ERR_PEER_DIED);
  }
  CHECK_EQ(ferry_barrier(), FERRY_ERR_PEER_DIED);
  const int later = ferry_barrier();
  CHECK_EQ(later == FERRY_ERR_PEER_DIED || later == FERRY_ERR_NOT_FOUND, true);
}

// Returns once the second round's message of rank 0 has come.
void AwaitTheSecondRound() {
  const uint64_t before = ferry::ranks::CounterNamed("unexpected_messages");
  std::thread([] { (void)ferry_barrier(); }).detach();
  while (ferry::ranks::CounterNamed("unexpected_messages") == before) {
    std::this_thread::yield();
  }
}

}  // namespace

int main(int, char** argv) {
  const std::string_view how = argv[1];
  CHECK_OK(ferry_init(how == "barrier" ? FERRY_THREAD_MULTIPLE : FERRY_THREAD_SINGLE, nullptr));
  if (how == "unused") {
    ExpectMapped(1);  // its own inbox
  } else {
    CHECK_OK(ferry_barrier());  // no rank may die while others still join
  }
  if (ferry_rank() == Last()) {
    if (int word = 0; how == "staged") {
      CHECK_OK(Receive(0, kWordTag, &word));
    } else if (how == "stopped") {
      EchoUntilStopped();
    } else if (how == "barrier") {
      AwaitTheSecondRound();
    }
    raise(SIGKILL);
  }
  const std::map<std::string_view, void (*)()> ways = {{"early", Early},   {"unused", Unused},
                                                       {"staged", Staged}, {"stopped", Stopped},
                                                       {"late", Late},     {"barrier", Barrier}};
  ways.at(how)();
  if (how != "late" || ferry_rank() == 0) {
    Say("all right");
  }
  CHECK_OK(ferry_finalize());
  return 0;
}
