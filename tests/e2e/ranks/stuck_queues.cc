// Two ranks that get stuck with matched requests and queues, for `ferryctl why`. Each first prints
// "rank R: under way". A rank that has nothing to do sleeps outside Ferry.
//
//   stuck_queues match      rank 0 offers a request, for which rank 1 makes none
//   stuck_queues start      rank 0 waits for a matched receive, whose send rank 1 never starts
//   stuck_queues queue      likewise, and a stream of rank 0 waits, for which rank 0 waits
//   stuck_queues circle     the stream of each receives before it sends
#include <unistd.h>

#include <cstdio>
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

void MakeRequests() {
  CHECK_OK(ferry_recv_init(&in, sizeof(in), Partner(), 3, &requests[0]));
  CHECK_OK(ferry_send_init(&out, sizeof(out), Partner(), 3, &requests[1]));
}

void ByQueue(bool sends) {
  const Stream stream;
  for (const ferry_request request : requests) {
    if (request == requests[0] || sends) {
      CHECK_OK(ferry_enqueue_start(stream.queue, request));
      CHECK_OK(ferry_enqueue_wait(stream.queue, request));
    }
  }
  CHECK_OK(ferry_queue_wait(stream.queue));
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
    CHECK_OK(ferry_start(requests[0]));
    CHECK_OK(ferry_wait(&requests[0], nullptr));
  } else if (what == "circle" || (what == "queue" && ferry_rank() == 0)) {
    ByQueue(what == "circle");
  }
  while (true) {
    pause();
  }
}
