// More connections to ferryd's sockets than the limit: which ones are refused, in which words, and
// that the others are served, then and later.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/net_address.h"
#include "common/unique_fd.h"
#include "daemon/grpc/grpc_acceptor.h"
#include "daemon/grpc/grpc_status.h"
#include "daemon/sockets/connection_acceptor.h"
#include "daemon/sockets/packet_socket.h"
#include "proto/control.grpc.pb.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_rank.h"
#include "tests/support/eventually.h"
#include "tests/support/failing_accept.h"
#include "tests/support/http2_client.h"
#include "tests/support/patience.h"

namespace ferry::daemon {
namespace {

constexpr uid_t kOther = 12345;
constexpr size_t kOfUser = 1 + 64;  // with max_local_ranks=1: see control_server.cc

enum class Door { kControl, kAdmin, kTcp, kAttach };

// As refusals name it; the first two are names of files.
std::string NameOf(Door door) {
  constexpr const char* kNames[] = {"control.sock", "admin.sock", "the control port",
                                    "the attach socket"};
  return kNames[static_cast<size_t>(door)];
}

UniqueFd ConnectUnix(const std::string& path, int type) {
  UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

UniqueFd ConnectTcp(uint16_t port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

// The bytes of a gRPC client that begins calls.
std::string GreetingAndCalls(uint32_t count, const std::string& te = "trailers") {
  const std::string fields = tests::CallFields("/ferry.control.Launcher/Status", te);
  std::string text = tests::Http2Greeting();
  for (uint32_t call = 0; call < count; ++call) {
    text += tests::BeginCall(call, fields);
  }
  return text;
}

// Returns true if a gRPC server answers a question behind that; if not, it hangs up. The text is
// sent in pieces of so many bytes.
bool IsAnswered(UniqueFd socket, const std::string& text, size_t piece = 1 << 20) {
  tests::Http2Client client(std::move(socket));
  return client.Send(text, piece) && client.Ask();
}

bool KernelTellsUsers() {
  auto listener = ListenTcp({"127.0.0.1", 0}, "port");
  const UniqueFd client = ConnectTcp(PortOf(listener->get()));
  const UniqueFd accepted(accept(listener->get(), nullptr, nullptr));
  return LocalUserOf(accepted.get()) == geteuid();
}

class ConnectionsTest : public ::testing::TestWithParam<Door> {
 protected:
  void SetUp() override {
    chmod(directory_.path().c_str(), 0755);  // for other users
    ASSERT_TRUE(daemon_.WaitUntilReady()) << daemon_.Errors();
  }
  std::string Path(const std::string& socket) const { return directory_.path() + "/run/" + socket; }

  // A connection that says nothing.
  UniqueFd Connect() {
    if (GetParam() == Door::kTcp) {
      return ConnectTcp(ParseHostPort(daemon_.ControlAddress())->port);
    }
    return GetParam() == Door::kAttach ? ConnectUnix(Path("attach.sock"), SOCK_SEQPACKET)
                                       : ConnectUnix(Path(NameOf(GetParam())), SOCK_STREAM);
  }

  // The status of the first call on a new connection.
  Status Call() {
    if (GetParam() == Door::kAttach) {
      TestRank rank("no-such-job", 0, 1, 1);
      const Status connected = rank.Connect(Path("attach.sock"));
      if (!connected.ok()) {
        return connected;
      }
      const Answer answer = rank.Attach();
      return answer.hang_up ? Status(ErrorCode::kNodeUnreachable, "hung up without a word")
                            : Status(answer.code(), answer.text());
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    const std::string target =
        GetParam() == Door::kTcp ? daemon_.ControlAddress() : "unix:" + Path(NameOf(GetParam()));
    const auto channel =
        grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + tests::kPatience);
    if (GetParam() == Door::kTcp) {
      control::HelloReply reply;
      return FromGrpc(
          control::Peer::NewStub(channel)->Hello(&context, control::HelloRequest(), &reply));
    }
    control::StatusReply reply;
    return FromGrpc(GetParam() == Door::kControl ? control::Launcher::NewStub(channel)->Status(
                                                       &context, control::StatusRequest(), &reply)
                                                 : control::Admin::NewStub(channel)->Status(
                                                       &context, control::StatusRequest(), &reply));
  }
  // Returns true if the service itself has answered.
  static bool WasServed(const Status& status) {
    return status.code() != ErrorCode::kNodeUnreachable && status.code() != ErrorCode::kTimeout &&
           status.code() != ErrorCode::kLimitExceeded;
  }
  static bool Soon(const std::function<bool()>& condition) {
    return tests::Eventually(condition, std::chrono::milliseconds(20));
  }
  // Waits until closed connections have gone.
  void ExpectServedSoon() {
    Status last;
    EXPECT_TRUE(Soon([&] {
      last = Call();
      return WasServed(last);
    })) << last.message();
  }
  // The descriptors that the daemon has open.
  std::set<int> Descriptors() const {
    std::set<int> open;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(daemon_.pid()) + "/fd")) {
      open.insert(std::stoi(entry.path().filename()));
    }
    return open;
  }
  // Waits until the daemon has closed all but `most`.
  void ExpectDescriptorsSoon(size_t most) {
    EXPECT_TRUE(Soon([&] { return Descriptors().size() <= most; })) << Descriptors().size();
  }
  // Leaves the daemon `more` descriptors beside those that it has.
  void LeaveDescriptors(int more) {
    const std::set<int> open = Descriptors();
    rlim_t limit = 0;
    for (; more > 0; ++limit) {
      more -= open.contains(static_cast<int>(limit)) ? 0 : 1;
    }
    rlimit files{};
    ASSERT_EQ(prlimit(daemon_.pid(), RLIMIT_NOFILE, nullptr, &files), 0);
    files.rlim_cur = limit;
    ASSERT_EQ(prlimit(daemon_.pid(), RLIMIT_NOFILE, &files, nullptr), 0);
  }

  TemporaryDirectory directory_;
  FerrydProcess daemon_{directory_.path() + "/run",
                        {"--max_local_ranks=1", "--users=all", "--attach_timeout_ms=600000"}};
};

std::string TestName(const testing::TestParamInfo<Door>& info) {
  constexpr const char* kNames[] = {"Control", "Admin", "Tcp", "Attach"};
  return kNames[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Doors, ConnectionsTest,
                         ::testing::Values(Door::kControl, Door::kAdmin, Door::kTcp, Door::kAttach),
                         TestName);

TEST_P(ConnectionsTest, WithoutDescriptorsItRefusesInWordsAndServesAgainLater) {
  ASSERT_TRUE(WasServed(Call()));  // gRPC opens descriptors of its own the first time
  const size_t before = Descriptors().size();
  for (const int left : {12, 13, 14}) {  // a connection may take three
    LeaveDescriptors(left);
    std::vector<UniqueFd> idle;
    for (int i = 0; i < 40; ++i) {
      idle.push_back(Connect());
    }
    for (int i = 0; i < 3; ++i) {
      const Status refused = Call();
      EXPECT_EQ(refused.code(), ErrorCode::kLimitExceeded) << refused.message();
      EXPECT_NE(refused.message().find("ferryd is out of file descriptors"), std::string::npos)
          << refused.message();
    }
    idle.clear();
    ExpectServedSoon();
    ExpectDescriptorsSoon(before);  // else the next round leaves it those, too
  }
}

TEST_P(ConnectionsTest, NoUserShutsOthersOut) {
  if (GetParam() == Door::kAdmin) {
    GTEST_SKIP() << "is closed to users";
  }
  if (!CanBecomeOthers()) {
    GTEST_SKIP() << "needs two users: run as root";
  }
  if (GetParam() == Door::kTcp && !KernelTellsUsers()) {
    GTEST_SKIP() << "this kernel does not tell whose a TCP connection is (sock_diag)";
  }
  ASSERT_EQ(seteuid(kOther), 0);
  std::vector<UniqueFd> idle;
  for (size_t i = 0; i < kOfUser; ++i) {
    idle.push_back(Connect());
  }
  const Status refused = Call();
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(refused.code(), ErrorCode::kLimitExceeded);
  EXPECT_EQ(refused.message(),
            "uid 12345 has 65 connections to " + NameOf(GetParam()) +
                ", as many as one user may have (max_local_ranks and some more): end ranks or "
                "launchers");
  EXPECT_TRUE(WasServed(Call()));
  idle.clear();
  ASSERT_EQ(seteuid(kOther), 0);
  ExpectServedSoon();
  ASSERT_EQ(seteuid(0), 0);
}

TEST_P(ConnectionsTest, ARefusalIsSaidHoweverTheBytesOfTheCallAreCut) {
  if (GetParam() == Door::kAttach) {
    GTEST_SKIP() << "is no gRPC socket";
  }
  std::vector<UniqueFd> idle;
  for (size_t i = 0; i < kOfUser; ++i) {
    idle.push_back(Connect());
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(IsAnswered(Connect(), GreetingAndCalls(1), 1)) << i;
  }
  EXPECT_EQ(Call().code(), ErrorCode::kLimitExceeded);
}

// gRPC's own limit binds only clients that have acknowledged it.
TEST_P(ConnectionsTest, WhoAcknowledgesNoSettingsHasNoMoreCallsThanOthers) {
  if (GetParam() == Door::kAdmin || GetParam() == Door::kAttach) {
    GTEST_SKIP() << "is no gRPC socket of users";
  }
  EXPECT_TRUE(IsAnswered(Connect(), GreetingAndCalls(kCallsOfConnection)));
  EXPECT_FALSE(IsAnswered(Connect(), GreetingAndCalls(kCallsOfConnection + 1)));
  EXPECT_TRUE(WasServed(Call()));
}

// ---- The log ----

int CountLines(const std::string& text, const std::string& with) {
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    count += line.find(with) != std::string::npos ? 1 : 0;
  }
  return count;
}

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon_.WaitUntilReady()) << daemon_.Errors(); }
  std::string LogAtTheEnd() {
    daemon_.Signal(SIGTERM);
    EXPECT_EQ(daemon_.Wait(), 0);
    return daemon_.Errors();
  }

  TemporaryDirectory directory_;
  const std::string socket_ = directory_.path() + "/run/control.sock";
  FerrydProcess daemon_{directory_.path() + "/run", {}};
};

