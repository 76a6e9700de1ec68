// Rank 0 fills all the heap blocks that stand in for its private buffers with messages to rank 2,
// which is killed before it receives any. Rank 0 then needs the same blocks for rank 1.
//
// Run it on three ranks. Ranks 0 and 1 print "rank R: all right" at the end.
#include <signal.h>

#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

constexpr size_t kSize = 64 << 10;
constexpr int kCount = 60;  // fit in the blocks
constexpr int kDataTag = 1;
constexpr int kWordTag = 2;

// The blocking sends return before their receives are posted: only the blocks allow that.
void SendAll(int destination) {
  std::vector<char> buffer(kSize);
  for (int i = 0; i < kCount; ++i) {
    ferry::ranks::Fill(buffer.data(), kSize, static_cast<uint64_t>(i));
    CHECK_OK(ferry_send(buffer.data(), kSize, destination, kDataTag));
  }
  const int word = 1;
  CHECK_OK(ferry_send(&word, sizeof(word), destination, kWordTag));
}

void ReceiveWord(int source) {
  int word = 0;
  CHECK_OK(ferry_recv(&word, sizeof(word), source, kWordTag, nullptr));
}

}  // namespace

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  if (ferry_rank() == 2) {
    ReceiveWord(0);
    raise(SIGKILL);
  }
  if (ferry_rank() == 0) {
    SendAll(2);
    int word = 0;
    CHECK_EQ(ferry_recv(&word, sizeof(word), 2, kWordTag, nullptr), FERRY_ERR_PEER_DIED);
    const std::vector<char> buffer(kSize);
    CHECK_EQ(ferry_send(buffer.data(), kSize, 2, kDataTag), FERRY_ERR_PEER_DIED);
    SendAll(1);
  } else {
    ReceiveWord(0);
    std::vector<char> buffer(kSize);
    for (int i = 0; i < kCount; ++i) {
      CHECK_OK(ferry_recv(buffer.data(), kSize, 0, kDataTag, nullptr));
      CHECK_BYTES(buffer.data(), kSize, static_cast<uint64_t>(i));
    }
  }
  ferry::ranks::Say("all right");
  CHECK_OK(ferry_finalize());
  return 0;
}
