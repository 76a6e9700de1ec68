// The rights of users at another user's daemon: jobs of their own, and nothing else.
#include <fcntl.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/hex_text.h"
#include "common/rank_table.h"
#include "daemon/admin/admin_report.h"
#include "daemon/grpc/grpc_acceptor.h"
#include "daemon/grpc/http2_guard.h"
#include "daemon/grpc/unread_answers.h"
#include "daemon/jobs/launchers.h"
#include "daemon/services/question_gate.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/jobs/no_links.h"
#include "tests/daemon/test_daemon.h"
#include "tests/support/http2_client.h"

namespace ferry::daemon {
namespace {

// A job that is asked for over the attach socket (attach::JobRequest), right but for what a test
// changes.
struct NewJob {
  std::string id = "made-here";
  std::string secret = kTestSecret;
  std::vector<uint32_t> nodes = {0, 1};
  std::vector<std::string> addresses = {"127.0.0.1:1", "127.0.0.1:2"};
  uint32_t node = 0;
  std::optional<uint32_t> says_ranks = {};
  std::optional<uint32_t> says_nodes = {};
  std::optional<uint32_t> says_bytes = {};
  std::optional<uint32_t> says_table_bytes = {};
  uint32_t tree_radix = 0;
  bool is_sealed = true;
  size_t descriptors = 1;

