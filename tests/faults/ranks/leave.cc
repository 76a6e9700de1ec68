// Rank 0 hears that the last rank has died, and leaves; the others wait for more than it has sent.
// They learn that it has left, and so on, though nobody that they wait for has died.
//
// Run it on four ranks or more. All but the last print "rank R: all right".
#include <signal.h>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

constexpr int kSentTag = 1;
constexpr int kNeverTag = 2;

}  // namespace

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  CHECK_OK(ferry_barrier());  // nobody may die while others still join
  const int self = ferry_rank();
  const int last = ferry_size() - 1;
  int word = 0;
  if (self == last) {
    raise(SIGKILL);
  } else if (self == 0) {
    for (int peer = 1; peer < last; ++peer) {
      CHECK_OK(ferry_send(&peer, sizeof(peer), peer, kSentTag));
    }
    CHECK_EQ(ferry_recv(&word, sizeof(word), last, kNeverTag, nullptr), FERRY_ERR_PEER_DIED);
  } else {
    // Each waits for the one before: rank 1 for rank 0, which leaves, rank 2 for rank 1, ...
    CHECK_EQ(ferry_recv(&word, sizeof(word), self - 1, kNeverTag, nullptr), FERRY_ERR_NOT_FOUND);
    CHECK_OK(ferry_recv(&word, sizeof(word), 0, kSentTag, nullptr));
    CHECK_EQ(word, self);
    CHECK_EQ(ferry_recv(&word, sizeof(word), 0, kNeverTag, nullptr), FERRY_ERR_NOT_FOUND);
    CHECK_EQ(ferry_send(&word, sizeof(word), 0, kSentTag), FERRY_ERR_NOT_FOUND);
  }
  ferry::ranks::Say("all right");
  CHECK_OK(ferry_finalize());
  return 0;
}
