// Three ranks on three nodes: rank 0 receives long messages from rank 2 all the time, in rounds. At
// SIGUSR1 (whose sender has stopped the daemon of rank 2) it leaves those of the round alone,
// receives from rank 1, and says "served", with how many of rank 2's are still under way, and how
// many nanoseconds that took. At SIGUSR2 (that daemon goes on) it ends the round.
//
//   neighbours host|private MESSAGES
//
// of which memory the messages are, and how many come from rank 1. All checks are of errors: a node
// that was only stopped for a while causes no error.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

using ferry::ranks::NowNs;
using ferry::ranks::Say;
using ferry::ranks::StopOnError;

constexpr size_t kBytes = 2 << 20;
constexpr int kWindow = 100;
constexpr int kData = 1;
constexpr int kWord = 2;

std::atomic<int> is_stopped{0};  // set by signals
std::atomic<int> goes_on{0};

void SendWord(int word, int to) { StopOnError(ferry_send(&word, sizeof(word), to, kWord)); }

int ReceiveWord(int from) {
  int word = 0;
  StopOnError(ferry_recv(&word, sizeof(word), from, kWord, nullptr));
  return word;
}

// Drops those that are over.
void Test(std::vector<ferry_request>* requests) {
  for (size_t i = 0; i < requests->size();) {
    int done = 0;
    StopOnError(ferry_test(&(*requests)[i], &done, nullptr));
    if (done == 0) {
      ++i;
      continue;
    }
    (*requests)[i] = requests->back();
    requests->pop_back();
  }
}

void Receive(char* from_stopped, char* from_other, int messages) {
  std::vector<ferry_request> requests;
  for (long round = 0; requests.empty(); ++round) {
    if (round > 0) {
      SendWord(1, 2);
    }
    requests.resize(kWindow);
    for (ferry_request& request : requests) {
      StopOnError(ferry_irecv(from_stopped, kBytes, 2, kData, &request));
    }
    while (!requests.empty() && is_stopped == 0) {
      Test(&requests);
    }
    if (round == 2) {
      Say("under way");
    }
  }
  const uint64_t begun_ns = NowNs();
  SendWord(messages, 1);
  for (int i = 0; i < messages; ++i) {
    StopOnError(ferry_recv(from_other, kBytes, 1, kData, nullptr));
  }
  const uint64_t took_ns = NowNs() - begun_ns;
  Test(&requests);
  std::printf("rank 0: served %zu %llu\n", requests.size(),
              static_cast<unsigned long long>(took_ns));
  std::fflush(stdout);
  while (goes_on == 0) {
    usleep(1000);
  }
  StopOnError(ferry_waitall(requests.size(), requests.data(), nullptr));
  SendWord(0, 2);
}

void SendRounds(const char* data) {
  do {
    std::vector<ferry_request> requests(kWindow);
    for (ferry_request& request : requests) {
      StopOnError(ferry_isend(data, kBytes, 0, kData, &request));
    }
    StopOnError(ferry_waitall(requests.size(), requests.data(), nullptr));
  } while (ReceiveWord(0) != 0);
}

void Serve(const char* data) {
  for (int left = ReceiveWord(0); left > 0; --left) {
    StopOnError(ferry_send(data, kBytes, 0, kData));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGUSR1, [](int) { is_stopped = 1; });
  std::signal(SIGUSR2, [](int) { goes_on = 1; });
  CHECK_EQ(argc, 3);
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  CHECK_EQ(ferry_size(), 3);
  std::vector<char> memory(2 * kBytes, 'x');
  void* data = memory.data();
  if (argv[1] == std::string_view("host")) {
    CHECK_OK(ferry_alloc(2 * kBytes, FERRY_MEMORY_HOST, 0, &data));
  }
  char* const bytes = static_cast<char*>(data);
  if (ferry_rank() == 0) {
    Receive(bytes, bytes + kBytes, std::atoi(argv[2]));
  } else if (ferry_rank() == 1) {
    Serve(bytes);
  } else {
    SendRounds(bytes);
  }
  Say("all right");
  CHECK_OK(ferry_finalize());
}
