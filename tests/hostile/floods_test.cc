// Strangers flood ferryd's gRPC doors with what no client writes (http2_floods.h), while the
// service manager waits for signs of life and another user starts jobs: ferryd stays alive, the
// jobs run, and its memory and its threads stay few.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/net_address.h"
#include "tests/e2e/command.h"
#include "tests/e2e/notify_socket.h"
#include "tests/support/http2_floods.h"
#include "tests/support/patience.h"
#include "tests/support/processes.h"
#include "tests/support/slice.h"

namespace ferry::hostile {
namespace {

using e2e::Command;
using e2e::CommandResult;
using tests::Http2Client;
using tests::Http2Flood;
using tests::Http2Flooder;

constexpr uid_t kStranger = 12345;
constexpr size_t kConnections = 16;
constexpr char kWatchdog[] = "WATCHDOG_USEC=1000000";  // a sign of life every 500 ms
constexpr std::chrono::seconds kWatchdogOfTheUnit(30);
constexpr int kSigns = 4;
// The most that a flood may cost. Without a guard it was gigabytes, and thousands of threads.
constexpr uint64_t kMostMemoryKb = 192 << 10;
// And requests of which protobuf makes fifty times as much: a MiB of one caller, and as much again
// of one connection.
constexpr uint64_t kMostRequestsKb = 128 << 10;
constexpr uint64_t kMostThreads = 1'400;  // one for each call that one user may have open, and some
// And what of that may stay.
constexpr uint64_t kMostKeptKb = 32 << 10;
constexpr uint64_t kMostThreadsKept = 64;

// Requests of parts of two bytes each, for which protobuf makes objects of up to a hundred.
struct ManyParts {
  const char* method;
  uint32_t field;  // the repeated one
};
constexpr ManyParts kManyParts[] = {{"/ferry.control.Launcher/CreateJob", 5},
                                    {"/ferry.control.Peer/Matches", 5}};  // at the control port
std::string RequestOf(const ManyParts& parts, size_t bytes) {
  std::string request(bytes, '\0');
  for (size_t at = 0; at < bytes; at += 2) {
    request[at] = static_cast<char>(parts.field << 3 | 2);  // then its length: 0
  }
  return request;
}

// Makes calls of `method`, one after the other on each of many connections, all with the same
// request, until it goes.
class Caller {
 public:
  Caller(const std::string& target, const std::string& method, const std::string& request,
         grpc_compression_algorithm compression) {
    for (size_t i = 0; i < kConnections; ++i) {
      threads_.emplace_back([=, this] {
        grpc::ChannelArguments arguments;
        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
        grpc::GenericStub stub(
            grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));
        while (!over_) {
          Call(stub, method, request, compression);
        }
      });
    }
  }
  ~Caller() {
    over_ = true;
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  uint64_t answers() const { return answers_; }

 private:
  void Call(grpc::GenericStub& stub, const std::string& method, const std::string& request,
            grpc_compression_algorithm compression) {
    grpc::ClientContext context;
    context.set_compression_algorithm(compression);
    context.set_deadline(std::chrono::system_clock::now() + tests::kPatience);
    grpc::CompletionQueue queue;
    const grpc::Slice slice(request);
    const auto call = stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    answers_ += status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ? 0 : 1;
  }

  std::atomic<bool> over_ = false;
  std::atomic<uint64_t> answers_ = 0;
  std::vector<std::thread> threads_;
};

class FloodsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs two users: run as root";
    }
    const std::string parent = std::filesystem::path(RunDirectory()).parent_path();
    chmod(parent.c_str(), 0755);
    ferryd_ =
        std::make_unique<Command>(e2e::Words{"daemon/ferryd", "--users=all", "--node_name=flooded"},
                                  e2e::Words{"NOTIFY_SOCKET=" + manager_.Path(),
                                             "FERRY_RUN_DIRECTORY=" + RunDirectory(), kWatchdog});
    ASSERT_NE(manager_.WaitFor("READY=1"), "");
    ASSERT_NE(manager_.WaitFor("WATCHDOG=1"), "");
    RunAJob();
    memory_kb_ = ReadKb("VmRSS");
  }

  std::string RunDirectory() const { return manager_.RunDirectory(); }
  uint64_t ReadKb(const char* field) const {
    return std::stoull(tests::StatusOf(ferryd_->pid(), field));
  }
  // As root, whom the stranger's limits do not concern.
  void RunAJob() const {
    const CommandResult job =
        e2e::RunCommand({"tools/ferryrun/ferryrun", "-n", "2", "examples/hello/hello"},
                        {"FERRY_RUN_DIRECTORY=" + RunDirectory()});
    EXPECT_EQ(job.exit_code, 0) << job.out << job.err;
  }
  // Floods until the manager has seen some signs of life, and a job was started meanwhile.
  void Endure(const Http2Flood& flood, const Http2Flooder::Connect& connect) {
    SCOPED_TRACE(flood.name);
    const Http2Flooder flooder(flood, kConnections, connect, kStranger);
    manager_.Forget();
    auto last = std::chrono::steady_clock::now();
    std::chrono::steady_clock::duration longest{};
    for (int sign = 0; sign < kSigns; ++sign) {
      ASSERT_NE(manager_.WaitFor("WATCHDOG=1"), "") << "ferryd has ended";
      const auto now = std::chrono::steady_clock::now();
      longest = std::max(longest, now - std::exchange(last, now));
    }
    EXPECT_LT(longest, kWatchdogOfTheUnit) << "systemd would have ended ferryd";
    RunAJob();
    EXPECT_GT(flooder.bytes_sent(), 0U) << "nobody was flooded";
    EXPECT_LT(ReadKb("VmRSS"), memory_kb_ + kMostMemoryKb);
    EXPECT_LT(ReadKb("Threads"), kMostThreads);
  }
  // Afterwards it has again about what it had before.
  void ExpectRecovery() const {
    EXPECT_TRUE(e2e::Eventually([this] {
      return ReadKb("VmRSS") < memory_kb_ + kMostKeptKb && ReadKb("Threads") < kMostThreadsKept;
    })) << ReadKb("VmRSS")
        << " kB, at first " << memory_kb_ << " kB; " << ReadKb("Threads") << " threads";
  }
  // The most memory that ferryd has, in kB, while it answers such requests.
  uint64_t CallWith(const ManyParts& parts, size_t bytes,
                    grpc_compression_algorithm compression) const {
    constexpr uint64_t kAnswers = kConnections;
    const bool is_of_daemons = std::string_view(parts.method).starts_with("/ferry.control.Peer/");
    const Caller caller(
        is_of_daemons ? ControlAddress() : "unix:" + RunDirectory() + "/control.sock", parts.method,
        RequestOf(parts, bytes), compression);
    uint64_t most_kb = 0;
    EXPECT_TRUE(e2e::Eventually([&] {
      most_kb = std::max(most_kb, ReadKb("VmRSS"));
      return caller.answers() >= kAnswers;
    })) << caller.answers();
    return most_kb;
  }
  std::string ControlAddress() const {
    std::ifstream file(RunDirectory() + "/ferryd.json");
    return nlohmann::json::parse(file)["control_address"];
  }
  static std::vector<Http2Flood> Floods() {
    std::vector<Http2Flood> floods;
    const std::vector<std::string> few = {"huge field", "finished calls that are reset",
                                          "calls that are left", "fields that are remembered"};
    for (Http2Flood& flood : tests::Http2Floods()) {
      if (tests::RunsAll() || std::find(few.begin(), few.end(), flood.name) != few.end()) {
        floods.push_back(std::move(flood));
      }
    }
    return floods;
  }

  const e2e::NotifySocket manager_;
  std::unique_ptr<Command> ferryd_;
  uint64_t memory_kb_ = 0;
};

