// offload contents|flight|automatic|pipelined|mixed|gives_up|fork|orphan: offloaded send buffers,
// of every kind of memory; device memory is reached by ferry_memcpy alone.
//
// contents: a send of a registered buffer sends its contents of the last synchronisation, by all
// ways to send, to every other rank. flight: the calls that are refused while sends from one
// synchronisation are under way, and that they lose nothing. automatic, pipelined, mixed: the
// ranks, their daemons, or both bring device memory to the host. gives_up: requests that cannot be
// started keep no block of the heap. fork, orphan: calls in a child, and after the daemon's death.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/buffer.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

using ferry::ranks::Buffer;
using ferry::ranks::Kind;
using enum ferry::ranks::Kind;

constexpr int kTag = 3;

std::vector<uint8_t> Received(size_t size) {
  std::vector<uint8_t> bytes(size);
  ferry_status status;
  CHECK_OK(ferry_recv(bytes.data(), size, 0, kTag, &status));
  CHECK_EQ(status.size_bytes, size);
  return bytes;
}

// Rank 0 runs `send(to)` for each of the others, each of which checks the message with `check`.
template <typename Send, typename Check>
void ToEach(size_t size, Send&& send, Check&& check) {
  if (ferry_rank() != 0) {
    check(Received(size));
    return;
  }
  for (int to = 1; to < ferry_size(); ++to) {
    send(to);
  }
}

// ---- contents -----------------------------------------------------------------------------------

constexpr size_t kBytes = kMiB + 100'000;
constexpr size_t kSizes[] = {1, 20, 5000, 8192, 8193, 65536, 65537, 300'000, kBytes};

// Every message, whatever its size and the way it is sent, has the bytes of `message`.
void SendsAre(Buffer& buffer, uint64_t message) {
  for (const size_t size : kSizes) {
    const auto check = [&](const std::vector<uint8_t>& bytes) {
      CHECK_BYTES(bytes.data(), size, message);
    };
    ToEach(
        size, [&](int to) { CHECK_OK(ferry_send(buffer.at(0), size, to, kTag)); }, check);
    ToEach(
        size,
        [&](int to) {
          ferry_request request = 0;
          CHECK_OK(ferry_isend(buffer.at(0), size, to, kTag, &request));
          CHECK_OK(ferry_wait(&request, nullptr));
        },
        check);
    ToEach(
        size,
        [&](int to) {
          ferry_request request = 0;
          CHECK_OK(ferry_send_init(buffer.at(0), size, to, kTag, &request));
          CHECK_OK(ferry_start(request));
          CHECK_OK(ferry_wait(&request, nullptr));
          CHECK_OK(ferry_request_free(&request));
        },
        check);
  }
}

// One part of the buffer is synchronised later than the other two.
void PartsAreOfTheirTime(Buffer& buffer, ferry_offload offload) {
  constexpr size_t kBegin = 100'000;
  constexpr size_t kSize = 400'000;
  if (ferry_rank() == 0) {
    buffer.Fill(0, kBytes, 1);
    CHECK_OK(ferry_offload_sync(offload, 0, FERRY_OFFLOAD_TO_END));
    buffer.Fill(0, kBytes, 2);
    CHECK_OK(ferry_offload_sync(offload, kBegin, kSize));
    buffer.Fill(0, kBytes, 3);
  }
  ToEach(
      kBytes, [&](int to) { CHECK_OK(ferry_send(buffer.at(0), kBytes, to, kTag)); },
      [](const std::vector<uint8_t>& bytes) {
        for (size_t i = 0; i < kBytes; ++i) {
          CHECK_EQ(bytes[i], ferry::ranks::ByteOf(i < kBegin || i >= kBegin + kSize ? 1 : 2, i));
        }
      });
  // A message inside the newer part.
  ToEach(
      50'000, [&](int to) { CHECK_OK(ferry_send(buffer.at(kBegin + 7), 50'000, to, kTag)); },
      [](const std::vector<uint8_t>& bytes) {
        for (size_t i = 0; i < bytes.size(); ++i) {
          CHECK_EQ(bytes[i], ferry::ranks::ByteOf(2, kBegin + 7 + i));
        }
      });
}

