// forks ROUNDS: each rank exchanges messages with all ranks of other nodes, and forks in between:
// children that end as programs do, that call the library, and that live longer than their parent.
// They hold descriptors of the parent's links, and must not disturb what goes by them. Rank 0
// prints its counters of direct links.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr size_t kSizes[] = {8, 4096, 70000, 1000000};
constexpr size_t kLargest = 1000000;

void Exchange(const std::vector<int>& peers, int tag) {
  const size_t size = kSizes[static_cast<size_t>(tag) % std::size(kSizes)];
  const auto name = static_cast<uint64_t>(tag);
  std::vector<uint8_t> out(size);
  std::vector<std::vector<uint8_t>> in(peers.size(), std::vector<uint8_t>(size));
  ferry::ranks::Fill(out.data(), size, name);
  std::vector<ferry_request> requests(2 * peers.size());
  for (size_t i = 0; i < peers.size(); ++i) {
    CHECK_OK(ferry_irecv(in[i].data(), size, peers[i], tag, &requests[2 * i]));
    CHECK_OK(ferry_isend(out.data(), size, peers[i], tag, &requests[2 * i + 1]));
  }
  CHECK_OK(ferry_waitall(requests.size(), requests.data(), nullptr));
  for (const std::vector<uint8_t>& bytes : in) {
    CHECK_BYTES(bytes.data(), size, name);
  }
}

void ExpectGoodEnd(pid_t child) {
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
}

// With the destructors of all libraries.
void ForkOneThatEnds() {
  const pid_t child = fork();
  if (child == 0) {
    std::exit(0);
  }
  ExpectGoodEnd(child);
}

void ForkOneThatCalls(int peer) {
  const pid_t child = fork();
  if (child == 0) {
    CHECK_EQ(ferry_send("x", 1, peer, 0), FERRY_ERR_FORKED);
    CHECK_EQ(ferry_finalize(), FERRY_ERR_FORKED);
    _exit(0);
  }
  ExpectGoodEnd(child);
}

// It ends when its parent has.
void ForkOneThatStays() {
  int life[2];
  CHECK_EQ(pipe(life), 0);
  if (fork() == 0) {
    close(life[1]);
    char nothing = 0;
    _exit(read(life[0], &nothing, 1) == 0 ? 0 : 1);
  }
  close(life[0]);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc, 2);
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  const std::vector<int> peers = ferry::ranks::PeersOfOtherNodes();
  for (int round = 0; round < std::atoi(argv[1]); ++round) {
    Exchange(peers, round);
    switch (round % 8) {
      case 3:
        ForkOneThatEnds();
        break;
      case 5:
        ForkOneThatCalls(peers[0]);
        break;
      case 7:
        ForkOneThatStays();
        break;
    }
  }
  if (ferry_rank() == 0) {
    ferry::ranks::PrintLinkCounters();
  }
  CHECK_OK(ferry_finalize());
}