TEST_F(LogTest, NobodyFillsItWithWhatProtobufSays) {
  const auto stub = control::Launcher::NewStub(
      grpc::CreateChannel("unix:" + socket_, grpc::InsecureChannelCredentials()));
  for (int i = 0; i < 3; ++i) {
    control::CreateJobRequest request;
    request.set_job_id("\xFF");  // is no UTF-8
    control::CreateJobReply reply;
    grpc::ClientContext context;
    EXPECT_FALSE(stub->CreateJob(&context, request, &reply).ok());
  }
  EXPECT_EQ(CountLines(LogAtTheEnd(), "UTF-8"), 0);
}

TEST_F(LogTest, NobodyFillsItWithWhatGrpcSays) {
  constexpr int kConnections = 20;
  constexpr int kCalls = 100;
  for (int i = 0; i < kConnections; ++i) {
    EXPECT_TRUE(
        IsAnswered(ConnectUnix(socket_, SOCK_STREAM), GreetingAndCalls(kCalls, "no such thing")));
  }
  const int lines = CountLines(LogAtTheEnd(), "Error parsing metadata");
  EXPECT_GT(lines, 0);  // or this tests nothing
  EXPECT_LT(lines, kConnections * kCalls / 4);
}

// ---- The acceptor ----

class ConnectionAcceptorTest : public ::testing::Test {
 protected:
  void Start(const ConnectionLimits& limits) {
    acceptor_.emplace(
        context_, "the test's socket", limits,
        ConnectionAcceptor::Handlers{
            .take = [this](UniqueFd fd, const Caller&) { taken_.push_back(std::move(fd)); },
            .refuse = [this](UniqueFd, const Caller&,
                             const Status& why) { refused_.push_back(why.message()); },
            .make_room = {}});
    auto listener = ListenUnix(path_, SOCK_STREAM, 0600);
    ASSERT_TRUE(listener.ok());
    acceptor_->Start(std::move(*listener));
  }
  void Connect() {
    clients_.push_back(ConnectUnix(path_, SOCK_STREAM));
    const size_t before = taken_.size() + refused_.size();
    while (taken_.size() + refused_.size() == before) {
      context_.run_one();
    }
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/socket";
  boost::asio::io_context context_;
  std::vector<UniqueFd> clients_;
  std::vector<UniqueFd> taken_;
  std::vector<std::string> refused_;
  std::optional<ConnectionAcceptor> acceptor_;
};

TEST_F(ConnectionAcceptorTest, AllTogetherHaveALimitToo) {
  Start({.of_user = 8, .in_all = 2});
  Connect();
  Connect();
  Connect();
  EXPECT_EQ(taken_.size(), 2U);
  ASSERT_EQ(refused_.size(), 1U);
  EXPECT_EQ(refused_[0],
            "the test's socket has 2 connections, as many as all users together may have: try "
            "again later");
}

TEST_F(ConnectionAcceptorTest, AConnectionCountsUntilItsDescriptorIsClosed) {
  Start({.of_user = 2, .in_all = 8});
  Connect();
  Connect();
  clients_.clear();  // which closes nothing here
  Connect();
  EXPECT_EQ(taken_.size(), 2U);
  EXPECT_EQ(refused_.size(), 1U);
  // Another file takes its number.
  const int number = taken_.back().get();
  taken_.pop_back();
  const UniqueFd other(dup2(STDERR_FILENO, number));
  ASSERT_EQ(other.get(), number);
  Connect();
  EXPECT_EQ(taken_.size(), 2U);
  Connect();
  EXPECT_EQ(refused_.size(), 2U);
}

TEST_F(ConnectionAcceptorTest, WithoutMemoryItTriesAgainLater) {
  Start({.of_user = 8, .in_all = 8});
  for (const int error : {ENOMEM, ENOBUFS}) {
    tests::FailAccepts(0, error, 3);
    Connect();
    const std::vector<uint64_t> times_ns = tests::TimesOfFailedAccepts();
    ASSERT_EQ(times_ns.size(), 3U);
    EXPECT_GE(times_ns[1] - times_ns[0], 50'000'000U);
    EXPECT_GE(times_ns[2] - times_ns[1], 50'000'000U);
  }
  EXPECT_EQ(taken_.size(), 2U);
  EXPECT_EQ(refused_.size(), 0U);
}

TEST(LocalUserTest, OfSocketsThatAreNotTcpNothingIsSaid) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  EXPECT_FALSE(LocalUserOf(pair[0]).has_value());
  close(pair[0]);
  close(pair[1]);
}

}  // namespace
}  // namespace ferry::daemon
