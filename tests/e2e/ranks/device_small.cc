// device_small one_copy|late|unreached|threads|hold|vanish: small messages of device memory that
// only streams reach, between two ranks of a node.
//
// one_copy: where the receive is there, the receiver copies straight from the sender's memory.
// late: a sender goes on although no receiver has come for its message, and may use its buffer
// again. unreached: the same data arrive where no rank can import another's memory (a stand-in for
// CUDA that was told so). threads: with several threads a nonblocking send waits for no receiver
// either. hold: rank 1 receives, and is killed before it can; vanish: rank 1 sends, and is.
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/buffer.h"
#include "tests/e2e/ranks/check.h"

namespace {

using ferry::ranks::Buffer;
using ferry::ranks::CounterNamed;
using ferry::ranks::Kind;
using ferry::ranks::Right;
using enum ferry::ranks::Kind;

constexpr size_t kSizes[] = {1, 8, 32, 33, 4096, 8191, 8192};
constexpr size_t kMost = 8192;
constexpr int kGo = 1000;  // a tag

uint64_t NumberOf(int rank, int round, size_t size) {
  return static_cast<uint64_t>(rank) << 40 | static_cast<uint64_t>(round) << 20 | size;
}

void Tell() { CHECK_OK(ferry_send(nullptr, 0, Right(), kGo)); }
void Hear() { CHECK_OK(ferry_recv(nullptr, 0, Right(), kGo, nullptr)); }

void SendOne(Buffer& going, int round, size_t size) {
  going.Fill(0, size, NumberOf(ferry_rank(), round, size));
  CHECK_OK(ferry_send(going.at(0), size, Right(), round));
}
void ReceiveOne(Buffer& coming, int round, size_t size) {
  ferry_status status;
  CHECK_OK(ferry_recv(coming.at(0), size, Right(), round, &status));
  CHECK_EQ(status.size_bytes, size);
  coming.Check(0, size, NumberOf(Right(), round, size));
}

// Rank 0 sends once it knows that the receive is posted. Returns true if all messages have taken
// one copy: one whose receiver has no CPU just then may be sent on in two.
bool TakesOneCopy(Buffer& going, Buffer& coming) {
  constexpr int kRounds = 10;
  const uint64_t before = CounterNamed("path_heap_copy_messages");
  int messages = 0;
  for (const size_t size : kSizes) {
    for (int round = 0; round < kRounds; ++round, ++messages) {
      if (ferry_rank() == 0) {
        Hear();
        SendOne(going, round, size);
      } else {
        ferry_request request = 0;
        CHECK_OK(ferry_irecv(coming.at(0), size, 0, round, &request));
        Tell();
        CHECK_OK(ferry_wait(&request, nullptr));
        coming.Check(0, size, NumberOf(0, round, size));
      }
    }
  }
  int all = CounterNamed("path_heap_copy_messages") - before == static_cast<uint64_t>(messages);
  if (ferry_rank() == 1) {
    CHECK_OK(ferry_send(&all, sizeof(all), 0, kGo));
  } else {
    CHECK_OK(ferry_recv(&all, sizeof(all), 1, kGo, nullptr));
  }
  return all != 0;
}

void OneCopy(Kind to) {
  constexpr int kMostTries = 100;  // on a machine that is busy
  Buffer going(kDevice, kMost);
  Buffer coming(to, kMost);
  int tries = 1;
  while (!TakesOneCopy(going, coming)) {
    CHECK_EQ(++tries <= kMostTries, true);
  }
}

// Rank 1 is in the library, and looks, but waits for another message, which rank 0 sends once it
// may use its buffer again. More often than it takes to find that rank 1 is late.
void SendsBeforeReceives() {
  constexpr int kRounds = 8;
  Buffer going(kDevice, kMost);
  Buffer coming(kDevice, kMost);
  for (const size_t size : kSizes) {
    for (int round = 0; round < kRounds; ++round) {
      if (ferry_rank() == 0) {
        SendOne(going, round, size);
        going.Fill(0, size, 1);
        Tell();
        Hear();
      } else {
        Hear();
        ReceiveOne(coming, round, size);
        Tell();
      }
    }
  }
}

// Both send first, blocking and not.
void BothSendFirst() {
  constexpr int kRounds = 20;
  Buffer going(kDevice, kMost);
  Buffer coming(kDevice, kMost);
  for (int round = 0; round < kRounds; ++round) {
    const size_t size = kSizes[static_cast<size_t>(round) % std::size(kSizes)];
    SendOne(going, round, size);
    ReceiveOne(coming, round, size);
    going.Fill(0, size, NumberOf(ferry_rank(), round, size));
    ferry_request request = 0;
    CHECK_OK(ferry_isend(going.at(0), size, Right(), round, &request));
    CHECK_OK(ferry_wait(&request, nullptr));
    going.Fill(0, size, 1);
    ReceiveOne(coming, round, size);
  }
}

void ManySends() {
  constexpr int kMessages = 100;
  Buffer going(kDevice, kMost * kMessages);
  Buffer coming(kDevice, kMost);
  if (ferry_rank() == 0) {
    ferry_request requests[kMessages] = {};
    for (int i = 0; i < kMessages; ++i) {
      const size_t at = static_cast<size_t>(i) * kMost;
      going.Fill(at, kMost, NumberOf(0, i, kMost));
      CHECK_OK(ferry_isend(going.at(at), kMost, 1, i, &requests[i]));
    }
    CHECK_OK(ferry_waitall(kMessages, requests, nullptr));
    Tell();
  } else {
    Hear();
    for (int i = kMessages; i-- > 0;) {
      ReceiveOne(coming, i, kMost);
    }
  }
}

// The first of them asks the driver, and the others know.
void Unreached() {
  Buffer going(kDevice, kMost);
  Buffer coming(kDevice, kMost);
  int round = 0;
  for (int again = 0; again < 3; ++again) {
    for (const size_t size : kSizes) {
      if (ferry_rank() == 0) {
        SendOne(going, round, size);
        ReceiveOne(coming, round, size);
      } else {
        ReceiveOne(coming, round, size);
        SendOne(going, round, size);
      }
      ++round;
    }
  }
  // Others were moved before the receiver looked.
  CHECK_EQ(CounterNamed("path_heap_copy_messages") <= static_cast<uint64_t>(round) / 2, true);
}

void Threads() {
  Buffer going(kDevice, kMost);
  Buffer coming(kDevice, kMost);
  for (const size_t size : kSizes) {
    going.Fill(0, size, NumberOf(ferry_rank(), 0, size));
    ferry_request request = 0;
    CHECK_OK(ferry_isend(going.at(0), size, Right(), 0, &request));
    CHECK_OK(ferry_wait(&request, nullptr));
    SendOne(going, 1, size);
    ReceiveOne(coming, 0, size);
    ReceiveOne(coming, 1, size);
  }
}

void Dies(bool sender) {
  Buffer buffer(kDevice, kMost);
  CHECK_OK(ferry_barrier());
  const bool victim = ferry_rank() == 1;
  ferry_request request = 0;
  if (sender == victim) {
    CHECK_OK(ferry_isend(buffer.at(0), kMost, Right(), 3, &request));
  }
  if (victim) {
    kill(getpid(), SIGKILL);
  }
  const int error =
      sender ? ferry_recv(buffer.at(0), kMost, Right(), 3, nullptr) : ferry_wait(&request, nullptr);
  if (error != FERRY_SUCCESS) {
    CHECK_EQ(error, FERRY_ERR_PEER_DIED);
  }
  std::printf("survivor: %s\n", error == FERRY_SUCCESS ? "done before" : "told");
  std::fflush(stdout);
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc, 2);
  const std::string what = argv[1];
  CHECK_OK(ferry_init(what == "threads" ? FERRY_THREAD_MULTIPLE : FERRY_THREAD_SINGLE, nullptr));
  CHECK_EQ(ferry_size(), 2);
  if (what == "one_copy") {
    OneCopy(kDevice);
    OneCopy(kPinned);
    OneCopy(kPrivate);
  } else if (what == "late") {
    SendsBeforeReceives();
    BothSendFirst();
    ManySends();
  } else if (what == "unreached") {
    Unreached();
  } else if (what == "threads") {
    Threads();
  } else {
    Dies(what == "vanish");
  }
  CHECK_OK(ferry_barrier());
  if (ferry_rank() == 0) {
    std::printf("device_small: ok\n");
  }
  CHECK_OK(ferry_finalize());
}