// A persistent request made while the buffer was registered sends the synchronised contents at each
// of its starts; one made before sends the memory itself.
void PersistentRequestsAreBound(Buffer& buffer) {
  constexpr size_t kSize = 200'000;
  const auto is = [&](uint64_t message) {
    return [=](const std::vector<uint8_t>& bytes) { CHECK_BYTES(bytes.data(), kSize, message); };
  };
  ferry_request before = 0;
  ferry_request bound = 0;
  ferry_offload offload = 0;
  if (ferry_rank() == 0) {
    CHECK_OK(ferry_send_init(buffer.at(0), kSize, 1, kTag, &before));
    CHECK_OK(ferry_offload_register(buffer.at(0), kSize, &offload));
    CHECK_OK(ferry_send_init(buffer.at(0), kSize, 1, kTag, &bound));
    CHECK_REFUSED(ferry_start(bound), FERRY_ERR_BUFFER, "byte 0 of the offloaded send buffer");
  }
  for (uint64_t round = 10; round < 14; round += 2) {
    if (ferry_rank() == 0) {
      buffer.Fill(0, kSize, round);
      CHECK_OK(ferry_offload_sync(offload, 0, kSize));
      buffer.Fill(0, kSize, round + 1);
      for (const ferry_request request : {bound, before}) {
        ferry_request active = request;
        CHECK_OK(ferry_start(request));
        CHECK_OK(ferry_wait(&active, nullptr));
        CHECK_REFUSED(ferry_offload_deregister(&offload), FERRY_ERR_BUFFER,
                      "if it is a persistent one, free it first");
      }
    } else if (ferry_rank() == 1) {
      is(round)(Received(kSize));
      is(round + 1)(Received(kSize));
    }
  }
  if (ferry_rank() == 0) {
    CHECK_OK(ferry_request_free(&bound));
    CHECK_OK(ferry_offload_deregister(&offload));
    CHECK_OK(ferry_request_free(&before));
  }
}

void Contents() {
  for (int kind = kDevice; kind < kKinds; ++kind) {
    Buffer buffer(static_cast<Kind>(kind), kBytes + 1000);
    ferry_offload offload = 0;
    const uint64_t copies = ferry::ranks::CounterNamed("offload_copies");
    if (ferry_rank() == 0) {
      CHECK_OK(ferry_offload_register(buffer.at(0), kBytes, &offload));
      buffer.Fill(0, kBytes, 77);
      CHECK_OK(ferry_offload_sync(offload, 0, FERRY_OFFLOAD_TO_END));
      buffer.Fill(0, kBytes, 78);
    }
    SendsAre(buffer, 77);
    CHECK_EQ(ferry::ranks::CounterNamed("offload_copies") - copies, ferry_rank() == 0 ? 1 : 0);
    PartsAreOfTheirTime(buffer, offload);
    // Beyond its end the memory itself is sent.
    if (ferry_rank() == 0) {
      buffer.Fill(0, kBytes + 1000, 79);
    }
    ToEach(
        kBytes + 1, [&](int to) { CHECK_OK(ferry_send(buffer.at(0), kBytes + 1, to, kTag)); },
        [](const std::vector<uint8_t>& bytes) { CHECK_BYTES(bytes.data(), bytes.size(), 79); });
    if (ferry_rank() == 0) {
      CHECK_OK(ferry_offload_deregister(&offload));
      CHECK_EQ(offload, FERRY_OFFLOAD_NULL);
      buffer.Fill(0, kBytes, 80);
    }
    SendsAre(buffer, 80);
    PersistentRequestsAreBound(buffer);
    CHECK_OK(ferry_barrier());
  }
}

// ---- flight -------------------------------------------------------------------------------------

// Rank 0 has several messages to each of the others under way, and none of them has been requested
// yet.
void Flight(Kind kind) {
  constexpr int kMessages = 3;
  constexpr size_t kSize = kMiB;
  Buffer buffer(kind, 2 * kSize);
  if (ferry_rank() != 0) {
    CHECK_OK(ferry_recv(nullptr, 0, 0, kTag + 1, nullptr));
    for (int i = 0; i < kMessages; ++i) {
      const std::vector<uint8_t> bytes = Received(kSize);
      CHECK_BYTES(bytes.data(), kSize, 5);
    }
    return;
  }
  ferry_offload offload = 0;
  CHECK_OK(ferry_offload_register(buffer.at(0), 2 * kSize, &offload));
  buffer.Fill(0, kSize, 5);
  CHECK_OK(ferry_offload_sync(offload, 0, kSize));
  std::vector<ferry_request> requests;
  for (int to = 1; to < ferry_size(); ++to) {
    for (int i = 0; i < kMessages; ++i) {
      requests.push_back(0);
      CHECK_OK(ferry_isend(buffer.at(0), kSize, to, kTag, &requests.back()));
    }
  }
  buffer.Fill(0, 2 * kSize, 6);
  const char* const unfinished = "a send that is not complete reads what was synchronised before";
  CHECK_REFUSED(ferry_offload_sync(offload, kSize - 1, 2), FERRY_ERR_BUFFER, unfinished);
  CHECK_REFUSED(ferry_offload_sync(offload, 0, FERRY_OFFLOAD_TO_END), FERRY_ERR_BUFFER, unfinished);
  CHECK_OK(ferry_offload_sync(offload, kSize, FERRY_OFFLOAD_TO_END));
  CHECK_OK(ferry_offload_sync(offload, 100, 0));
  const ferry_offload handle = offload;
  CHECK_REFUSED(ferry_offload_deregister(&offload), FERRY_ERR_BUFFER,
                "a request sends from the offloaded buffer: wait for it");
  CHECK_EQ(offload, handle);
  if (kind != kPrivate) {
    CHECK_REFUSED(ferry_free(buffer.at(0)), FERRY_ERR_BUFFER,
                  "call ferry_offload_deregister first");
  }
  for (int to = 1; to < ferry_size(); ++to) {
    CHECK_OK(ferry_send(nullptr, 0, to, kTag + 1));
  }
  CHECK_OK(ferry_waitall(requests.size(), requests.data(), nullptr));
  CHECK_OK(ferry_offload_sync(offload, 0, kSize));
  CHECK_OK(ferry_offload_deregister(&offload));
}

