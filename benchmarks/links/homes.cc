// Measures a direct link by itself: the engine and the core of two ranks in two processes, over
// loopback, without libferry and daemons. Beside it, bare sockets: a head, and the data straight to
// its place.
//
//   bazel build //benchmarks/links:homes //client/direct:libferry_direct.so
//   cd out/bin && benchmarks/links/homes [RUNS]
//
// Microseconds one way, and GB/s of windows of 64 messages: the median of 7 batches, of which each
// run has one line.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "common/clock.h"
#include "common/unique_fd.h"
#include "tests/client/direct/peer_process.h"

namespace ferry::client {
namespace {

constexpr std::array<uint64_t, 8> kSizes = {8, 1024, 8192, 16384, 65536, 262144, 1048576, 4194304};
constexpr uint32_t kBatches = 7;
constexpr uint32_t kWindow = 64;
constexpr uint64_t kMostBytes = 4 << 20;
constexpr size_t kHeadBytes = 64;

// Both processes count on the same numbers.
uint32_t RoundsOf(uint64_t size) { return size <= 16384 ? 2000 : size <= 262144 ? 400 : 40; }
uint32_t WindowsOf(uint64_t size) { return size <= 16384 ? 60 : size <= 262144 ? 12 : 4; }

void PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  (void)sched_setaffinity(0, sizeof(set), &set);
}

// One of two ends: sends and receives one message at a time, or a window of them.
struct End {
  std::function<void(const std::byte* data, uint64_t size, uint32_t count)> send;
  std::function<void(std::byte* data, uint64_t size, uint32_t count)> receive;
  std::function<void(std::byte* out, std::byte* in, uint64_t size, uint32_t count)> exchange;
};

// ---- A direct link -----------------------------------------------------------------------------

class LinkEnd {
 public:
  explicit LinkEnd(LinkedRank& rank) : rank_(rank), peer_(1 - rank.rank()) {}

  End AsEnd() {
    return {[this](const std::byte* data, uint64_t size, uint32_t count) {
              Begin(data, size, count);
              Await();
            },
            [this](std::byte* data, uint64_t size, uint32_t count) {
              Post(data, size, count);
              Await();
            },
            [this](std::byte* out, std::byte* in, uint64_t size, uint32_t count) {
              Post(in, size, count);
              Begin(out, size, count);
              Await();
            }};
  }

 private:
  void Begin(const std::byte* data, uint64_t size, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t request = rank_.Send(peer_, 1, data, size);
      if (request != 0) {
        open_.push_back(request);
      }
    }
  }
  void Post(std::byte* data, uint64_t size, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      open_.push_back(rank_.Receive(static_cast<int32_t>(peer_), 1, Private(data), size));
    }
  }
  void Await() {
    for (const uint32_t request : open_) {
      do {
        (void)rank_.ProgressLinks();
      } while (!rank_.Test(request));
      if (rank_.Finish(request) != ErrorCode::kOk) {
        std::fprintf(stderr, "a message has failed\n");
        std::_Exit(1);
      }
    }
    open_.clear();
    (void)rank_.ProgressLinks();
  }

  LinkedRank& rank_;
  const uint32_t peer_;
  std::vector<uint32_t> open_;
};

// ---- Bare sockets ------------------------------------------------------------------------------

std::array<UniqueFd, 2> ConnectedSockets() {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  UniqueFd caller(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(listener.get(), generic, bytes) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), generic, &bytes) != 0 ||
      connect(caller.get(), generic, bytes) != 0) {
    std::perror("loopback");
    std::exit(1);
  }
  UniqueFd called(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const int on = 1;
  for (const int fd : {caller.get(), called.get()}) {
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return {std::move(caller), std::move(called)};
}

void Write(int fd, const std::byte* data, uint64_t size) {
  std::array<std::byte, kHeadBytes> head{};
  iovec pieces[2] = {{head.data(), head.size()}, {const_cast<std::byte*>(data), size}};
  msghdr message{};
  for (size_t first = 0; first < 2;) {
    message.msg_iov = pieces + first;
    message.msg_iovlen = 2 - first;
    const ssize_t sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
      std::perror("sendmsg");
      std::_Exit(1);
    }
    for (auto left = static_cast<size_t>(std::max<ssize_t>(sent, 0)); left != 0 && first < 2;) {
      const size_t taken = std::min(left, pieces[first].iov_len);
      pieces[first].iov_base = static_cast<std::byte*>(pieces[first].iov_base) + taken;
      pieces[first].iov_len -= taken;
      left -= taken;
      first += pieces[first].iov_len == 0 ? 1 : 0;
    }
    first += first == 1 && pieces[1].iov_len == 0 ? 1 : 0;
  }
}

