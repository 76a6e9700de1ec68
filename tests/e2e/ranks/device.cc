// device sizes|windows|late|short|window|landings|mistakes|fails|words|touch|hold|vanish: messages
// from and to device memory that only streams reach (the emulated link's), so that this program,
// too, reaches it by ferry_memcpy alone.
//
// sizes: around the ring, each rank sends to its right neighbour and receives from its left one, of
// all sizes that take ways of their own, between device, heap, pinned and private memory.
// windows: many messages at a time, both ways. late: two ranks have used a direct link before; long
// messages give it up. short: others keep it. window: many at a time give it up, too. landings:
// long ones of host memory come by the link, for device memory, and find no room in the heap.
// mistakes: what is refused, and freed too early. fails: one message of several fails at both ends,
// in a job whose daemons were told so. words: a message each way fails, in a job on a stand-in for
// CUDA that was told so. touch: loads from device memory. hold: rank 0 sends, and rank 1, which
// receives, is killed in the middle; vanish: rank 0 receives, and rank 1, which sends, is.
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/buffer.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kLargest = 3 * kMiB + 12345;
constexpr size_t kSizes[] = {0,        1,     32,       33,           8191,    8192,
                             8193,     32769, 65535,    65536,        65537,   131075,
                             kMiB - 1, kMiB,  kMiB + 1, 2 * kMiB + 7, kLargest};

using ferry::ranks::Buffer;
using ferry::ranks::Kind;
using ferry::ranks::Left;
using ferry::ranks::Right;
using enum ferry::ranks::Kind;

uint64_t MessageOf(int sender, int tag) {
  return static_cast<uint64_t>(sender) * 1000 + static_cast<uint64_t>(tag);
}

// A byte behind the received ones must stay as it is.
constexpr size_t kBegin = 64;
constexpr uint8_t kStays = 0xa5;

void Exchange(Buffer& going, Buffer& coming, size_t size, int tag, int source) {
  going.Fill(kBegin, size, MessageOf(ferry_rank(), tag));
  CHECK_OK(ferry_memcpy(coming.at(kBegin + size), &kStays, 1));
  ferry_request requests[2] = {};
  ferry_status statuses[2] = {};
  CHECK_OK(ferry_irecv(coming.at(kBegin), size, source, tag, &requests[0]));
  CHECK_OK(ferry_isend(going.at(kBegin), size, Right(), tag, &requests[1]));
  CHECK_OK(ferry_waitall(2, requests, statuses));
  CHECK_EQ(statuses[0].size_bytes, size);
  CHECK_EQ(statuses[0].source, Left());
  coming.Check(kBegin, size, MessageOf(Left(), tag));
  coming.CheckByte(kBegin + size, kStays);
}

void BlockingRing(Buffer& going, Buffer& coming, size_t size, int tag) {
  going.Fill(kBegin, size, MessageOf(ferry_rank(), tag));
  const auto receive = [&] {
    ferry_status status;
    CHECK_OK(ferry_recv(coming.at(kBegin), size, Left(), tag, &status));
    CHECK_EQ(status.size_bytes, size);
  };
  if (ferry_rank() % 2 == 0) {
    CHECK_OK(ferry_send(going.at(kBegin), size, Right(), tag));
    receive();
  } else {
    receive();
    CHECK_OK(ferry_send(going.at(kBegin), size, Right(), tag));
  }
  coming.Check(kBegin, size, MessageOf(Left(), tag));
}

void PersistentRing(Buffer& going, Buffer& coming, size_t size) {
  ferry_request requests[2] = {};
  CHECK_OK(ferry_recv_init(coming.at(kBegin), size, Left(), 1, &requests[0]));
  CHECK_OK(ferry_send_init(going.at(kBegin), size, Right(), 1, &requests[1]));
  for (int round = 0; round < 3; ++round) {
    going.Fill(kBegin, size, MessageOf(ferry_rank(), 100 + round));
    CHECK_OK(ferry_start(requests[0]));
    CHECK_OK(ferry_start(requests[1]));
    CHECK_OK(ferry_waitall(2, requests, nullptr));
    coming.Check(kBegin, size, MessageOf(Left(), 100 + round));
  }
  CHECK_OK(ferry_request_free(&requests[0]));
  CHECK_OK(ferry_request_free(&requests[1]));
}

