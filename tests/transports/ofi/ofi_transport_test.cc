// Tests of libfabric, and of what Ferry needs around it, alone; the rest is in tests/conformance.
#include "transports/ofi/ofi_transport.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include "common/unique_fd.h"
#include "transports/ofi/endpoint.h"
#include "transports/ofi/environment.h"
#include "transports/ofi/library.h"
#include "transports/ofi/provider.h"

namespace ferry::transport {
namespace {

using testing::HasSubstr;
using testing::Not;

Status CreationStatus(const TransportOptions& options) {
  return CreateOfiTransport(options).status();
}
TransportOptions OfProvider(const std::string& provider) {
  TransportOptions options;
  options.provider = provider;
  return options;
}

bool Mentions(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

TEST(OfiTransportTest, UnavailableProviderIsNamedWithThoseThatAre) {
  const Status status = CreationStatus(OfProvider("nonesuch"));
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(Mentions(status, "'nonesuch'")) << status.message();
  EXPECT_TRUE(Mentions(status, "tcp;ofi_rxm")) << status.message();
  EXPECT_TRUE(Mentions(status, "sockets")) << status.message();
}

TEST(OfiTransportTest, UnknownDomainIsNamed) {
  TransportOptions options = OfProvider("tcp;ofi_rxm");
  options.domain = "nic99";
  const Status status = CreationStatus(options);
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(Mentions(status, "'nic99'")) << status.message();
}

TEST(OfiTransportTest, SourceAddressThatIsNoAddressIsNamed) {
  TransportOptions options;
  options.source_address = "not an address";
  EXPECT_TRUE(Mentions(CreationStatus(options), "'not an address'"));
  options.provider = "tcp;ofi_rxm";
  EXPECT_TRUE(Mentions(CreationStatus(options), "'not an address'"));
}

TEST(OfiTransportTest, ShortNameStandsForTheWholeStack) {
  StatusOr<std::unique_ptr<Transport>> transport = CreateOfiTransport(OfProvider("tcp"));
  ASSERT_TRUE(transport.ok()) << transport.status().ToString();
  EXPECT_EQ((*transport)->Describe().provider, "tcp;ofi_rxm");
}

TEST(OfiTransportTest, AutomaticChoiceIsTheFirstAvailableAndNeverSockets) {
  StatusOr<std::unique_ptr<Transport>> transport = CreateOfiTransport(TransportOptions());
  ASSERT_TRUE(transport.ok()) << transport.status().ToString();
  EXPECT_NE((*transport)->Describe().provider, "sockets");
  const std::vector<std::string> available = AvailableProviders();
  EXPECT_NE(std::find(available.begin(), available.end(), (*transport)->Describe().provider),
            available.end());
}

TEST(OfiTransportTest, RejectsOptionsOutOfRange) {
  const auto code_with = [](auto change) {
    TransportOptions options;
    change(&options);
    return CreationStatus(options).code();
  };
  using Options = TransportOptions;
  EXPECT_EQ(code_with([](Options* o) { o->max_outstanding = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_with([](Options* o) { o->max_outstanding = 70'000; }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_with([](Options* o) { o->max_outstanding_per_peer = 300; }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_with([](Options* o) { o->receive_buffers = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_with([](Options* o) { o->receive_buffer_bytes = 0; }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_with([](Options* o) { o->fragment_bytes = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_with([](Options* o) { o->post_timeout_ns = 0; }), ErrorCode::kInvalidArgument);
}

TEST(OfiTransportTest, RejectsMoreReceivesThanTheProviderTakes) {
  TransportOptions options = OfProvider("tcp;ofi_rxm");
  options.receive_buffers = 100'000;
  const Status status = CreationStatus(options);
  EXPECT_EQ(status.code(), ErrorCode::kLimitExceeded);
  EXPECT_TRUE(Mentions(status, "receive_buffers")) << status.message();
}

TEST(OfiTransportTest, RejectsMemoryThatIsNoRange) {
  StatusOr<std::unique_ptr<Transport>> transport = CreateOfiTransport(TransportOptions());
  ASSERT_TRUE(transport.ok());
  int value = 0;
  Transport& t = **transport;
  EXPECT_EQ(t.RegisterMemory(nullptr, 8, Access::kLocal).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(t.RegisterMemory(&value, 0, Access::kLocal).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(t.RegisterMemory(&value, UINT64_MAX, Access::kLocal).status().code(),
            ErrorCode::kInvalidArgument);
}

TEST(OfiTransportTest, KeysAreNotGuessable) {
  StatusOr<std::unique_ptr<Transport>> transport = CreateOfiTransport(TransportOptions());
  ASSERT_TRUE(transport.ok());
  if ((*transport)->Describe().provider != "tcp;ofi_rxm") {
    GTEST_SKIP() << "this provider chooses its keys itself";
  }
  int value = 0;
  uint64_t all = 0;
  for (int i = 0; i < 16; i++) {
    all |= (*transport)->RegisterMemory(&value, sizeof(value), Access::kRemoteRead)->key;
  }
  EXPECT_GT(all, uint64_t{1} << 48);
}

TEST(OfiTransportTest, TestsRunInTheRequiredEnvironment) {
  std::vector<std::string> set;
  for (char** entry = environ; *entry != nullptr; entry++) {
    set.emplace_back(*entry);
  }
  for (const EnvironmentVariable& variable : kRequiredEnvironment) {
    const std::string entry = std::string(variable.name) + "=" + variable.value;
    EXPECT_NE(std::find(set.begin(), set.end(), entry), set.end()) << entry;
  }
}

TEST(OfiTransportTest, LeavesSignalHandlersAlone) {
  ASSERT_TRUE(CreateOfiTransport(TransportOptions()).ok());
  for (const int signal : {SIGILL, SIGABRT, SIGINT, SIGTERM}) {  // sanitizers take the others
    struct sigaction action {};
    ASSERT_EQ(sigaction(signal, nullptr, &action), 0);
    EXPECT_EQ(action.sa_handler, SIG_DFL) << "signal " << signal;
  }
}

// ---- The library

// Their constructors take 0.1 s each, for cards that hardly anybody has.
TEST(LibraryTest, LibrariesOfOldCardsStayClosed) {
  const StatusOr<const Libfabric*> library = OpenLibfabric();
  ASSERT_TRUE(library.ok()) << library.status().message();
  std::ifstream file("/proc/self/maps");
  const std::string maps{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(maps, HasSubstr("libfabric.so"));
  EXPECT_THAT(maps, Not(HasSubstr("libinfinipath")));
  EXPECT_THAT(maps, Not(HasSubstr("libpsm2")));
}

TEST(LibraryTest, ProvidersAreFoundWithoutThem) {
  const Libfabric& library = OpenedLibfabric();
  fi_info* found = nullptr;
  ASSERT_EQ(library.getinfo(FI_VERSION(1, 11), nullptr, nullptr, 0, nullptr, &found), 0);
  std::string names;
  for (const fi_info* info = found; info != nullptr; info = info->next) {
    names += std::string(info->fabric_attr->prov_name) + " ";
  }
  library.freeinfo(found);
  EXPECT_THAT(names, HasSubstr("tcp"));
  EXPECT_THAT(names, HasSubstr("sockets"));
  EXPECT_THAT(names, Not(HasSubstr("psm ")));
  EXPECT_THAT(names, Not(HasSubstr("psm2")));
}

// ---- Segments of TCP

class SegmentLimitTest : public testing::Test {
 protected:
  void SetUp() override {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(address_);
    ASSERT_EQ(bind(socket_.get(), Address(), bytes), 0);
    ASSERT_EQ(getsockname(socket_.get(), Address(), &bytes), 0);
  }
  sockaddr* Address() { return reinterpret_cast<sockaddr*>(&address_); }
  std::span<const std::byte> Name() { return std::as_bytes(std::span(&address_, 1)); }
  static int SegmentBytes(const UniqueFd& connection) {
    int segment = 0;
    socklen_t bytes = sizeof(segment);
    EXPECT_EQ(getsockopt(connection.get(), IPPROTO_TCP, TCP_MAXSEG, &segment, &bytes), 0);
    return segment;
  }

  sockaddr_in address_{};
  UniqueFd socket_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

TEST_F(SegmentLimitTest, HoldsForBothEndsOfAConnection) {
  ASSERT_EQ(listen(socket_.get(), 1), 0);
  ASSERT_TRUE(LimitSegments(Name()));
  const UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), Address(), sizeof(address_)), 0);
  const UniqueFd server(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(server.valid());
  EXPECT_LE(SegmentBytes(client), kMostSegmentBytes);
  EXPECT_LE(SegmentBytes(server), kMostSegmentBytes);
}

TEST_F(SegmentLimitTest, NobodyListensThere) { EXPECT_FALSE(LimitSegments(Name())); }

// ---- Instances of epoll

bool IsReadable(int fd) {
  pollfd descriptor{fd, POLLIN, 0};
  return poll(&descriptor, 1, /*timeout_ms=*/0) == 1;
}

// An epoll instance that waits for an eventfd.
struct Instance {
  Instance() {
    epoll_event interest{};
    interest.events = EPOLLIN;
    epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.get(), &interest);
  }
  UniqueFd event{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  UniqueFd epoll{epoll_create1(EPOLL_CLOEXEC)};
};

TEST(EpollWatchTest, FindsTheInstancesOfThisProcess) {
  const std::vector<int> before = EpollInstances();
  const Instance made;
  const std::vector<int> after = EpollInstances();
  EXPECT_EQ(std::ranges::count(before, made.epoll.get()), 0);
  EXPECT_EQ(std::ranges::count(after, made.epoll.get()), 1);
  EXPECT_EQ(std::ranges::count(after, made.event.get()), 0);
}

TEST(EpollWatchTest, IsReadableWhileANewInstanceIs) {
  const Instance old;
  const std::vector<int> before = EpollInstances();
  const Instance first;
  const Instance second;
  const UniqueFd watch = WatchInstances(EpollInstances(), before);
  ASSERT_TRUE(watch.valid());
  eventfd_write(old.event.get(), 1);
  EXPECT_FALSE(IsReadable(watch.get()));
  eventfd_write(second.event.get(), 1);
  EXPECT_TRUE(IsReadable(watch.get()));
  eventfd_t count = 0;
  eventfd_read(second.event.get(), &count);
  EXPECT_FALSE(IsReadable(watch.get()));
}

TEST(EpollWatchTest, WatchesNothingWhenNothingIsNew) {
  const std::vector<int> instances = EpollInstances();
  EXPECT_FALSE(WatchInstances(instances, instances).valid());
}

}  // namespace
}  // namespace ferry::transport