void Read(int fd, std::byte* data, uint64_t size) {
  std::array<std::byte, kHeadBytes> head;
  const auto take = [fd](std::byte* to, uint64_t bytes) {
    for (uint64_t got = 0; got < bytes;) {
      const ssize_t n = recv(fd, to + got, bytes - got, MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN)) {
        std::fprintf(stderr, "the other process has gone\n");
        std::_Exit(1);
      }
      got += n > 0 ? static_cast<uint64_t>(n) : 0;
    }
  };
  take(head.data(), head.size());
  take(data, size);
}

End SocketEnd(int fd) {
  return {[fd](const std::byte* data, uint64_t size, uint32_t count) {
            for (uint32_t i = 0; i < count; ++i) {
              Write(fd, data, size);
            }
          },
          [fd](std::byte* data, uint64_t size, uint32_t count) {
            for (uint32_t i = 0; i < count; ++i) {
              Read(fd, data, size);
            }
          },
          nullptr};
}

// ---- Measuring ---------------------------------------------------------------------------------

double Median(std::array<double, kBatches> values) {
  std::sort(values.begin(), values.end());
  return values[kBatches / 2];
}

class Bench {
 public:
  Bench(End end, uint32_t rank)
      : end_(std::move(end)), rank_(rank), out_(kMostBytes), in_(kMostBytes) {}

  double LatencyUs(uint64_t size) {
    return Measure(RoundsOf(size),
                   [&] {
                     if (rank_ == 0) {
                       end_.send(out_.data(), size, 1);
                       end_.receive(in_.data(), size, 1);
                     } else {
                       end_.receive(in_.data(), size, 1);
                       end_.send(out_.data(), size, 1);
                     }
                   }) /
           2e3;
  }
  double WindowGbPerS(uint64_t size) {
    return static_cast<double>(size) * kWindow / Measure(WindowsOf(size), [&] {
             if (rank_ == 0) {
               end_.send(out_.data(), size, kWindow);
               end_.receive(in_.data(), 8, 1);
             } else {
               end_.receive(in_.data(), size, kWindow);
               end_.send(out_.data(), 8, 1);
             }
           });
  }
  double BothWaysGbPerS(uint64_t size) {
    return 2.0 * static_cast<double>(size) * kWindow /
           Measure(WindowsOf(size), [&] { end_.exchange(out_.data(), in_.data(), size, kWindow); });
  }
  bool has_both_ways() const { return end_.exchange != nullptr; }

 private:
  // Nanoseconds of a round.
  template <typename Round>
  double Measure(uint32_t rounds, Round&& round) {
    std::array<double, kBatches> batches{};
    for (uint32_t i = 0; i < rounds / 4 + 1; ++i) {
      round();
    }
    for (double& batch : batches) {
      const uint64_t begin_ns = MonotonicNs();
      for (uint32_t i = 0; i < rounds; ++i) {
        round();
      }
      batch = static_cast<double>(MonotonicNs() - begin_ns) / rounds;
    }
    return Median(batches);
  }

  const End end_;
  const uint32_t rank_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
};

void RunAll(const char* name, Bench& bench, bool prints) {
  const auto line = [&](const char* what, auto&& measure) {
    std::array<double, kSizes.size()> figures;
    std::transform(kSizes.begin(), kSizes.end(), figures.begin(), measure);
    if (prints) {
      std::printf("%-14s %-12s", name, what);
      for (const double figure : figures) {
        std::printf(" %9.2f", figure);
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  };
  line("us", [&](uint64_t size) { return bench.LatencyUs(size); });
  line("GB/s", [&](uint64_t size) { return bench.WindowGbPerS(size); });
  if (bench.has_both_ways()) {
    line("both, GB/s", [&](uint64_t size) { return bench.BothWaysGbPerS(size); });
  }
}

int Main(int runs) {
  const std::array<UniqueFd, 2> sockets = ConnectedSockets();
  LinkedProcess peer([&](LinkedRank& rank) {
    PinTo(1);
    LinkEnd link(rank);
    Bench by_link(link.AsEnd(), 1), bare(SocketEnd(sockets[1].get()), 1);
    for (int run = 0; run < runs; ++run) {
      RunAll("direct link", by_link, false);
      RunAll("bare sockets", bare, false);
    }
  });
  PinTo(0);
  LinkEnd link(peer.rank());
  Bench by_link(link.AsEnd(), 0), bare(SocketEnd(sockets[0].get()), 0);
  std::printf("%-27s", "");
  for (const uint64_t size : kSizes) {
    std::printf(" %9llu", static_cast<unsigned long long>(size));
  }
  std::printf("\n");
  for (int run = 0; run < runs; ++run) {
    RunAll("direct link", by_link, true);
    RunAll("bare sockets", bare, true);
  }
  return peer.Join();
}

}  // namespace
}  // namespace ferry::client

int main(int argc, char** argv) {
  return ferry::client::Main(argc > 1 ? std::max(1, std::atoi(argv[1])) : 3);
}
