// follows TAG [COMMAND]: one of several programs that follow each other in the slots of a job. It
// passes messages round the ring of all ranks, takes them from any source and with any tag, and so
// would meet those of another program; and it leaves messages behind that are never received. With
// COMMAND the ranks run that in a shell while they are in the job. Each prints "rank R: TAG".
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"

using ferry::ranks::Left;
using ferry::ranks::Right;

namespace {

constexpr size_t kSizes[] = {8, 5000, 300000};
constexpr int kLeftBehind = 20;
constexpr int kTagOfThose = 9999;

void PassRound(int tag) {
  for (const size_t size : kSizes) {
    std::vector<uint8_t> out(size);
    std::vector<uint8_t> in(size);
    const auto name = static_cast<uint64_t>(tag) * ferry_size() + ferry_rank();
    ferry::ranks::Fill(out.data(), size, name);
    ferry_request send = FERRY_REQUEST_NULL;
    CHECK_OK(ferry_isend(out.data(), size, Right(), tag, &send));
    ferry_status status{};
    CHECK_OK(ferry_recv(in.data(), size, FERRY_ANY_SOURCE, FERRY_ANY_TAG, &status));
    CHECK_EQ(status.tag, tag);
    CHECK_EQ(status.source, Left());
    CHECK_EQ(status.size_bytes, size);
    CHECK_BYTES(in.data(), size, static_cast<uint64_t>(tag) * ferry_size() + Left());
    CHECK_OK(ferry_wait(&send, nullptr));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: ferryrun ... follows TAG [COMMAND]\n");
    return 9;
  }
  const int tag = std::atoi(argv[1]);
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  PassRound(tag);
  if (argc > 2) {
    std::printf("rank %d: it exited with %d\n", ferry_rank(), WEXITSTATUS(std::system(argv[2])));
  }
  CHECK_OK(ferry_barrier());  // or a peer's receives might take what is left behind
  for (int i = 0; i < kLeftBehind; ++i) {
    CHECK_OK(ferry_send(&i, sizeof(i), Right(), kTagOfThose));
  }
  std::printf("rank %d: %d\n", ferry_rank(), tag);
  CHECK_OK(ferry_finalize());
  return 0;
}
