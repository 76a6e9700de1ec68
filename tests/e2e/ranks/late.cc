// late MARKER: sends of ordinary memory whose receivers come late, between two ranks of a node.
//
// A blocking send ends although its receive starts only afterwards, whether the receiver waits for
// another message or computes; so do two that are made towards each other. Its buffer is the
// application's again. A buffer that is unmapped while it is being sent fails its own message, at
// both ends, and nothing else. MARKER is a file that rank 0 makes when the other rank need compute
// no longer.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr int kData = 1;
constexpr int kGo = 9;
constexpr size_t kSizes[] = {9000, 65536, 131072, 131073, 524288};

void Tell(int rank) { CHECK_OK(ferry_send(nullptr, 0, rank, kGo)); }
void Await(int rank) { CHECK_OK(ferry_recv(nullptr, 0, rank, kGo, nullptr)); }

void SendEach(int to, uint8_t first) {
  for (const size_t size : kSizes) {
    std::vector<uint8_t> bytes(size, first++);
    CHECK_OK(ferry_send(bytes.data(), size, to, kData));
    std::memset(bytes.data(), 0xee, size);
  }
  for (const size_t size : kSizes) {
    std::vector<uint8_t> bytes(size, first++);
    ferry_request request;
    CHECK_OK(ferry_isend(bytes.data(), size, to, kData, &request));
    CHECK_OK(ferry_wait(&request, nullptr));
    CHECK_EQ(request, FERRY_REQUEST_NULL);
    std::memset(bytes.data(), 0xee, size);
  }
}

void ReceiveEach(int from, uint8_t first) {
  for (int form = 0; form < 2; ++form) {
    for (const size_t size : kSizes) {
      std::vector<uint8_t> bytes(size);
      ferry_status status;
      CHECK_OK(ferry_recv(bytes.data(), size, from, kData, &status));
      CHECK_EQ(status.size_bytes, size);
      CHECK_EQ(bytes[0], first);
      CHECK_EQ(std::memcmp(bytes.data(), bytes.data() + 1, size - 1), 0);
      ++first;
    }
  }
}

void ToOneThatWaits(int rank) {
  if (rank == 0) {
    SendEach(1, 1);
    Tell(1);
  } else {
    Await(0);
    ReceiveEach(0, 1);
  }
}

void ToOneThatComputes(int rank, const char* marker) {
  if (rank == 0) {
    SendEach(1, 50);
    const int fd = open(marker, O_CREAT | O_WRONLY, 0600);
    CHECK_EQ(fd >= 0, true);
    close(fd);
  } else {
    while (access(marker, F_OK) != 0) {
      sched_yield();
    }
    ReceiveEach(0, 50);
  }
}

void TowardsEachOther(int rank) {
  const auto first = static_cast<uint8_t>(100 + 50 * rank);
  SendEach(1 - rank, first);
  ReceiveEach(1 - rank, static_cast<uint8_t>(250 - first));
}

// Of the three messages the one in the middle cannot be read.
void OfABufferThatIsGone(int rank) {
  constexpr size_t kBytes = 65536;
  if (rank == 0) {
    std::vector<uint8_t> good(kBytes, 7);
    void* const gone =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(gone != MAP_FAILED, true);
    ferry_request requests[3];
    for (int i = 0; i < 3; ++i) {
      CHECK_OK(ferry_isend(i == 1 ? gone : good.data(), kBytes, 1, kData + i, &requests[i]));
    }
    CHECK_EQ(munmap(gone, kBytes), 0);
    CHECK_OK(ferry_wait(&requests[0], nullptr));  // their receives have not started
    CHECK_OK(ferry_wait(&requests[2], nullptr));
    Tell(1);
    CHECK_EQ(ferry_wait(&requests[1], nullptr), FERRY_ERR_BUFFER);
  } else {
    Await(0);
    std::vector<uint8_t> bytes[3];
    ferry_request requests[3];
    for (int i = 0; i < 3; ++i) {
      bytes[i].resize(kBytes);
      CHECK_OK(ferry_irecv(bytes[i].data(), kBytes, 0, kData + i, &requests[i]));
    }
    CHECK_EQ(ferry_wait(&requests[1], nullptr), FERRY_ERR_BUFFER);
    CHECK_OK(ferry_wait(&requests[0], nullptr));
    CHECK_OK(ferry_wait(&requests[2], nullptr));
    CHECK_EQ(bytes[0][kBytes - 1], 7);
    CHECK_EQ(bytes[2][kBytes - 1], 7);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc, 2);
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  const int rank = ferry_rank();
  ToOneThatWaits(rank);
  ToOneThatComputes(rank, argv[1]);
  TowardsEachOther(rank);
  OfABufferThatIsGone(rank);
  CHECK_OK(ferry_finalize());
}
