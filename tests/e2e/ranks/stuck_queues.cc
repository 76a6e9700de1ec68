// Ranks in a ring with matched requests and queues, for `ferryctl why`. Each first prints
// "rank R: under way". A rank that has nothing to do sleeps outside Ferry.
//
// Two ranks that get stuck:
//   stuck_queues match      rank 0 offers a request, for which rank 1 makes none
//   stuck_queues start      rank 0 waits for a matched receive, whose send rank 1 never starts
//   stuck_queues queue      likewise, and a stream of rank 0 waits, for which rank 0 waits
// Any number of ranks that get stuck:
//   stuck_queues circle     the stream of each receives before it sends
//   stuck_queues sends      the stream of each sends before it receives
//   stuck_queues later      as `circle`, a thousand rounds after some that were well
// Ranks that go on for ever, with kernels between their messages:
//   stuck_queues halo       each starts its receive and its send, and then waits for both
//   stuck_queues relay      rank 0 sends and receives, the others receive and send on
#include <unistd.h>

#include <cstdio>
#include <random>
#include <string_view>

#include "ferry/ferry.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/check.h"
#include "tests/e2e/ranks/queue.h"

namespace {

using namespace ferry::ranks;  // NOLINT: the helpers of this folder

long in = 0;
long out = 0;
ferry_request requests[2];  // the receive, the send

ferry_request& Receive() { return requests[0]; }
ferry_request& Send() { return requests[1]; }

void MakeRequests() {
  const int left = (ferry_rank() + ferry_size() - 1) % ferry_size();
  const int right = (ferry_rank() + 1) % ferry_size();
  CHECK_OK(ferry_recv_init(&in, sizeof(in), left, 3, &Receive()));
  CHECK_OK(ferry_send_init(&out, sizeof(out), right, 3, &Send()));
}

void Enqueue(const Stream& stream, ferry_request request) {
  CHECK_OK(ferry_enqueue_start(stream.queue, request));
  CHECK_OK(ferry_enqueue_wait(stream.queue, request));
}

void EnqueueTogether(const Stream& stream) {
  CHECK_OK(ferry_enqueue_startall(stream.queue, 2, requests));
  CHECK_OK(ferry_enqueue_waitall(stream.queue, 2, requests));
}

// ---- Those that get stuck -----------------------------------------------------------------------

void GetStuck(std::string_view what) {
  const Stream stream;
  if (what == "later") {
    for (int round = 0; round < 10; ++round) {
      EnqueueTogether(stream);
    }
    CHECK_OK(ferry_queue_wait(stream.queue));
  }
  const bool sends_first = what == "sends";
  for (int round = 0; round < (what == "later" ? 1'000 : 1); ++round) {
    Enqueue(stream, sends_first ? Send() : Receive());
    if (what != "queue") {
      Enqueue(stream, sends_first ? Receive() : Send());
    }
  }
  CHECK_OK(ferry_queue_wait(stream.queue));
}

// ---- Those that go on ---------------------------------------------------------------------------

// A kernel that takes up to a tenth of a second: longer than the time between two looks.
void Compute(void* argument) {
  auto& random = *static_cast<std::minstd_rand*>(argument);
  usleep(static_cast<useconds_t>(random() % 100'000));
}

void GoOn(bool together) {
  const Stream stream;
  std::minstd_rand random(static_cast<unsigned>(ferry_rank() + 1));
  while (true) {
    for (int round = 0; round < 4; ++round) {
      if (together) {
        CHECK_OK(ferry_stream_launch(stream.stream, Compute, &random));
        EnqueueTogether(stream);
        continue;
      }
      Enqueue(stream, ferry_rank() == 0 ? Send() : Receive());
      CHECK_OK(ferry_stream_launch(stream.stream, Compute, &random));
      Enqueue(stream, ferry_rank() == 0 ? Receive() : Send());
    }
    CHECK_OK(ferry_queue_wait(stream.queue));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  std::printf("rank %d: under way\n", ferry_rank());
  std::fflush(stdout);
  MakeRequests();
  if (what != "match" || ferry_rank() == 0) {
    CHECK_OK(ferry_matchall(2, requests));
  }
  if (what == "start" && ferry_rank() == 0) {
    CHECK_OK(ferry_start(Receive()));
    CHECK_OK(ferry_wait(&Receive(), nullptr));
  } else if (what == "halo" || what == "relay") {
    GoOn(what == "halo");
  } else if (what != "match" && what != "start" && (what != "queue" || ferry_rank() == 0)) {
    GetStuck(what);
  }
  while (true) {
    pause();
  }
}
