// Memory that comes and goes, threads, CPUs beside messages, and buffers that are no good.
#include <cstdint>
#include <set>
#include <thread>

#include "tests/vendor_memory/holdings.h"
#include "tests/vendor_memory/mpi_cases.h"

namespace ferry::vendor_memory {
namespace {

void Exchange(const void* out, void* in, size_t bytes, int tag) {
  MPI_Request requests[2];
  const int next = (rank + 1) % size;
  const int before = (rank + size - 1) % size;
  VENDOR_OK(
      MPI_Irecv(in, static_cast<int>(bytes), MPI_BYTE, before, tag, MPI_COMM_WORLD, &requests[0]));
  VENDOR_OK(
      MPI_Isend(out, static_cast<int>(bytes), MPI_BYTE, next, tag, MPI_COMM_WORLD, &requests[1]));
  VENDOR_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
}

}  // namespace

void ReuseAddresses(const Kind& kind) {
  constexpr int kRounds = 160;
  constexpr int kWarm = 80;
  // Of the two allocations of each round something would stay; what is cached comes and goes.
  constexpr size_t kMost = (kRounds - kWarm) / 2;
  std::set<const void*> addresses;
  Holdings before;
  const std::string outer = step;
  for (int round = 0; round < kRounds; ++round) {
    step = outer + ", round " + std::to_string(round);
    const size_t bytes = round % 2 == 0 ? 200 : 50'000;
    Buffer out(kind, bytes);
    Buffer in(kind, bytes);
    addresses.insert(out.data());
    out.Fill(static_cast<unsigned>(rank + round));
    Exchange(out.data(), in.data(), bytes, 1);
    VENDOR_CHECK(in.IsFilled(static_cast<unsigned>((rank + size - 1) % size + round)));
    VENDOR_OK(MPI_Bcast(out.data(), static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD));
    VENDOR_CHECK(out.IsFilled(static_cast<unsigned>(round)));
    if (round == kWarm) {
      VENDOR_OK(MPI_Barrier(MPI_COMM_WORLD));
      before = FindHoldings();
      VENDOR_OK(MPI_Barrier(MPI_COMM_WORLD));
    }
  }
  VENDOR_CHECK(addresses.size() < kRounds);  // else the test shows nothing
  VENDOR_OK(MPI_Barrier(MPI_COMM_WORLD));
  for (const auto& [what, count] : FindHoldings()) {
    if (before.count(what) != 0 && count > before[what] + kMost) {
      std::fprintf(stderr, "%s: %zu after %zu\n", what.c_str(), count, before[what]);
      VENDOR_CHECK(!"what processes hold grows with each allocation");
    }
  }
  VENDOR_OK(MPI_Barrier(MPI_COMM_WORLD));
}

void UseThreads(const Kind& kind) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 10;
  std::vector<std::thread> threads;
  // The last thread only sends and receives; it has no device or context of its own.
  Buffer out(kind, 60'000);
  Buffer in(kind, 60'000);
  out.Fill(static_cast<unsigned>(rank));
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      const auto theirs = static_cast<unsigned>((rank + size - 1) % size);
      if (number == kThreads - 1) {
        for (int round = 0; round < kRounds; ++round) {
          Exchange(out.data(), in.data(), out.bytes(), 100);
        }
        return;
      }
      UseDevice(number % DeviceCount());
      for (int round = 0; round < kRounds; ++round) {
        const size_t bytes = round % 2 == 0 ? 300 : 30'000;
        UseDevice(0);  // of which the kinds are
        Buffer own(kind, bytes);
        Buffer other(kind, bytes);
        own.Fill(static_cast<unsigned>(rank + number * 10));
        UseDevice(number % DeviceCount());
        Exchange(own.data(), other.data(), bytes, number);
        UseDevice(0);
        VENDOR_CHECK(other.IsFilled(theirs + static_cast<unsigned>(number) * 10));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  VENDOR_CHECK(in.IsFilled(static_cast<unsigned>((rank + size - 1) % size)));
}

void TouchBothSides(const Kind& kind) {
  for (const size_t bytes : {size_t{64}, size_t{6000}, size_t{300'000}}) {
    Buffer out(kind, bytes);
    Buffer in(kind, bytes);
    for (unsigned round = 0; round < 4; ++round) {
      const std::vector<unsigned char> pattern =
          Buffer::Pattern(bytes, static_cast<unsigned>(rank) + round);
      if (kind.is_host && round % 2 == 0) {
        std::memcpy(out.data(), pattern.data(), bytes);
      } else {
        out.Write(pattern);
      }
      Exchange(out.data(), in.data(), bytes, 1);
      const std::vector<unsigned char> theirs =
          Buffer::Pattern(bytes, static_cast<unsigned>((rank + size - 1) % size) + round);
      VENDOR_CHECK(in.Read<unsigned char>(bytes) == theirs);
      VENDOR_CHECK(!kind.is_host || std::memcmp(in.data(), theirs.data(), bytes) == 0);
    }
  }
}

// ---- Bad buffers ----

namespace {

// Checks that the call failed, with words about the buffer.
void ExpectBadBuffer(int error, const char* call) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  int error_class = MPI_SUCCESS;
  VENDOR_OK(MPI_Error_class(error, &error_class));
  VENDOR_OK(MPI_Error_string(error, text, &length));
  if (error_class != MPI_ERR_BUFFER || std::strstr(text, "memory") == nullptr) {
    std::fprintf(stderr, "%s: class %d, \"%s\"\n", call, error_class, text);
    VENDOR_CHECK(!"the buffer is named");
  }
}

}  // namespace

void UseBadBuffers(const Kind& kind) {
  if (kind.is_host) {
    return;  // ordinary memory's faults are the program's
  }
  const std::string outer = step;
  VENDOR_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  VENDOR_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  for (const size_t bytes : {size_t{64}, size_t{4096}, size_t{100'000}}) {
    void* const memory = kind.allocate(bytes);
    std::vector<char> plain(bytes + 1);
    const std::vector<std::byte> pattern(bytes, std::byte{7});
    Copy(memory, pattern.data(), bytes);
    // Ferry has seen it.
    VENDOR_OK(MPI_Sendrecv(memory, static_cast<int>(bytes), MPI_BYTE, 0, 1, plain.data(),
                           static_cast<int>(bytes), MPI_BYTE, 0, 1, MPI_COMM_SELF,
                           MPI_STATUS_IGNORE));
    VENDOR_CHECK(std::memcmp(plain.data(), pattern.data(), bytes) == 0);
    if (std::string(kind.name) != "virtual") {  // its addresses go on behind the buffer
      step = outer + ", one byte too long, " + std::to_string(bytes);
      const int more = static_cast<int>(bytes) + 1;
      MPI_Request request = MPI_REQUEST_NULL;
      ExpectBadBuffer(MPI_Send(memory, more, MPI_BYTE, (rank + 1) % size, 1, MPI_COMM_WORLD),
                      "MPI_Send");
      ExpectBadBuffer(
          MPI_Isend(memory, more, MPI_BYTE, (rank + 1) % size, 1, MPI_COMM_WORLD, &request),
          "MPI_Isend");
      ExpectBadBuffer(
          MPI_Irecv(memory, more, MPI_BYTE, (rank + 1) % size, 1, MPI_COMM_WORLD, &request),
          "MPI_Irecv");
    }
    kind.free(memory, bytes);
    step = outer + ", freed, " + std::to_string(bytes);
    ExpectBadBuffer(
        MPI_Send(memory, static_cast<int>(bytes), MPI_BYTE, (rank + 1) % size, 1, MPI_COMM_WORLD),
        "MPI_Send");
    ExpectBadBuffer(MPI_Recv(memory, static_cast<int>(bytes), MPI_BYTE, (rank + 1) % size, 1,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                    "MPI_Recv");
  }
  VENDOR_OK(MPI_Barrier(MPI_COMM_WORLD));
}

}  // namespace ferry::vendor_memory
