// A rank maps nothing of the others of its node before it talks to them. The last rank dies before
// any other has talked to it.
//
// Run it on four ranks of one node, or more. All but the last print "rank R: all right".
#include <signal.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

int MappedInboxes() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("ferry-inbox") != line.npos ? 1 : 0;
  }
  return count;
}

}  // namespace

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  CHECK_EQ(MappedInboxes(), 1);  // its own inbox
  const int last = ferry_size() - 1;
  int number = ferry_rank();
  if (number == last) {
    raise(SIGKILL);
  }
  // Blocks until the death is known.
  CHECK_EQ(ferry_recv(&number, sizeof(number), last, 1, nullptr), FERRY_ERR_PEER_DIED);
  CHECK_EQ(MappedInboxes(), 1);
  for (const size_t size_bytes : {sizeof(number), size_t{1} << 20}) {
    const std::string bytes(size_bytes, 'x');
    CHECK_EQ(ferry_send(bytes.data(), bytes.size(), last, 1), FERRY_ERR_PEER_DIED);
    CHECK_EQ(std::string(ferry_last_error()).empty(), false);
  }
  CHECK_EQ(MappedInboxes(), 1);
  if (ferry_rank() == 0) {
    CHECK_OK(ferry_send(&number, sizeof(number), 1, 2));
    CHECK_EQ(MappedInboxes(), 2);
  } else if (ferry_rank() == 1) {
    CHECK_OK(ferry_recv(&number, sizeof(number), 0, 2, nullptr));
    CHECK_EQ(MappedInboxes(), 1);
  }
  ferry::ranks::Say("all right");
  CHECK_OK(ferry_finalize());
  return 0;
}