  Answer Send(TestRank& over) const {
    std::string list = PackNodes(nodes);
    const size_t table_bytes = list.size();
    for (const std::string& address : addresses) {
      list.append(address.c_str(), address.size() + 1);
    }
    const UniqueFd fd(memfd_create("job", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(write(fd.get(), list.data(), list.size()), static_cast<ssize_t>(list.size()));
    EXPECT_TRUE(!is_sealed || fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    attach::JobRequest request{};
    request.header = over.Header(attach::Kind::kCreateJob);
    request.size = says_ranks.value_or(static_cast<uint32_t>(nodes.size()));
    request.node = node;
    request.node_count = says_nodes.value_or(static_cast<uint32_t>(addresses.size()));
    request.list_bytes = says_bytes.value_or(static_cast<uint32_t>(list.size()));
    id.copy(request.job_id, sizeof(request.job_id));
    secret.copy(reinterpret_cast<char*>(request.job_secret), sizeof(request.job_secret));
    request.job_secret_bytes = static_cast<uint32_t>(secret.size());
    request.tree_radix = tree_radix;
    request.table_bytes = says_table_bytes.value_or(static_cast<uint32_t>(table_bytes));
    return over.Ask(request, std::vector<int>(descriptors, fd.get()));
  }
};

class LauncherTest : public ::testing::Test {
 protected:
  LauncherTest() : daemon_(TestOptions(directory_.path() + "/a")) {}

  control::CreateJobRequest JobRequest(const std::string& id) {
    return TestDaemon::JobRequest(id, {0, 0}, {daemon_.address()}, 0);
  }
  Status Create(const std::string& token, const control::CreateJobRequest& request) {
    return daemon_.Tell(&LauncherStub::CreateJob, request, token);
  }
  Status Destroy(const std::string& token, const std::string& id) {
    control::DestroyJobRequest request;
    request.set_job_id(id);
    return daemon_.Tell(&LauncherStub::DestroyJob, request, token);
  }
  control::StatusReply GetStatus(const std::string& token) {
    control::StatusReply reply;
    EXPECT_TRUE(daemon_.Ask(&LauncherStub::Status, {}, &reply, token).ok());
    return reply;
  }

  TemporaryDirectory directory_;
  TestDaemon daemon_;
};

TEST_F(LauncherTest, ItsJobsBelongToTheUidThatTheKernelNames) {
  const TestLauncher launcher(daemon_.attach_path());
  EXPECT_EQ(launcher.uid(), geteuid());
  ASSERT_TRUE(Create(launcher.token(), JobRequest("job")).ok());
  const control::StatusReply status = GetStatus(launcher.token());
  EXPECT_EQ(status.node().control_address(), daemon_.address());
  ASSERT_EQ(status.jobs_size(), 1);
  EXPECT_EQ(status.jobs(0).job_id(), "job");
  EXPECT_EQ(status.jobs(0).uid(), geteuid());
  EXPECT_TRUE(Destroy(launcher.token(), "job").ok());
  EXPECT_EQ(GetStatus(launcher.token()).jobs_size(), 0);
}

TEST_F(LauncherTest, TellsOfRanksThatEndBeforeTheyAttach) {
  const TestLauncher launcher(daemon_.attach_path());
  const auto tell = [&](const std::string& token, uint32_t rank, bool* was_absent) {
    control::RankEndedRequest request;
    request.set_job_id("job");
    request.set_rank(rank);
    request.set_how("exited with code 0");
    control::RankEndedReply reply;
    const Status status = daemon_.Ask(&LauncherStub::RankEnded, request, &reply, token);
    *was_absent = reply.was_absent();
    return status;
  };
  ASSERT_TRUE(Create(launcher.token(), JobRequest("job")).ok());
  TestRank rank = daemon_.AttachRank(0, 2);
  auto joined = std::async(std::launch::async, [&] { return rank.Join().status(); });
  bool was_absent = true;
  EXPECT_TRUE(tell(launcher.token(), 0, &was_absent).ok());
  EXPECT_FALSE(was_absent);  // its connection tells what becomes of it
  ExpectError(tell("nobody's", 1, &was_absent), ErrorCode::kPermissionDenied, "no launcher's");
  ExpectError(tell(launcher.token(), 2, &was_absent), ErrorCode::kNotFound,
              "rank 2 of job job is not a rank of this daemon");
  EXPECT_TRUE(tell(launcher.token(), 1, &was_absent).ok());
  EXPECT_TRUE(was_absent);
  ExpectError(joined.get(), ErrorCode::kPeerDied, "rank 1 of job job exited with code 0");
}

TEST_F(LauncherTest, ThePlacesOfRanksMayBePacked) {
  TestLauncher launcher(daemon_.attach_path());
  control::CreateJobRequest request = JobRequest("job");
  request.set_packed_nodes(PackNodes({0, 0}));
  ExpectError(Create(launcher.token(), request), ErrorCode::kInvalidArgument, "it has both");
  request.clear_node_of_rank();
  request.set_size(3);
  ExpectError(Create(launcher.token(), request), ErrorCode::kInvalidArgument,
              "it has 3 ranks, and a table of ranks that cannot be");
  request.set_size(UINT32_MAX);
  ExpectError(Create(launcher.token(), request), ErrorCode::kInvalidArgument, "places 0");
  request.set_size(2);
  ASSERT_TRUE(Create(launcher.token(), request).ok());
  EXPECT_EQ(GetStatus(launcher.token()).jobs(0).size(), 2U);
}

TEST(JobSpecTest, AJobOfAMillionRanksFitsIntoAMessage) {
  constexpr uint32_t kNodes = 10'000;
  constexpr uint32_t kRanksOfNode = 104;
  std::vector<uint32_t> nodes;
  control::CreateJobRequest request;
  for (uint32_t node = 0; node < kNodes; ++node) {
    nodes.insert(nodes.end(), kRanksOfNode, node);
    request.add_node_addresses("192.168.100.100:" + std::to_string(10'000 + node));
  }
  request.set_job_id("job");
  request.set_secret(kTestSecret);
  request.set_size(static_cast<uint32_t>(nodes.size()));
  request.set_packed_nodes(PackNodes(nodes));
  EXPECT_LT(request.ByteSizeLong(), static_cast<size_t>(kMostMessageBytes));
  const StatusOr<JobSpec> spec = SpecFrom(request);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->node_of_rank, nodes);
}

TEST_F(LauncherTest, MayNotStartJobsForOthers) {
  const TestLauncher launcher(daemon_.attach_path());
  auto request = JobRequest("job");
  request.set_uid(geteuid() + 1);
  ExpectError(Create(launcher.token(), request), ErrorCode::kPermissionDenied,
              "may start jobs only for itself, not for uid " + std::to_string(geteuid() + 1));
  request.set_uid(geteuid());
  EXPECT_TRUE(Create(launcher.token(), request).ok());
}

TEST_F(LauncherTest, AnAdministratorStartsJobsForOthers) {
  auto request = JobRequest("job");
  request.set_uid(12345);
  ASSERT_TRUE(daemon_.CreateJob(request).ok());
  ASSERT_EQ(daemon_.GetStatus().jobs_size(), 1);
  EXPECT_EQ(daemon_.GetStatus().jobs(0).uid(), 12345U);
  const TestLauncher launcher(daemon_.attach_path());
  EXPECT_EQ(GetStatus(launcher.token()).jobs_size(), 0) << "another user's jobs are not shown";
  ExpectError(Destroy(launcher.token(), "job"), ErrorCode::kNotFound,
              "uid " + std::to_string(geteuid()) + " has no job job");
}

TEST_F(LauncherTest, CallsNeedALaunchersToken) {
  ExpectError(Create("", JobRequest("job")), ErrorCode::kPermissionDenied, "carries no token");
  ExpectError(Create(std::string(64, 'a'), JobRequest("job")), ErrorCode::kPermissionDenied,
              "token is no launcher's");
  ExpectError(Destroy("", "job"), ErrorCode::kPermissionDenied, "carries no token");
}

// A connection is a rank's or a launcher's, and has the calls of that one only.
TEST_F(LauncherTest, ALauncherHasNoCallsOfARank) {
  for (const auto call :
       {+[](TestRank& rank) { return rank.Join(); }, +[](TestRank& rank) { return rank.Detach(); },
        +[](TestRank& rank) { return rank.Abort(1, ""); },
        +[](TestRank& rank) { return rank.Peers(0); },
        +[](TestRank& rank) { return rank.EndRegion(1); },
        +[](TestRank& rank) { return rank.Offer(true, {}, 0); },
        +[](TestRank& rank) { return rank.Withdraw(true, {}); },
        +[](TestRank& rank) { return rank.Why(); }}) {
    TestLauncher launcher(daemon_.attach_path());
    ASSERT_NE(launcher.token(), "");
    const Answer answer = call(launcher.rank());
    EXPECT_EQ(answer.kind(), attach::Kind::kGoodbye);
    ExpectError(answer.status(), ErrorCode::kCorrupt, "before kAttach");
  }
}

TEST_F(LauncherTest, ARankStartsNoJobs) {
  TestRank rank = daemon_.StartRank();
  ExpectError(NewJob().Send(rank).status(), ErrorCode::kPermissionDenied, "only launchers");
  TestRank stranger("job", 0, 1, 1);
  ASSERT_TRUE(stranger.Connect(daemon_.attach_path()).ok());
  ExpectError(NewJob().Send(stranger).status(), ErrorCode::kPermissionDenied, "only launchers");
  EXPECT_EQ(daemon_.GetStatus().jobs_size(), 1);
}

// As ranks do whose launcher is none of Ferry's.
TEST_F(LauncherTest, StartsJobsOverItsConnection) {
  TestLauncher launcher(daemon_.attach_path());
  EXPECT_EQ(launcher.control_address(), daemon_.address());
  NewJob job;
  job.nodes = {0, 0, 0};
  job.addresses = {daemon_.address()};
  ASSERT_EQ(job.Send(launcher.rank()).code(), ErrorCode::kOk);
  const control::StatusReply status = GetStatus(launcher.token());
  ASSERT_EQ(status.jobs_size(), 1);
  EXPECT_EQ(status.jobs(0).uid(), launcher.uid());
  EXPECT_EQ(status.jobs(0).size(), 3U);
  ExpectError(job.Send(launcher.rank()).status(), ErrorCode::kAlreadyExists, "exists already");
  launcher.HangUp();
  EXPECT_TRUE(daemon_.plane.WaitFor("RemoveJob " + job.id));
}

// A daemon knows others than its neighbours in the tree by name only.
TEST_F(LauncherTest, NodesOfSuchAJobAreATreeOfTheRadixThatItNames) {
  const auto dormant = [&](uint32_t radix) {
    TestLauncher launcher(daemon_.attach_path());
    NewJob job;
    job.tree_radix = radix;
    job.nodes = {0, 1, 2, 3, 4};
    job.addresses = {daemon_.address(), "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"};
    EXPECT_EQ(job.Send(launcher.rank()).code(), ErrorCode::kOk);
    const control::StatusReply status = daemon_.GetStatus();
    EXPECT_EQ(status.peers_size(), 4) << radix;
    const auto count = std::count_if(status.peers().begin(), status.peers().end(),
                                     [](const auto& peer) { return peer.state() == "dormant"; });
    launcher.HangUp();
    EXPECT_TRUE(daemon_.plane.WaitFor("RemoveJob " + job.id));
    return count;
  };
  EXPECT_EQ(dormant(0), 0);
  EXPECT_EQ(dormant(1), 3);
  EXPECT_EQ(dormant(3), 1);
  EXPECT_EQ(dormant(4), 0) << "each has a link to each other in any case";
  EXPECT_EQ(dormant(UINT32_MAX), 0);
}

TEST_F(LauncherTest, JobsThatMakeNoSenseAreRefusedThereToo) {
  TestLauncher launcher(daemon_.attach_path());
  const auto refused = [&](const NewJob& job, ErrorCode code, const std::string& words) {
    ExpectError(job.Send(launcher.rank()).status(), code, words);
  };
  NewJob job;
  job.secret = "short";
  refused(job, ErrorCode::kInvalidArgument, "its secret must be 16 to 64 bytes");
  job = NewJob();
  job.node = 7;
  refused(job, ErrorCode::kInvalidArgument, "node 7 is none of its 2");
  job = NewJob();
  job.nodes.assign(2000, 0);
  refused(job, ErrorCode::kLimitExceeded, "2000 ranks on this node are more than the 4 that");
  job = NewJob();
  job.addresses.assign(3, "127.0.0.1:9");
  refused(job, ErrorCode::kLimitExceeded, "at most as many nodes as ranks");
  job = NewJob();
  job.nodes.assign((1U << 20) + 1, 0);  // in a few bytes
  refused(job, ErrorCode::kLimitExceeded, "a job has at most 1048576 ranks");
  job = NewJob();
  job.says_bytes = attach::kMostListBytes + 1;
  refused(job, ErrorCode::kLimitExceeded, "at most 524288");
  EXPECT_EQ(GetStatus(launcher.token()).jobs_size(), 0);
}

// A list that no launcher of Ferry's sends ends the connection, and makes no job.
TEST_F(LauncherTest, AListThatIsCutOffOrNoneEndsTheConnection) {
  const auto ends = [&](const NewJob& job, const std::string& words) {
    TestLauncher launcher(daemon_.attach_path());
    const Answer answer = job.Send(launcher.rank());
    EXPECT_EQ(answer.kind(), attach::Kind::kGoodbye);
    ExpectError(answer.status(), ErrorCode::kCorrupt, words);
  };
  NewJob job;
  job.says_bytes = 100'000;
  ends(job, "has not 100000 bytes");
  job = NewJob();
  job.says_ranks = 1000;
  ends(job, "is cut off");
  for (const uint32_t table_bytes : {0U, 1U, 2U, 4U, 1000U, UINT32_MAX}) {
    job = NewJob();
    job.says_table_bytes = table_bytes;
    ends(job, "is cut off");
  }
  job = NewJob();
  job.addresses = {"127.0.0.1:1"};
  job.says_nodes = 2;
  ends(job, "is cut off");
  job = NewJob();
  job.is_sealed = false;
  ends(job, "is no sealed memfd");
  job = NewJob();
  job.descriptors = 0;
  ends(job, "comes with 0 descriptors instead of 1");
  job.descriptors = 2;
  ends(job, "comes with 2 descriptors instead of 1");
  EXPECT_EQ(daemon_.GetStatus().jobs_size(), 0);
}

TEST_F(LauncherTest, AConnectionIsARanksOrALaunchers) {
  TestLauncher launcher(daemon_.attach_path());
  ASSERT_TRUE(Create(launcher.token(), JobRequest("job")).ok());
  const Answer attached = launcher.rank().Attach();
  EXPECT_EQ(attached.code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(attached.text(), "this connection is a launcher's");
  TestRank rank = daemon_.AttachRank(0, 2);
  const Answer answer = rank.Ask(attach::UserRequest{rank.Header(attach::Kind::kUser)});
  EXPECT_EQ(answer.code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(answer.text(), "this connection is a rank's: a launcher needs one of its own");
}

TEST_F(LauncherTest, ItsJobsEndWithItsConnection) {
  TestLauncher launcher(daemon_.attach_path());
  const TestLauncher other(daemon_.attach_path());
  ASSERT_TRUE(Create(launcher.token(), JobRequest("job")).ok());
  ASSERT_TRUE(Create(other.token(), JobRequest("stays")).ok());
  TestRank rank = daemon_.AttachRank(0, 2);
  launcher.HangUp();
  const Answer goodbye = rank.Read();
  EXPECT_EQ(goodbye.kind(), attach::Kind::kGoodbye);
  EXPECT_EQ(goodbye.code(), ErrorCode::kAborted);
  ASSERT_TRUE(daemon_.plane.WaitFor("RemoveJob job"));
  ASSERT_EQ(GetStatus(other.token()).jobs_size(), 1);
  EXPECT_EQ(GetStatus(other.token()).jobs(0).job_id(), "stays");
  ExpectError(Create(launcher.token(), JobRequest("job")), ErrorCode::kPermissionDenied,
              "its connection to the attach socket must stay open");
}

// ---- What a user may see ----

TEST_F(LauncherTest, AUserSeesHisOwnRanks) {
  const TestLauncher launcher(daemon_.attach_path());
  ASSERT_TRUE(Create(launcher.token(), JobRequest("job")).ok());
  TestRank rank = daemon_.AttachRank(0, 2);
  control::SessionsReply sessions;
  ASSERT_TRUE(daemon_.Ask(&LauncherStub::Sessions, {}, &sessions, launcher.token()).ok());
  ASSERT_EQ(sessions.sessions_size(), 1);
  EXPECT_EQ(sessions.sessions(0).job_id(), "job");
  control::CountersRequest all;
  all.set_rank(-1);
  control::CountersReply counters;
  ASSERT_TRUE(daemon_.Ask(&LauncherStub::Counters, all, &counters, launcher.token()).ok());
  ASSERT_GT(counters.counters_size(), 0);
  EXPECT_EQ(counters.counters(0).scope(), "job job rank 0");
  control::WhyRequest one;
  one.set_job_id("job");
  control::WhyReply why;
  ASSERT_TRUE(daemon_.Ask(&LauncherStub::Why, one, &why, launcher.token()).ok());
  ASSERT_EQ(why.ranks_size(), 1);
  EXPECT_EQ(why.ranks(0).state(), "computes");
  control::NicsReply nics;
  ASSERT_TRUE(daemon_.Ask(&LauncherStub::Nics, {}, &nics, launcher.token()).ok());
  EXPECT_EQ(nics.nics_size(), 2);
  control::GpusReply gpus;
  ASSERT_TRUE(daemon_.Ask(&LauncherStub::Gpus, {}, &gpus, launcher.token()).ok());
  EXPECT_EQ(gpus.gpus_size(), 1);
}

// The answer is the one for a job that does not exist: its name may be guessed, but not found out.
TEST_F(LauncherTest, AnothersJobIsAsIfItWereNotThere) {
  auto request = JobRequest("job");
  request.set_uid(12345);
  ASSERT_TRUE(daemon_.CreateJob(request).ok());
  const TestLauncher launcher(daemon_.attach_path());
  control::WhyRequest one;
  one.set_job_id("job");
  ExpectError(daemon_.Tell(&LauncherStub::Why, one, launcher.token()), ErrorCode::kNotFound,
              "there is no job job on this daemon");
  one.set_all_ranks(true);
  ExpectError(daemon_.Tell(&LauncherStub::Why, one, launcher.token()), ErrorCode::kNotFound,
              "there is no job job on this daemon");
  control::CountersRequest counters;
  counters.set_job_id("job");
  counters.set_rank(-1);
  ExpectError(daemon_.Tell(&LauncherStub::Counters, counters, launcher.token()),
              ErrorCode::kNotFound, "no such rank");
}

TEST_F(LauncherTest, NobodySeesAnythingWithoutALaunchersToken) {
  for (const std::string& token : {std::string(), std::string(64, 'a')}) {
    const auto expect_refusal = [&](auto method) {
      EXPECT_EQ(daemon_.Tell(method, {}, token).code(), ErrorCode::kPermissionDenied);
    };
    expect_refusal(&LauncherStub::Sessions);
    expect_refusal(&LauncherStub::Counters);
    expect_refusal(&LauncherStub::Why);
    expect_refusal(&LauncherStub::Nics);
    expect_refusal(&LauncherStub::Gpus);
  }
}

TEST(QuestionGateTest, NoUserTakesThePlaceOfAnother) {
  QuestionGate gate(2);
  std::optional<QuestionGate::Place> first = gate.Enter(1001);
  const std::optional<QuestionGate::Place> second = gate.Enter(1001);
  EXPECT_TRUE(first.has_value() && second.has_value());
  EXPECT_FALSE(gate.Enter(1001).has_value());
  EXPECT_TRUE(gate.Enter(1002).has_value());
  first.reset();
  EXPECT_TRUE(gate.Enter(1001).has_value());
  EXPECT_TRUE(gate.Enter(1001).has_value()) << "the one before has been given back";
}

// No client fills the daemon with calls that stay open.
TEST_F(LauncherTest, AConnectionHasOnlySoManyCallsAtATime) {
  const TestLauncher launcher(daemon_.attach_path());
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto channel = grpc::CreateCustomChannel("unix:" + directory_.path() + "/a/control.sock",
                                                 grpc::InsecureChannelCredentials(), own);
  const auto stub = control::Launcher::NewStub(channel);
  const auto ask = [&launcher](LauncherStub& with, int patience_s = 20) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(patience_s));
    context.AddMetadata("ferry-token", launcher.token());
    control::StatusReply reply;
    return with.Status(&context, control::StatusRequest(), &reply).error_code();
  };
  ASSERT_EQ(ask(*stub), grpc::StatusCode::OK);
  grpc::GenericStub generic(channel);
  grpc::CompletionQueue queue;
  std::deque<grpc::ClientContext> contexts(kCallsOfConnection);
  std::vector<std::unique_ptr<grpc::GenericClientAsyncReaderWriter>> calls;
  void* tag = nullptr;
  bool ok = false;
  for (grpc::ClientContext& context : contexts) {  // the call waits for a request that never comes
    calls.push_back(generic.PrepareCall(&context, "/ferry.control.Launcher/Status", &queue));
    calls.back()->StartCall(nullptr);
    ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  }
  EXPECT_EQ(ask(*stub, 1), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(ask(daemon_.stub<LauncherStub>()), grpc::StatusCode::OK)
      << "others' connections are theirs";
  for (size_t i = 0; i < calls.size(); ++i) {
    contexts[i].TryCancel();
    grpc::Status status;
    calls[i]->Finish(&status, nullptr);
    ASSERT_TRUE(queue.Next(&tag, &ok));
  }
  EXPECT_EQ(ask(*stub), grpc::StatusCode::OK);
  queue.Shutdown();
}

TEST_F(LauncherTest, TheAdminServiceIsNotOnTheUsersSocket) {
  const auto admin = control::Admin::NewStub(grpc::CreateChannel(
      "unix:" + directory_.path() + "/a/control.sock", grpc::InsecureChannelCredentials()));
  control::StatusReply reply;
  EXPECT_EQ(
      TestDaemon::Call(*admin, &control::Admin::Stub::Status, control::StatusRequest(), &reply)
          .code(),
      ErrorCode::kUnsupported);
}

// ---- Two users, whatever this process may become ----

JobSpec Spec(const std::string& id) {
  JobSpec spec;
  spec.id = id;
  spec.secret = kTestSecret;
  spec.node_addresses = {"127.0.0.1:1"};
  spec.node_of_rank = {0};
  return spec;
}

TEST(LaunchersTest, NobodyTouchesTheJobOfAnother) {
  boost::asio::io_context loop;
  FakeDataPlane plane;
  NoLinks links;
  JobRegistry registry(loop, plane, RegistryLimits{});
  registry.set_links(&links);
  Launchers launchers(registry);
  const std::string first = HexText(launchers.Admit(1001));
  const std::string second = HexText(launchers.Admit(1002));
  ASSERT_TRUE(launchers.CreateJob(first, Spec("job")).ok());
  ExpectError(launchers.CreateJob(second, Spec("job")), ErrorCode::kAlreadyExists,
              "job job exists already on this daemon (of whichever user): choose another name");
  ExpectError(launchers.DestroyJob(second, "job"), ErrorCode::kNotFound, "uid 1002 has no job job");
  control::StatusReply seen;
  ReportStatus(registry, 1002, &seen);
  EXPECT_EQ(seen.jobs_size(), 0);
  ReportStatus(registry, 1001, &seen);
  EXPECT_EQ(seen.jobs_size(), 1);
  launchers.Dismiss(second);
  EXPECT_EQ(registry.jobs().size(), 1U);
  launchers.Dismiss(first);
  loop.poll();
  EXPECT_TRUE(registry.jobs().empty());
}

// Calls for the counters of all the user's ranks, by a client whose window (RFC 9113, section 5.2)
// has no room for a byte of an answer.
class DeafClient {
 public:
  DeafClient(const std::string& socket, const std::string& token, uint32_t calls)
      : client_(tests::Http2Client::ToSocket(socket)) {
    const std::string no_window("\0\4\0\0\0\0", 6);
    std::string words = std::string(http2::kClientPreface) +
                        http2::Frame(http2::FrameType::kSettings, 0, 0, no_window) +
                        http2::Frame(http2::FrameType::kSettings, http2::kAck, 0, {});
    std::string fields = tests::CallFields("/ferry.control.Launcher/Counters");
    http2::AppendField("ferry-token", token, &fields);
    const std::string message = OfAllRanks().SerializeAsString();
    // As gRPC frames it: not compressed, and a length.
    const std::string request = {'\0', '\0', '\0', '\0', static_cast<char>(message.size())};
    for (uint32_t call = 0; call < calls; ++call) {
      words +=
          tests::BeginCall(call, fields) +
          http2::Frame(http2::FrameType::kData, http2::kEndStream, 2 * call + 1, request + message);
    }
    EXPECT_TRUE(client_.Send(words));
  }
  static control::CountersRequest OfAllRanks() {
    control::CountersRequest request;
    request.set_rank(-1);
    return request;
  }

 private:
  tests::Http2Client client_;
};

// Of so many ranks that a part of the calls which the user may have open has too much.
TEST_F(LauncherTest, AnswersThatNobodyReadsAreBounded) {
  constexpr uint32_t kRanks = 64;
  config::Options options = TestOptions(directory_.path() + "/b");
  options.max_local_ranks = kRanks;
  options.quota_sessions = kRanks;
  TestDaemon daemon(options);
  const TestLauncher launcher(daemon.attach_path());
  ASSERT_TRUE(daemon.CreateJob("job", kRanks).ok());
  std::vector<TestRank> ranks;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(daemon.AttachRank(rank, kRanks));
  }
  const auto ask = [&] {
    control::CountersReply reply;
    const Status status =
        daemon.Ask(&LauncherStub::Counters, DeafClient::OfAllRanks(), &reply, launcher.token());
    return std::pair(status, reply.ByteSizeLong());
  };
  const auto [status, answer_bytes] = ask();
  ASSERT_TRUE(status.ok()) << status.message();
  const uint64_t enough = UnreadAnswers::kMostBytes / answer_bytes + 1;
  ASSERT_LT(enough, static_cast<uint64_t>(kCallsOfConnection));
  {
    const DeafClient deaf(options.run_directory + "/control.sock", launcher.token(),
                          kCallsOfConnection);
    Status refusal;
    EXPECT_TRUE(e2e::Eventually([&] { return !(refusal = ask().first).ok(); }));
    ExpectError(refusal, ErrorCode::kLimitExceeded, "bytes that nobody has read");
  }
  EXPECT_TRUE(e2e::Eventually([&] { return ask().first.ok(); })) << "they are given back";
}

TEST(UnreadAnswersTest, EachUserHasHisOwn) {
  UnreadAnswers unread;
  const grpc::ServerContext calls[4];
  EXPECT_TRUE(unread.Keep(calls[0], 1, 2 * UnreadAnswers::kMostBytes).ok()) << "the only one";
  ExpectError(unread.Keep(calls[1], 1, 1), ErrorCode::kLimitExceeded, "uid 1 has answers of");
  EXPECT_TRUE(unread.Keep(calls[2], 2, UnreadAnswers::kMostBytes).ok());
  ExpectError(unread.Keep(calls[3], 2, 1), ErrorCode::kLimitExceeded, "uid 2 has answers of");
}

}  // namespace
}  // namespace ferry::daemon