TEST_F(FloodsTest, NobodyStopsFerrydAtControlSock) {
  for (const Http2Flood& flood : Floods()) {
    Endure(flood, [this] { return Http2Client::ToSocket(RunDirectory() + "/control.sock"); });
  }
  ExpectRecovery();
}

// Without TLS any process of the machine may call there.
TEST_F(FloodsTest, NobodyStopsFerrydAtItsControlPort) {
  const uint16_t port = daemon::ParseHostPort(ControlAddress())->port;
  for (const Http2Flood& flood : tests::Http2Floods()) {
    if (tests::RunsAll() || flood.name == std::string("finished calls that are reset")) {
      Endure(flood, [port] { return Http2Client::ToPort(port); });
    }
  }
}

// Neither by long requests, nor by such as are refused for their length, nor by short ones that
// would be long if they were decompressed.
TEST_F(FloodsTest, RequestsOfManyPartsTakeLittle) {
  for (const ManyParts& parts : kManyParts) {
    for (const auto& [bytes, compression] : {std::pair(size_t{500} << 10, GRPC_COMPRESS_NONE),
                                             std::pair(size_t{700} << 10, GRPC_COMPRESS_NONE),
                                             std::pair(size_t{4'000} << 10, GRPC_COMPRESS_GZIP)}) {
      SCOPED_TRACE(std::string(parts.method) + ", bytes: " + std::to_string(bytes) +
                   ", compression: " + std::to_string(compression));
      const uint64_t most_kb = CallWith(parts, bytes, compression);
      EXPECT_LT(most_kb, memory_kb_ + kMostRequestsKb);
    }
  }
  RunAJob();
  ExpectRecovery();
}

}  // namespace
}  // namespace ferry::hostile