// ---- automatic, pipelined -----------------------------------------------------------------------

// Rank 0 sends one device buffer to rank 1 time and again, with new contents each time.
void SendNewest(Buffer& buffer, size_t size, int messages) {
  for (int i = 0; i < messages; ++i) {
    const auto message = static_cast<uint64_t>(i);
    if (ferry_rank() == 0) {
      buffer.Fill(0, size, message);
      CHECK_OK(ferry_send(buffer.at(0), size, 1, kTag));
    } else {
      const std::vector<uint8_t> bytes = Received(size);
      CHECK_BYTES(bytes.data(), size, message);
    }
  }
}

enum class Stager { kRanks, kDaemons, kBoth };

void Automatic(Stager by) {
  constexpr int kMessages = 20;
  constexpr size_t kOneBlock = 256 * 1024;  // pipeline_threshold_bytes by default
  constexpr size_t kLength = 3 * kMiB;
  Buffer buffer(kDevice, kLength);
  uint64_t wanted = 0;
  for (const size_t size : {size_t{8193}, kOneBlock}) {
    SendNewest(buffer, size, kMessages);
    wanted += kMessages;
  }
  const uint64_t of_one_block = wanted;
  for (const size_t size : {kOneBlock + 1, kLength}) {
    SendNewest(buffer, size, kMessages);
    wanted += kMessages;
  }
  // Messages under way at the same time have a bounce buffer each, even of the same bytes.
  std::vector<std::vector<uint8_t>> parts(4, std::vector<uint8_t>(kMiB));
  std::vector<ferry_request> requests(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (ferry_rank() == 0) {
      buffer.Fill(0, kMiB, 50 + i);
      CHECK_OK(ferry_isend(buffer.at(0), kMiB, 1, kTag, &requests[i]));
      if (by != Stager::kRanks) {  // otherwise the buffer was read already
        CHECK_OK(ferry_wait(&requests[i], nullptr));
      }
    } else {
      CHECK_OK(ferry_irecv(parts[i].data(), kMiB, 0, kTag, &requests[i]));
    }
  }
  CHECK_OK(ferry_waitall(requests.size(), requests.data(), nullptr));
  if (ferry_rank() == 1) {
    for (size_t i = 0; i < parts.size(); ++i) {
      CHECK_BYTES(parts[i].data(), kMiB, 50 + i);
    }
  }
  wanted = by == Stager::kRanks ? wanted + parts.size() : by == Stager::kDaemons ? 0 : of_one_block;
  CHECK_EQ(ferry::ranks::CounterNamed("offload_copies"), ferry_rank() == 0 ? wanted : 0);
  // Kept bounce buffers give way to the application (its heap has 16 MiB).
  void* most = nullptr;
  CHECK_OK(ferry_alloc(15 * kMiB, FERRY_MEMORY_HOST, 0, &most));
  if (ferry_rank() == 0 && by == Stager::kRanks) {
    CHECK_REFUSED(ferry_send(buffer.at(0), kLength, 1, kTag), FERRY_ERR_MEMORY,
                  "no memory for a copy of the message");
    ferry_offload offload = 1;
    CHECK_REFUSED(ferry_offload_register(buffer.at(0), kLength, &offload), FERRY_ERR_MEMORY,
                  "raise heap_bytes");
    CHECK_EQ(offload, FERRY_OFFLOAD_NULL);
  }
  if (by != Stager::kRanks) {
    SendNewest(buffer, 20'000, 2);  // by the pipeline: half of the heap is not free
    CHECK_EQ(ferry::ranks::CounterNamed("offload_copies"), ferry_rank() == 0 ? wanted : 0);
  }
  CHECK_OK(ferry_free(most));
  SendNewest(buffer, kLength, 2);
}

// ---- gives_up -----------------------------------------------------------------------------------

// The match table of rank 1 has 64 entries, and the receives that are posted take them all. Those
// that follow take heap blocks in place of their buffers, and the rank needs the blocks no more.
// Meanwhile no rank may send it a message.
void GivesUp() {
  constexpr int kPosted = 64;
  constexpr size_t kSize = kMiB;
  const int other = 1 - ferry_rank();
  for (const Kind kind : {kPrivate, kDevice}) {
    if (ferry_rank() == 0) {
      std::vector<uint8_t> sent(kSize);
      ferry::ranks::Fill(sent.data(), kSize, 9);
      CHECK_OK(ferry_recv(nullptr, 0, other, kTag + 1, nullptr));
      CHECK_OK(ferry_send(sent.data(), kSize, other, kTag));
      continue;
    }
    Buffer buffer(kind, kSize);
    std::vector<ferry_request> posted(kPosted);
    for (ferry_request& request : posted) {
      CHECK_OK(ferry_irecv(nullptr, 0, other, kTag, &request));
    }
    for (int i = 0; i < 64; ++i) {  // 64 MiB in all, of a heap of 16 MiB
      ferry_request request = 0;
      CHECK_REFUSED(ferry_irecv(buffer.at(0), kSize, other, kTag, &request), FERRY_ERR_LIMIT,
                    "raise request_limit (FERRY_REQUEST_LIMIT) or unexpected_limit");
      CHECK_EQ(ferry_recv(buffer.at(0), kSize, other, kTag, nullptr), FERRY_ERR_LIMIT);
      CHECK_OK(ferry_recv_init(buffer.at(0), kSize, other, kTag, &request));
      CHECK_EQ(ferry_start(request), FERRY_ERR_LIMIT);
      CHECK_OK(ferry_request_free(&request));
    }
    void* most = nullptr;
    CHECK_OK(ferry_alloc(15 * kMiB, FERRY_MEMORY_HOST, 0, &most));
    CHECK_OK(ferry_free(most));
    for (ferry_request& request : posted) {
      CHECK_OK(ferry_cancel(request));
      CHECK_OK(ferry_wait(&request, nullptr));
    }
    // Sends and receives work again.
    ferry_request request = 0;
    CHECK_OK(ferry_irecv(buffer.at(0), kSize, other, kTag, &request));
    CHECK_OK(ferry_send(nullptr, 0, other, kTag + 1));
    CHECK_OK(ferry_wait(&request, nullptr));
    std::vector<uint8_t> bytes(kSize);
    CHECK_OK(ferry_memcpy(bytes.data(), buffer.at(0), kSize));
    CHECK_BYTES(bytes.data(), kSize, 9);
  }
}

// ---- fork, orphan -------------------------------------------------------------------------------

void CheckAll(ferry_offload offload, const void* buffer, int code) {
  ferry_offload another = 0;
  CHECK_EQ(ferry_offload_register(buffer, 100, &another), code);
  CHECK_EQ(ferry_offload_sync(offload, 0, 100), code);
  CHECK_EQ(ferry_offload_deregister(&offload), code);
}

void Fork() {
  std::vector<uint8_t> buffer(100);
  ferry_offload offload = 0;
  CHECK_OK(ferry_offload_register(buffer.data(), 100, &offload));
  const pid_t child = fork();
  if (child == 0) {
    CheckAll(offload, buffer.data(), FERRY_ERR_FORKED);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK_OK(ferry_offload_sync(offload, 0, 100));  // ferry_finalize deregisters it
}

// The test kills the daemon meanwhile.
void Orphan() {
  std::vector<uint8_t> buffer(100);
  ferry_offload offload = 0;
  CHECK_OK(ferry_offload_register(buffer.data(), 100, &offload));
  std::printf("under way\n");
  std::fflush(stdout);
  CHECK_EQ(ferry_recv(buffer.data(), 100, 0, kTag, nullptr), FERRY_ERR_DAEMON_DIED);
  CheckAll(offload, buffer.data(), FERRY_ERR_DAEMON_DIED);
  std::printf("offload: ok\n");
  std::fflush(stdout);
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc, 2);
  const std::string what = argv[1];
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  if (what == "contents") {
    Contents();
  } else if (what == "flight") {
    for (int kind = kDevice; kind < kKinds; ++kind) {
      Flight(static_cast<Kind>(kind));
      CHECK_OK(ferry_barrier());
    }
  } else if (what == "gives_up") {
    GivesUp();
  } else if (what == "fork") {
    Fork();
  } else if (what == "orphan") {
    Orphan();
  } else {
    Automatic(what == "automatic"   ? Stager::kRanks
              : what == "pipelined" ? Stager::kDaemons
                                    : Stager::kBoth);
  }
  CHECK_OK(ferry_barrier());
  if (ferry_rank() == 0) {
    std::printf("offload: ok\n");
  }
  CHECK_OK(ferry_finalize());
}
