// Hostile users against the daemons of two nodes: ranks and a node that do anything (hostile_rank,
// hostile_peer), while jobs of another user with checked data run there one after the other. The
// daemons must live, the jobs end right, and in the end nothing be left.
//
// HOSTILE_SECONDS: for how long. HOSTILE_SEED: of a run that is to be done again; the
// seed is printed. HOSTILE_WITHOUT: attacks that are left out, by name.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/clock.h"
#include "config/environment.h"
#include "proto/control.grpc.pb.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_rank.h"
#include "tests/e2e/command.h"
#include "tests/support/processes.h"

namespace ferry::hostile {
namespace {

using daemon::FerrydProcess;
using e2e::Command;
using e2e::CommandResult;
using testing::HasSubstr;

constexpr char kRank[] = "tests/hostile/hostile_rank";
constexpr char kPeer[] = "tests/hostile/hostile_peer";
constexpr char kMixed[] = "tests/faults/ranks/mixed";
constexpr char kHostileUid[] = "12345";
constexpr unsigned kPatienceS = 300;  // of everything that should end by itself
constexpr uint32_t kRanks = 4;        // of a good job, two on each node

std::string Variable(const char* name, const std::string& otherwise) {
  const auto value = config::FindVariable(config::ProcessEnvironment(), name);
  return value.has_value() ? std::string(*value) : otherwise;
}

// One node: its daemon, and the administrator's view of it.
struct NicCounts {
  uint64_t received = 0;  // messages, of one packet at least
  uint64_t refused = 0;   // packets that were not genuine, and whatever else failed
};

class Node {
 public:
  explicit Node(const std::string& name)
      : run_directory_(directory_.path() + "/run"),
        daemon_(run_directory_,
                {"--users=all", "--node_name=" + name, "--max_local_ranks=16", "--log_level=warn"},
                CopyPrograms().c_str()) {
    EXPECT_TRUE(daemon_.WaitUntilReady()) << daemon_.Errors();
    admin_ = control::Admin::NewStub(grpc::CreateChannel("unix:" + run_directory_ + "/admin.sock",
                                                         grpc::InsecureChannelCredentials()));
    memfds_ = CountMemfds();
  }
  const std::string& run_directory() const { return run_directory_; }
  std::string address() const { return daemon_.ControlAddress(); }
  bool Lives() const { return kill(daemon_.pid(), 0) == 0 && !IsDead(); }

  bool CreateJob(const std::string& id, uint32_t node, const std::vector<std::string>& addresses) {
    control::CreateJobRequest request;
    request.set_job_id(id);
    request.set_secret(daemon::kTestSecret);
    request.set_size(kRanks);
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      request.add_node_of_rank(rank / 2);
    }
    for (const std::string& address : addresses) {
      request.add_node_addresses(address);
    }
    request.set_node(node);
    control::CreateJobReply reply;
    grpc::ClientContext context;
    const grpc::Status status = admin_->CreateJob(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return status.ok();
  }
  NicCounts Nics() {
    control::NicsReply nics;
    grpc::ClientContext context;
    EXPECT_TRUE(admin_->Nics(&context, control::NicsRequest(), &nics).ok());
    NicCounts counts;
    for (const control::NicStatus& nic : nics.nics()) {
      counts.received += nic.messages_received();
      counts.refused += nic.errors();
    }
    return counts;
  }
  // Its remaining holdings for jobs; empty if there are none.
  std::string Held() {
    control::StatusReply status;
    control::NicsReply nics;
    grpc::ClientContext status_call;
    grpc::ClientContext nics_call;
    if (!admin_->Status(&status_call, control::StatusRequest(), &status).ok() ||
        !admin_->Nics(&nics_call, control::NicsRequest(), &nics).ok()) {
      return "it does not answer";
    }
    std::string held;
    const auto note = [&held](const std::string& what, uint64_t count) {
      held += count == 0 ? "" : std::to_string(count) + " " + what + "; ";
    };
    for (const control::JobStatus& job : status.jobs()) {
      held += "job " + job.job_id() + " (" + job.state() + ", " + std::to_string(job.joined()) +
              " joined); ";
    }
    note("sessions", status.sessions());
    note("regions", status.regions());
    note("users", static_cast<uint64_t>(status.users_size()));
    for (const control::NicStatus& nic : nics.nics()) {
      note("operations", nic.outstanding());
      note("blocks in use", nic.staging_busy());
    }
    const size_t memfds = CountMemfds();
    note("memfds more than before", memfds > memfds_ ? memfds - memfds_ : 0);
    note("worker processes", tests::WorkersOf(daemon_.pid()).size());
    return held;
  }
  // Ends it; empty when it ended well.
  std::string Stop() {
    daemon_.Signal(SIGTERM);
    const int code = daemon_.Wait();
    return code == 0 ? "" : "ended with " + std::to_string(code) + ": " + daemon_.Errors();
  }
  std::string Errors() const { return daemon_.Errors(); }