// A message longer than the buffer fills it; one that is there before its receive is kept.
void Truncated(Buffer& going, Buffer& coming, size_t size, size_t capacity) {
  going.Fill(kBegin, size, MessageOf(ferry_rank(), 2));
  CHECK_OK(ferry_memcpy(coming.at(kBegin + capacity), &kStays, 1));
  ferry_request request = 0;
  CHECK_OK(ferry_isend(going.at(kBegin), size, Right(), 2, &request));
  ferry_status status;
  CHECK_OK(ferry_probe(Left(), 2, &status));
  CHECK_EQ(status.size_bytes, size);
  CHECK_EQ(ferry_recv(coming.at(kBegin), capacity, FERRY_ANY_SOURCE, 2, &status),
           FERRY_ERR_TRUNCATED);
  CHECK_OK(ferry_wait(&request, nullptr));
  coming.Check(kBegin, capacity, MessageOf(Left(), 2));
  coming.CheckByte(kBegin + capacity, kStays);
}

void Sizes() {
  {
    Buffer fresh(kDevice, 100'000);
    const std::vector<uint8_t> zeros(fresh.size());
    std::vector<uint8_t> got(fresh.size(), 1);
    CHECK_OK(ferry_memcpy(got.data(), fresh.at(0), got.size()));
    CHECK_EQ(std::memcmp(got.data(), zeros.data(), got.size()), 0);
  }
  for (int from = kDevice; from < kKinds; ++from) {
    for (int to = kDevice; to < kKinds; ++to) {
      if (from != kDevice && to != kDevice) {
        continue;
      }
      Buffer going(static_cast<Kind>(from), kBegin + kLargest + 1);
      Buffer coming(static_cast<Kind>(to), kBegin + kLargest + 1);
      int tag = 0;
      for (const size_t size : kSizes) {
        Exchange(going, coming, size, ++tag, Left());
      }
      Exchange(going, coming, kMiB, ++tag, FERRY_ANY_SOURCE);
      for (const size_t size : {size_t{8}, size_t{5000}, kMiB + 1}) {
        if (ferry_size() > 1) {  // a large send to oneself waits for its receive
          BlockingRing(going, coming, size, ++tag);
        }
        CHECK_OK(ferry_barrier());
      }
      PersistentRing(going, coming, 20);
      PersistentRing(going, coming, 100'000);
      Truncated(going, coming, 20, 10);
      Truncated(going, coming, 8000, 5000);
      Truncated(going, coming, 300'000, 200'000);
      CHECK_OK(ferry_barrier());
    }
  }
}

void Windows() {
  constexpr size_t kMessage = 200'000;
  constexpr int kWindow = 24;
  Buffer going(kDevice, kWindow * kMessage);
  Buffer coming(kDevice, kWindow * kMessage);
  for (int round = 0; round < 3; ++round) {
    std::vector<ferry_request> requests(2 * kWindow);
    for (int i = 0; i < kWindow; ++i) {
      CHECK_OK(ferry_irecv(coming.at(i * kMessage), kMessage, Left(), i, &requests[i]));
    }
    for (int i = 0; i < kWindow; ++i) {
      going.Fill(i * kMessage, kMessage, MessageOf(ferry_rank(), round * kWindow + i));
      CHECK_OK(ferry_isend(going.at(i * kMessage), kMessage, Right(), i, &requests[kWindow + i]));
    }
    CHECK_OK(ferry_waitall(requests.size(), requests.data(), nullptr));
    for (int i = 0; i < kWindow; ++i) {
      coming.Check(i * kMessage, kMessage, MessageOf(Left(), round * kWindow + i));
    }
  }
}

void Mistakes() {
  Buffer device(kDevice, 8192);
  ferry_request request = 0;
  CHECK_REFUSED(ferry_isend(device.at(4096), 8192, Right(), 1, &request), FERRY_ERR_BUFFER,
                "of which 4096 bytes are left there");
  CHECK_EQ(ferry_recv(device.at(8191), 2, Left(), 1, nullptr), FERRY_ERR_BUFFER);
  CHECK_EQ(ferry_send_init(device.at(0), 8193, Right(), 1, &request), FERRY_ERR_BUFFER);
  std::vector<uint8_t> host(16384);
  CHECK_EQ(ferry_memcpy(host.data(), device.at(0), 8193), FERRY_ERR_BUFFER);
  void* none = nullptr;
  CHECK_EQ(ferry_alloc(4096, FERRY_MEMORY_DEVICE, 99, &none), FERRY_ERR_ARGUMENT);
  CHECK_EQ(ferry_alloc(size_t{1} << 60, FERRY_MEMORY_DEVICE, 0, &none), FERRY_ERR_MEMORY);
  // A buffer that a request uses is not freed.
  void* used = nullptr;
  CHECK_OK(ferry_alloc(kMiB, FERRY_MEMORY_DEVICE, 0, &used));
  CHECK_OK(ferry_irecv(used, kMiB, Left(), 5, &request));
  CHECK_EQ(ferry_free(used), FERRY_ERR_BUFFER);
  CHECK_OK(ferry_cancel(request));
  ferry_status status;
  CHECK_OK(ferry_wait(&request, &status));
  CHECK_EQ(status.cancelled, 1);
  CHECK_OK(ferry_free(used));
  // And after all that everything works.
  Buffer coming(kDevice, 8192);
  Exchange(device, coming, 8000, 6, Left());
}

// Returns true if both ranks of the job say so.
bool Agree(bool is_so) {
  char theirs = 0;
  const char mine = is_so ? 1 : 0;
  ferry_request request = 0;
  CHECK_OK(ferry_isend(&mine, 1, Right(), 1000, &request));
  CHECK_OK(ferry_recv(&theirs, 1, Left(), 1000, nullptr));
  CHECK_OK(ferry_wait(&request, nullptr));
  return is_so && theirs != 0;
}

constexpr int kPatience = 5000;
const auto counter = ferry::ranks::CounterNamed;

// Messages of host memory, until they go by a direct link.
void AwaitLink(Buffer& host, Buffer& to_host) {
  for (int round = 0; !Agree(counter("link_messages_sent") != 0); ++round) {
    CHECK_EQ(round < kPatience, true);
    Exchange(host, to_host, kMiB, 1, Left());
  }
}

// The daemons move long messages between the devices, once the link is gone.
void Late() {
  Buffer host(kPrivate, 2 * kMiB);
  Buffer to_host(kPrivate, 2 * kMiB);
  AwaitLink(host, to_host);
  const uint64_t staged = counter("path_staged_messages");
  Buffer device(kDevice, 2 * kMiB);
  Buffer to_device(kDevice, 2 * kMiB);
  const auto are_staged = [&] {
    return counter("path_staged_messages") != staged && counter("links_open") == 0;
  };
  for (int round = 0; !Agree(are_staged()); ++round) {
    CHECK_EQ(round < kPatience, true);
    Exchange(device, to_device, kMiB, 2, Left());
    Exchange(device, to_host, 9000, 3, FERRY_ANY_SOURCE);
  }
  CHECK_EQ(counter("link_errors"), 0);
}

// Every message takes the link, and no daemon has a part in any.
void Short() {
  constexpr size_t kLongest = 256 << 10;
  Buffer host(kPrivate, 2 * kMiB);
  Buffer to_host(kPrivate, 2 * kMiB);
  AwaitLink(host, to_host);
  CHECK_OK(ferry_barrier());
  Buffer device(kDevice, 2 * kMiB);
  Buffer to_device(kDevice, 2 * kMiB);
  const uint64_t by_link = counter("link_messages_sent");
  const uint64_t staged = counter("path_staged_messages");
  int tag = 0;
  for (const size_t size : kSizes) {
    if (size <= kLongest) {
      Exchange(device, to_device, size, ++tag, Left());
      Exchange(device, to_host, size, ++tag, FERRY_ANY_SOURCE);
      Exchange(host, to_device, size, ++tag, Left());
      BlockingRing(device, to_device, size, ++tag);
    }
  }
  for (const size_t size : {size_t{20}, size_t{5000}, size_t{100'000}, kLongest}) {
    PersistentRing(device, to_device, size);
    PersistentRing(host, to_device, size);
    Truncated(device, to_device, size, size / 2);
  }
  CHECK_EQ(counter("link_messages_sent") - by_link >= static_cast<uint64_t>(tag), true);
  CHECK_EQ(counter("path_staged_messages"), staged);
  CHECK_EQ(counter("links_open"), uint64_t{1});
  CHECK_EQ(counter("link_errors"), uint64_t{0});
}

// The daemons carry windows of messages, once the link is gone.
void Window() {
  constexpr size_t kMessage = 2000;
  constexpr int kMessages = 16;
  Buffer host(kPrivate, 2 * kMiB);
  Buffer to_host(kPrivate, 2 * kMiB);
  AwaitLink(host, to_host);
  Buffer going(kDevice, kMessages * kMessage);
  Buffer coming(kDevice, kMessages * kMessage);
  bool is_gone = false;
  for (int round = 0; !is_gone; ++round) {
    CHECK_EQ(round < kPatience, true);
    std::vector<ferry_request> requests(2 * kMessages);
    for (int i = 0; i < kMessages; ++i) {
      CHECK_OK(ferry_irecv(coming.at(i * kMessage), kMessage, Left(), i, &requests[i]));
      going.Fill(i * kMessage, kMessage, MessageOf(ferry_rank(), i));
    }
    for (int i = 0; i < kMessages; ++i) {
      CHECK_OK(ferry_isend(going.at(i * kMessage), kMessage, Right(), i, &requests[kMessages + i]));
    }
    CHECK_OK(ferry_waitall(requests.size(), requests.data(), nullptr));
    for (int i = 0; i < kMessages; ++i) {
      coming.Check(i * kMessage, kMessage, MessageOf(Left(), i));
    }
    is_gone = Agree(counter("links_open") == 0);
  }
  CHECK_EQ(counter("link_errors"), uint64_t{0});
}

// Rank 1 cannot know what comes: its links go after the first of such messages.
void Landings() {
  constexpr int kMessages = 4;
  Buffer host(kPrivate, kMessages * kLargest);
  Buffer to_host(kPrivate, 2 * kMiB);
  AwaitLink(host, to_host);
  CHECK_OK(ferry_barrier());
  const uint64_t landed = counter("path_bounce_messages");
  std::vector<ferry_request> requests(kMessages);
  if (ferry_rank() == 0) {
    for (int i = 0; i < kMessages; ++i) {
      host.Fill(i * kLargest, kLargest, MessageOf(0, i));
      CHECK_OK(ferry_isend(host.at(i * kLargest), kLargest, 1, i, &requests[i]));
    }
    CHECK_OK(ferry_barrier());
    CHECK_OK(ferry_waitall(kMessages, requests.data(), nullptr));
  } else {
    Buffer device(kDevice, kMessages * kLargest);
    CHECK_OK(ferry_barrier());  // all are on their way by the link, before the first one ends it
    for (int i = 0; i < kMessages; ++i) {
      CHECK_OK(ferry_irecv(device.at(i * kLargest), kLargest, 0, i, &requests[i]));
    }
    CHECK_OK(ferry_waitall(kMessages, requests.data(), nullptr));
    CHECK_EQ(counter("path_bounce_messages") - landed, uint64_t{kMessages});
    for (int i = 0; i < kMessages; ++i) {
      device.Check(i * kLargest, kLargest, MessageOf(0, i));
    }
  }
  Buffer to_device(kDevice, 2 * kMiB);
  for (int round = 0; !Agree(counter("links_open") == 0); ++round) {
    CHECK_EQ(round < kPatience, true);
    Exchange(host, to_device, kMiB, 3, Left());
  }
  CHECK_EQ(counter("link_errors"), uint64_t{0});
}

// At each end as many requests fail as at the other.
void Fails() {
  constexpr int kMessages = 8;
  Buffer going(kDevice, kMiB);
  Buffer coming(kDevice, kMiB);
  int sends = 0;
  int receives = 0;
  for (int i = 0; i < kMessages; ++i) {
    going.Fill(0, kMiB, static_cast<uint64_t>(i));
    if (ferry_rank() == 0) {
      const int error = ferry_send(going.at(0), kMiB, 1, i);
      sends += error == FERRY_ERR_SYSTEM ? 1 : 0;
      CHECK_EQ(error == FERRY_SUCCESS || error == FERRY_ERR_SYSTEM, true);
    } else {
      const int error = ferry_recv(coming.at(0), kMiB, 0, i, nullptr);
      receives += error == FERRY_ERR_SYSTEM ? 1 : 0;
      CHECK_EQ(error == FERRY_SUCCESS || error == FERRY_ERR_SYSTEM, true);
      if (error == FERRY_SUCCESS) {
        coming.Check(0, kMiB, static_cast<uint64_t>(i));
      }
    }
  }
  CHECK_EQ(sends + receives, 1);
}

// The first copy of each rank fails. The driver's words belong to the rank that copied, and to that
// message alone.
void Words() {
  Buffer device(kDevice, kMiB);
  for (const int receiver : {1, 0}) {
    const int sender = 1 - receiver;
    char over = 0;
    if (ferry_rank() == receiver) {
      CHECK_REFUSED(ferry_recv(device.at(0), kMiB, sender, 7, nullptr), FERRY_ERR_MEMORY,
                    "cuMemcpyAsync");
      CHECK_OK(ferry_send(&over, 1, sender, 8));
    } else {
      ferry_request request = 0;
      CHECK_OK(ferry_isend(device.at(0), kMiB, receiver, 7, &request));
      CHECK_OK(ferry_recv(&over, 1, receiver, 8, nullptr));  // meanwhile the receiver copies
      CHECK_REFUSED(ferry_wait(&request, nullptr), FERRY_ERR_MEMORY,
                    "no memory for a copy of the message");
    }
  }
}

// The peer is killed, or only stops answering, before it has the whole message: the request ends.
void Dies(bool sender) {
  constexpr size_t kBytes = 32 * kMiB;
  Buffer buffer(kDevice, kBytes);
  CHECK_OK(ferry_barrier());
  const bool victim = ferry_rank() == 1;
  ferry_request request = 0;
  if (sender == victim) {
    CHECK_OK(ferry_isend(buffer.at(0), kBytes, 1 - ferry_rank(), 3, &request));
  } else {
    CHECK_OK(ferry_irecv(buffer.at(0), kBytes, 1 - ferry_rank(), 3, &request));
  }
  if (victim) {
    int done = 0;
    for (int looks = 0; looks < 3; ++looks) {
      CHECK_OK(ferry_test(&request, &done, nullptr));
    }
    kill(getpid(), SIGKILL);
  }
  const int error = ferry_wait(&request, nullptr);
  if (error != FERRY_ERR_PEER_DIED && error != FERRY_SUCCESS) {
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
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  if (what == "sizes") {
    Sizes();
  } else if (what == "windows") {
    Windows();
  } else if (what == "late") {
    Late();
  } else if (what == "short") {
    Short();
  } else if (what == "window") {
    Window();
  } else if (what == "landings") {
    Landings();
  } else if (what == "mistakes") {
    Mistakes();
  } else if (what == "fails") {
    Fails();
  } else if (what == "words") {
    Words();
  } else if (what == "touch") {
    Buffer device(kDevice, 4096);
    std::signal(SIGSEGV, SIG_DFL);  // AddressSanitizer would report it and exit
    std::printf("read %d\n", *device.at(0));
  } else {
    Dies(what == "vanish");
  }
  CHECK_OK(ferry_barrier());
  if (ferry_rank() == 0) {
    std::printf("device: ok\n");
  }
  CHECK_OK(ferry_finalize());
}
