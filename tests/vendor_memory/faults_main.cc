// faults_VENDOR CASE: what goes wrong with memory of the vendor's calls is told in words, and
// leaves nothing behind. Two ranks; the cases of the stand-in's faults end well where there is no
// stand-in.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "tests/vendor_memory/ferry_calls.h"
#include "tests/vendor_memory/holdings.h"
#include "tests/vendor_memory/stand_in.h"

namespace ferry::vendor_memory {
namespace {

// Checks that the call failed so, with words that hold the text.
void ExpectRefused(int code, int expected, const char* text) {
  const std::string said = ferry_last_error();
  if (code != expected || said.find(text) == std::string::npos) {
    Fail(__FILE__, __LINE__,
         ("got " + std::string(ferry_error_string(code)) + ": \"" + said + "\", not " +
          ferry_error_string(expected) + ": ..." + text)
             .c_str());
  }
}

// ---- Cases ----

// Two allocations side by side are two, although a caching allocator's tensors are parts of one.
void SpanAllocations() {
  constexpr size_t kBytes = 512;
  constexpr size_t kMost = 300;
  const Kind& kind = *FindKind("device");
  std::vector<std::byte*> all;
  std::byte* first = nullptr;
  while (first == nullptr && all.size() < kMost) {
    all.push_back(static_cast<std::byte*>(kind.allocate(kBytes)));
    for (std::byte* const other : all) {
      first = other + kBytes == all.back() ? other : first;
    }
  }
  if (first == nullptr) {
    std::printf("no two of %zu allocations lie side by side\n", kMost);
  } else {
    const std::vector<unsigned char> pattern = Buffer::Pattern(2 * kBytes, 3);
    Copy(first, pattern.data(), kBytes);
    Copy(first + kBytes, pattern.data() + kBytes, kBytes);
    ferry_request request = FERRY_REQUEST_NULL;
    for (const size_t offset : {size_t{0}, size_t{1}, kBytes - 4}) {
      ExpectRefused(ferry_send(first + offset, kBytes + 8 - offset, Peer(), 2), FERRY_ERR_BUFFER,
                    "runs past the end of its device memory (512 bytes");
      ExpectRefused(ferry_irecv(first + offset, kBytes + 8 - offset, Peer(), 2, &request),
                    FERRY_ERR_BUFFER, "runs past the end");
    }
    // Up to the last byte each is good.
    std::vector<unsigned char> plain(kBytes);
    for (const size_t at : {size_t{0}, kBytes}) {
      VENDOR_FERRY(ferry_irecv(plain.data(), kBytes, ferry_rank(), 3, &request));
      VENDOR_FERRY(ferry_send(first + at, kBytes, ferry_rank(), 3));
      VENDOR_FERRY(ferry_wait(&request, nullptr));
      VENDOR_CHECK(std::memcmp(plain.data(), pattern.data() + at, kBytes) == 0);
    }
  }
  for (std::byte* const memory : all) {
    kind.free(memory, kBytes);
  }
}

// An address that means something in the other process only.
void NameAnothersMemory() {
  constexpr size_t kBytes = 100'000;
  const Kind& kind = *FindKind("device");
  std::vector<void*> all;
  bool is_there = true;
  for (int tries = 0; tries < 20 && is_there; ++tries) {
    all.push_back(kind.allocate(kBytes * (1 + static_cast<size_t>(ferry_rank()))));
    auto* const theirs = reinterpret_cast<void*>(Exchanged(reinterpret_cast<uint64_t>(all.back())));
    // By chance something of this process may lie there.
    const int code = ferry_send(theirs, 8, ferry_rank(), 4);
    is_there = code == FERRY_SUCCESS;
    if (is_there) {
      uint64_t word = 0;
      VENDOR_FERRY(ferry_recv(&word, 8, ferry_rank(), 4, nullptr));
    } else {
      ExpectRefused(code, FERRY_ERR_BUFFER, "another process's?");
    }
    is_there = Exchanged(is_there) || is_there;
  }
  VENDOR_CHECK(!is_there);
  for (void* const memory : all) {
    kind.free(memory, kBytes * (1 + static_cast<size_t>(ferry_rank())));
  }
}

// Memory that is shared, used by the other rank and freed, again and again: neither keeps it.
void ComeAndGo() {
  constexpr size_t kBytes = 70'000;
  constexpr int kRounds = 120;
  constexpr size_t kFew = 40;  // those that were not looked at yet
  const Kind& kind = *FindKind("device");
  const size_t before = DeviceMappings();
  size_t most = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto seed = static_cast<unsigned>(round);
    Buffer memory(kind, kBytes);
    Buffer data(kind, kBytes);
    data.Fill(seed + static_cast<unsigned>(ferry_rank()));
    const ferry_place theirs = Exchanged(PlaceOf(memory.data(), kBytes));
    VENDOR_FERRY(ferry_put(FERRY_CONTEXT_DEFAULT, theirs, data.data(), kBytes));
    VENDOR_FERRY(ferry_quiet(FERRY_CONTEXT_DEFAULT));
    VENDOR_FERRY(ferry_barrier());
    VENDOR_CHECK(memory.IsFilled(seed + static_cast<unsigned>(Peer())));
    most = std::max(most, DeviceMappings());
  }
  if (most > before + kFew) {
    std::fprintf(stderr, "%zu pieces of device memory before, %zu later\n", before, most);
    VENDOR_CHECK(!"what others have freed is let go of");
  }
}

// As ComeAndGo, with threads that put and get while others' memory goes.
void ComeAndGoBesideThreads() {
  constexpr size_t kBytes = 3000;
  const Kind& kind = *FindKind("device");
  const Kind& host = *FindKind("pinned");
  std::atomic<bool> is_over = false;
  Buffer lasting(kind, kBytes);
  const ferry_place theirs = Exchanged(PlaceOf(lasting.data(), kBytes));
  std::vector<std::thread> threads;
  for (size_t number = 0; number < 2; ++number) {
    threads.emplace_back([&, number] {
      UseDevice(0);
      Buffer data(host, 500);
      data.Fill(static_cast<unsigned>(number));
      ferry_context context = FERRY_CONTEXT_DEFAULT;
      VENDOR_FERRY(ferry_context_create(&context));
      ferry_place place = theirs;
      place.offset += number * 1000;
      do {
        VENDOR_FERRY(ferry_put(context, place, data.data(), data.bytes()));
        VENDOR_FERRY(ferry_quiet(context));
      } while (!is_over);
      VENDOR_FERRY(ferry_context_destroy(&context));
    });
  }
  ComeAndGo();
  is_over = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  VENDOR_FERRY(ferry_barrier());
  for (size_t number = 0; number < 2; ++number) {
    VENDOR_CHECK(lasting.Read<unsigned char>(500, number * 1000) ==
                 Buffer::Pattern(500, static_cast<unsigned>(number)));
  }
}

// From one moment on each of the driver's calls fails.
void LoseDevice() {
  constexpr size_t kBytes = 20'000;
  const Kind& kind = *FindKind("device");
  void* const known = kind.allocate(kBytes);
  void* const unknown = kind.allocate(kBytes);
  std::vector<unsigned char> plain(kBytes);
  ferry_request request = FERRY_REQUEST_NULL;
  VENDOR_FERRY(ferry_irecv(plain.data(), kBytes, ferry_rank(), 5, &request));
  VENDOR_FERRY(ferry_send(known, kBytes, ferry_rank(), 5));
  VENDOR_FERRY(ferry_wait(&request, nullptr));
  if (!SetFaults("*:1+:100")) {
    return;
  }
  for (const size_t bytes : {size_t{8}, kBytes}) {
    for (void* const memory : {known, unknown}) {
      ExpectRefused(ferry_send(memory, bytes, Peer(), 6), FERRY_ERR_BUFFER, "does not answer: ");
      ExpectRefused(ferry_irecv(memory, bytes, Peer(), 6, &request), FERRY_ERR_BUFFER,
                    "does not answer: ");
    }
  }
  // The rest goes on.
  for (uint64_t round = 0; round < 10; ++round) {
    VENDOR_CHECK(Exchanged(round) == round);
    std::vector<unsigned char> in(kBytes);
    VENDOR_FERRY(ferry_irecv(in.data(), kBytes, Peer(), 7, &request));
    VENDOR_FERRY(ferry_send(plain.data(), kBytes, Peer(), 7));
    VENDOR_FERRY(ferry_wait(&request, nullptr));
  }
  VENDOR_FERRY(ferry_barrier());
}

// The other rank dies, whose memory is in use here.
void LoseRank() {
  constexpr size_t kBytes = 50'000;
  const Kind& kind = *FindKind("device");
  const size_t before = DeviceMappings();
  {
    std::vector<unsigned char> plain(kBytes);
    const std::vector<unsigned char> out = Buffer::Pattern(kBytes, 7);
    std::vector<void*> all;
    std::vector<ferry_place> places;
    for (int i = 0; i < 6; ++i) {
      all.push_back(kind.allocate(kBytes));
      places.push_back(Exchanged(PlaceOf(all.back(), kBytes)));
    }
    VENDOR_FERRY(ferry_barrier());
    for (const ferry_place& place : places) {
      VENDOR_FERRY(ferry_put(FERRY_CONTEXT_DEFAULT, place, out.data(), kBytes));
    }
    VENDOR_FERRY(ferry_quiet(FERRY_CONTEXT_DEFAULT));
    VENDOR_FERRY(ferry_barrier());  // what the other one has put is here, too
    // And by messages.
    ferry_request request = FERRY_REQUEST_NULL;
    VENDOR_FERRY(ferry_irecv(plain.data(), kBytes, Peer(), 8, &request));
    VENDOR_FERRY(ferry_send(all[0], kBytes, Peer(), 8));
    VENDOR_FERRY(ferry_wait(&request, nullptr));
    VENDOR_CHECK(plain == out);
    // Once the other one needs nothing more of it.
    char go = 0;
    if (ferry_rank() == 0) {
      VENDOR_FERRY(ferry_send(&go, 1, 1, 10));
    } else {
      VENDOR_FERRY(ferry_recv(&go, 1, 0, 10, nullptr));
      raise(SIGKILL);
    }
    ExpectRefused(ferry_recv(plain.data(), 8, 1, 9, nullptr), FERRY_ERR_PEER_DIED, "");
    for (void* const memory : all) {
      kind.free(memory, kBytes);
    }
    // The news is enough: no call names that rank's memory from then on.
    const size_t after = DeviceMappings();
    if (after > before) {
      std::fprintf(stderr, "%zu pieces of device memory before, %zu after\n", before, after);
      VENDOR_CHECK(!"memory of the dead rank is let go of");
    }
    ExpectRefused(ferry_put(FERRY_CONTEXT_DEFAULT, places[0], out.data(), kBytes),
                  FERRY_ERR_PEER_DIED, "");
  }
}

struct Case {
  const char* name;
  void (*run)();
};
constexpr Case kCases[] = {
    {"spanning", SpanAllocations}, {"another", NameAnothersMemory},
    {"places", ComeAndGo},         {"threads", ComeAndGoBesideThreads},

    {"lost", LoseDevice},          {"dies", LoseRank},
};

int Run(const std::string& name) {
  for (const Case& each : kCases) {
    if (each.name != name) {
      continue;
    }
    step = name;
    int provided = 0;
    VENDOR_FERRY(
        ferry_init(name == "threads" ? FERRY_THREAD_MULTIPLE : FERRY_THREAD_SINGLE, &provided));
    each.run();
    if (ferry_rank() == 0) {
      std::printf("%s memory was right\n", VendorName());
    }
    VENDOR_FERRY(ferry_finalize());
    return 0;
  }
  return 2;
}

}  // namespace
}  // namespace ferry::vendor_memory

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  ferry::vendor_memory::Begin();
  return ferry::vendor_memory::Run(argv[1]);
}