 private:
  // To where every user can execute them, as workers are. The path of ferryd.
  std::string CopyPrograms() const {
    namespace fs = std::filesystem;
    fs::permissions(directory_.path(), fs::perms(0755));
    for (const char* program : {FerrydProcess::kReal, "daemon/ferry-worker"}) {
      fs::copy_file(program, directory_.path() + "/" + fs::path(program).filename().string());
    }
    return directory_.path() + "/ferryd";
  }
  size_t CountMemfds() const { return tests::MemfdsOf(daemon_.pid()).size(); }
  bool IsDead() const { return tests::StatusOf(daemon_.pid(), "State").starts_with("Z"); }

  daemon::TemporaryDirectory directory_;
  const std::string run_directory_;
  FerrydProcess daemon_;
  std::unique_ptr<control::Admin::Stub> admin_;
  size_t memfds_ = 0;
};

class HostileTest : public testing::Test {
 protected:
  // A job of both nodes whose ranks check each byte.
  void RunGoodJob(const std::string& id) {
    ASSERT_TRUE(here_.CreateJob(id, 0, {here_.address(), there_.address()}));
    ASSERT_TRUE(there_.CreateJob(id, 1, {here_.address(), there_.address()}));
    std::vector<std::unique_ptr<Command>> ranks;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      const Node& node = rank / 2 == 0 ? here_ : there_;
      ranks.push_back(std::make_unique<Command>(
          std::vector<std::string>{kMixed, "200"},
          std::vector<std::string>{
              "FERRY_JOB_ID=" + id, "FERRY_JOB_SECRET=" + std::string(daemon::kTestSecret),
              "FERRY_RANK=" + std::to_string(rank), "FERRY_SIZE=" + std::to_string(kRanks),
              "FERRY_ATTACH_TIMEOUT_MS=60000", "FERRY_RUN_DIRECTORY=" + node.run_directory()},
          "", kPatienceS));
    }
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      const CommandResult result = ranks[rank]->Wait();
      EXPECT_EQ(result.exit_code, 0) << id << ": " << result.out << result.err;
      EXPECT_THAT(result.out, HasSubstr("rank " + std::to_string(rank) + ": all right"));
    }
  }
  std::vector<std::string> Attack(const char* program, const Node& on, const Node& other,
                                  uint64_t seed) const {
    return {program,
            on.run_directory(),
            other.run_directory(),
            "victim",
            std::to_string(seed),
            std::to_string(seconds_),
            daemon::CanBecomeOthers() ? kHostileUid : "-",
            "--without=" + Variable("HOSTILE_WITHOUT", "")};
  }
  void ExpectNothingHeld(Node& node) {
    std::string held;
    const auto holds_nothing = [&] { return (held = node.Held()).empty(); };
    // Links that are cut last take some timeouts until they are given up.
    EXPECT_TRUE(e2e::Eventually(holds_nothing) || e2e::Eventually(holds_nothing)) << held;
  }

  const uint64_t seconds_ = std::stoull(Variable("HOSTILE_SECONDS", "10"));
  const uint64_t seed_ =
      std::stoull(Variable("HOSTILE_SEED", std::to_string(std::random_device()())));
  Node here_{"here"};
  Node there_{"there"};
};

// Else it would prove nothing that the daemons survive what the hostile node says.
TEST_F(HostileTest, ItsNodeIsTakenForGenuine) {
  const NicCounts before = here_.Nics();
  std::vector<std::string> arguments = Attack(kPeer, here_, there_, seed_);
  arguments.emplace_back("--proof");
  const CommandResult result = e2e::RunCommand(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("64 of 64 packets answered"));
  const NicCounts after = here_.Nics();
  EXPECT_GE(after.received, before.received + 64);
  EXPECT_EQ(after.refused, before.refused) << "packets of the node were dropped";
}

TEST_F(HostileTest, HarmsNobodyElse) {
  std::printf("HOSTILE_SEED=%llu\n", static_cast<unsigned long long>(seed_));
  std::fflush(stdout);
  const uint64_t end_ns = MonotonicNs() + seconds_ * 1'000'000'000;
  const auto limit_s = static_cast<unsigned>(seconds_ + kPatienceS);
  std::vector<std::unique_ptr<Command>> hostile;
  for (const auto& arguments :
       {Attack(kRank, here_, there_, seed_), Attack(kRank, there_, here_, seed_ + 1),
        Attack(kPeer, here_, there_, seed_ + 2)}) {
    hostile.push_back(
        std::make_unique<Command>(arguments, std::vector<std::string>(), "", limit_s));
  }
  RunGoodJob("victim");
  int jobs = 1;
  for (; MonotonicNs() < end_ns && !HasFailure(); ++jobs) {
    RunGoodJob("good-" + std::to_string(jobs));
  }
  std::printf("%d jobs of another user have ended well\n", jobs);
  for (const auto& program : hostile) {
    const CommandResult result = program->Wait();
    EXPECT_EQ(result.exit_code, 0)
        << "signal " << result.signal << ": " << result.out << result.err;
    std::printf("%s", result.out.c_str());
  }
  for (Node* node : {&here_, &there_}) {
    ASSERT_TRUE(node->Lives()) << node->Errors();
    ExpectNothingHeld(*node);
  }
  RunGoodJob("afterwards");
  EXPECT_EQ(here_.Stop(), "");
  EXPECT_EQ(there_.Stop(), "");
}

}  // namespace
}  // namespace ferry::hostile
