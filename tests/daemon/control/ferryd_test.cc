// The program: flags, signals, what it leaves behind.

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "common/clock.h"
#include "common/net_address.h"
#include "common/topology/affinity.h"
#include "common/unique_fd.h"
#include "common/version.h"
#include "daemon/links/link_wishes.h"
#include "shm/lane.h"
#include "shm/wake.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_daemon.h"
#include "tests/support/processes.h"

namespace ferry::daemon {
namespace {

// Serves, or the test fails.
struct RunningFerryd : FerrydProcess {
  explicit RunningFerryd(const std::string& directory, const std::vector<std::string>& flags = {},
                         const char* program = kForTest)
      : FerrydProcess(directory, flags, program) {
    EXPECT_TRUE(WaitUntilReady()) << Errors();
  }
  void ExpectEndsBySigterm() {
    Signal(SIGTERM);
    EXPECT_EQ(Wait(), 0) << Errors();
  }
};

class FerrydTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }
  // Runs ferryd to its end, which comes before it serves, and expects that it says `words`.
  void ExpectEnd(const std::vector<std::string>& flags, int code, const std::string& words,
                 const char* program = FerrydProcess::kForTest) {
    FerrydProcess daemon(Path("run"), flags, program);
    EXPECT_FALSE(daemon.WaitUntilReady());
    EXPECT_EQ(daemon.Wait(), code);
    EXPECT_NE(daemon.Errors().find(words), std::string::npos) << daemon.Errors();
  }

  TemporaryDirectory directory_;
};

TEST_F(FerrydTest, TellsItsVersions) {
  ExpectEnd({"--version"}, 0, std::string("ferryd ") + kFerryVersion);
}

TEST_F(FerrydTest, HelpListsTheOptions) {
  ExpectEnd({"--help"}, 0, "--ready-fd N");
  ExpectEnd({"--help"}, 0, "drain_timeout_ms");
}

TEST_F(FerrydTest, MistakesInFlagsEndWithCodeTwo) {
  ExpectEnd({"--no_such_option=1"}, 2, "no_such_option");
  ExpectEnd({"--control_port=x"}, 2, "control_port");
  ExpectEnd({"--ready-fd", "x"}, 2, "--ready-fd needs the number of an open descriptor");
  ExpectEnd({"--config"}, 2, "--config needs a file");
}

TEST_F(FerrydTest, ReadsItsConfigurationFile) {
  std::ofstream(Path("ferryd.toml")) << "control_address = \"192.0.2.7\"\n";
  ExpectEnd({"--config", Path("ferryd.toml")}, 1, "192.0.2.7 only with TLS");
}

TEST_F(FerrydTest, SigtermStopsItAndLeavesNothing) {
  RunningFerryd daemon(Path("run"));
  daemon.Signal(SIGHUP);  // does not end it
  daemon.ExpectEndsBySigterm();
  EXPECT_FALSE(std::filesystem::exists(Path("run")));
}

// As from a launcher with many threads that is killed: see PR_SET_PDEATHSIG.
TEST_F(FerrydTest, SignalsThatComeWhileItEndsChangeNothing) {
  for (int round = 0; round < 5; ++round) {
    RunningFerryd daemon(Path("run"));
    const UniqueFd end(static_cast<int>(syscall(SYS_pidfd_open, daemon.pid(), 0)));
    pollfd ended{end.get(), POLLIN, 0};
    // As fast as ferryd can still take them: signals without a pause would leave it no time to end.
    constexpr timespec kPause{0, 50'000};
    do {
      daemon.Signal(SIGTERM);
    } while (ppoll(&ended, 1, &kPause, nullptr) == 0);
    EXPECT_EQ(daemon.Wait(), 0) << daemon.Errors();
    EXPECT_FALSE(std::filesystem::exists(Path("run")));
  }
}

TEST_F(FerrydTest, ASecondSignalEndsTheDrainAtOnce) {
  RunningFerryd daemon(Path("run"), {"--drain_timeout_ms=3600000"});
  DaemonClient client(Path("run"), daemon.ControlAddress());
  TestRank rank = client.StartRank();

  daemon.Signal(SIGINT);
  grpc::ClientContext watch;
  auto reader = client.stub<AdminStub>().Watch(&watch, control::WatchRequest());
  control::StatusReply status;
  while (status.state() != "draining") {
    ASSERT_TRUE(reader->Read(&status));
  }
  daemon.ExpectEndsBySigterm();
  EXPECT_EQ(rank.Read().code(), ErrorCode::kDaemonDied);
  watch.TryCancel();
  (void)reader->Finish();
}

TEST_F(FerrydTest, StartsOverTheRemainsOfAKilledOne) {
  {
    RunningFerryd killed(Path("run"));
    killed.Signal(SIGKILL);
    EXPECT_EQ(killed.Wait(), 128 + SIGKILL);
  }
  EXPECT_TRUE(std::filesystem::exists(Path("run/attach.sock")));
  const RunningFerryd next(Path("run"));
}

TEST_F(FerrydTest, ASecondOneIsRefusedWithThePidOfTheFirst) {
  RunningFerryd first(Path("run"));
  ExpectEnd({}, 1, "in use by ferryd with pid " + std::to_string(first.pid()));
}

// The CPUs of a daemon's progress thread, as the kernel writes them.
std::string ProgressCpus(pid_t daemon) {
  const std::filesystem::path tasks = "/proc/" + std::to_string(daemon) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    std::ifstream status(task.path() / "status");
    for (std::string line; name == "ferry-progress" && std::getline(status, line);) {
      constexpr char kField[] = "Cpus_allowed_list:\t";
      if (line.starts_with(kField)) {
        return line.substr(sizeof(kField) - 1);
      }
    }
  }
  return "no such thread";
}

TEST_F(FerrydTest, PinsItsProgressThreadIfTold) {
  const StatusOr<topology::CpuSet> ours = topology::AffinityOf(0);
  ASSERT_TRUE(ours.ok());
  uint32_t cpu = 0;
  while (!ours->Contains(cpu)) {
    ++cpu;
  }
  FerrydProcess daemon(Path("run"),
                       {"--progress_affinity=" + std::to_string(cpu), "--staging_node=0"},
                       FerrydProcess::kReal);
  ASSERT_TRUE(daemon.WaitUntilReady()) << daemon.Errors();
  EXPECT_EQ(ProgressCpus(daemon.pid()), std::to_string(cpu));
  RunningFerryd other(Path("other"), {}, FerrydProcess::kReal);
  EXPECT_EQ(ProgressCpus(other.pid()), ours->Text());  // the place of loopback is unknown
}

TEST_F(FerrydTest, MistakesInPlacesEndWithCodeTwo) {
  ExpectEnd({"--progress_affinity=near"}, 2, "progress_affinity must be auto, none or a list");
  ExpectEnd({"--staging_node=first"}, 2, "staging_node must be auto, none or the number");
  ExpectEnd({"--progress_affinity=8191"}, 2,
            "progress_affinity is 8191, but ferryd may use the CPUs", FerrydProcess::kReal);
}

// The output of a line of shell.
std::string Shell(const std::string& line) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(line.c_str(), "r"), pclose);
  std::string text;
  char block[4096];
  for (size_t size = 0; pipe != nullptr && (size = fread(block, 1, sizeof(block), pipe.get())) > 0;
       text.append(block, size)) {
  }
  return text;
}

// ferryd names the limit, instead of ending by a signal.
TEST_F(FerrydTest, TooLittleOfAnythingIsSaid) {
  const auto start = [&](const std::string& limit) {
    return Shell("ulimit -c 0; " + limit + "; " + FerrydProcess::kReal +
                 " --run_directory=" + Path("run") + " 2>&1; echo code $?");
  };
  for (const int descriptors : {20, 24, 30}) {
    const std::string text = start("ulimit -n " + std::to_string(descriptors));
    EXPECT_NE(text.find("Too many open files"), std::string::npos) << descriptors << ": " << text;
    EXPECT_NE(text.find("\ncode 1\n"), std::string::npos) << descriptors << ": " << text;
  }
  const std::string memory = start("ulimit -v 300000");
  EXPECT_NE(memory.find("address space than it may have (`ulimit -v`)"), std::string::npos)
      << memory;
  EXPECT_NE(memory.find("\ncode 1\n"), std::string::npos) << memory;
  const std::string file = start("ulimit -f 100");
  EXPECT_NE(file.find("File too large; `ulimit -f` bounds files and shared memory"),
            std::string::npos)
      << file;
  EXPECT_NE(file.find("\ncode 1\n"), std::string::npos) << file;
}

// Loading libfabric takes as long as the rest of a start, so it is loaded once, and only to serve.
// Were it loaded before its variables are set, psm's handlers of signals would be ours.
TEST_F(FerrydTest, TheRealOneOpensTheNetworkOnceAndOnlyToServe) {
  const std::string libraries =
      Shell(std::string("LD_TRACE_LOADED_OBJECTS=1 ") + FerrydProcess::kReal);
  EXPECT_NE(libraries.find("libc.so"), std::string::npos) << libraries;
  EXPECT_EQ(libraries.find("libfabric"), std::string::npos) << libraries;

  RunningFerryd daemon(Path("run"), {"--provider=net"}, FerrydProcess::kReal);
  const std::string process = "/proc/" + std::to_string(daemon.pid());
  EXPECT_NE(tests::ReadFile(process + "/maps").find("libfabric"), std::string::npos);
  // The environment that it was executed with shows that it did not execute itself again.
  EXPECT_EQ(tests::ReadFile(process + "/environ").find("FI_SOCKETS_PE_WAITTIME"),
            std::string::npos);
  const uint64_t caught = std::stoull(tests::StatusOf(daemon.pid(), "SigCgt"), nullptr, 16);
  EXPECT_EQ(caught & (uint64_t{1} << (SIGABRT - 1)), 0);
}

// hwloc's plugins bring them along, where those are installed, and take them away again. This
// daemon ends by itself, once it knows the machine.
TEST_F(FerrydTest, TheRealOneLoadsNothingToDrawWithNorToReadXml) {
  const std::string files =
      Shell(std::string("LD_DEBUG=files ") + FerrydProcess::kReal +
            " --run_directory=" + Path("run") + " --control_address=192.0.2.7 2>&1");
  ASSERT_NE(files.find("192.0.2.7 only with TLS"), std::string::npos) << files;
  ASSERT_NE(files.find("file=libhwloc.so"), std::string::npos) << files;
  for (const char* library : {"libX11", "libOpenCL", "libxml2"}) {
    EXPECT_EQ(files.find(std::string("file=") + library), std::string::npos) << library;
  }
}

// The list of the kernel's symbols is longer than all else that a start reads.
TEST_F(FerrydTest, TheRealOneReadsNoKernelSymbolsWithoutAnRdmaCard) {
  if (std::filesystem::exists("/sys/class/infiniband")) {
    GTEST_SKIP() << "this machine has an RDMA card";
  }
  const size_t symbols_bytes = tests::ReadFile("/proc/kallsyms").size();
  RunningFerryd daemon(Path("run"), {}, FerrydProcess::kReal);
  const std::string io = tests::ReadFile("/proc/" + std::to_string(daemon.pid()) + "/io");
  ASSERT_TRUE(io.starts_with("rchar: ")) << io;
  EXPECT_LT(std::stoull(io.substr(io.find(' '))), symbols_bytes);
}

// The real one: transport, data plane and GPU backend as main.cc wires them.
TEST_F(FerrydTest, TheRealOneServesAndStops) {
  RunningFerryd daemon(Path("run"), {}, FerrydProcess::kReal);

  DaemonClient client(Path("run"), daemon.ControlAddress());
  control::NicsReply nics;
  ASSERT_TRUE(client.Ask(&AdminStub::Nics, {}, &nics).ok());
  ASSERT_EQ(nics.nics_size(), 1);
  EXPECT_FALSE(nics.nics(0).provider().empty());
  EXPECT_EQ(nics.nics(0).numa_node(), -1);  // of the loopback interface
  EXPECT_EQ(nics.nics(0).progress_cpus(), "");
  control::GpusReply gpus;
  ASSERT_TRUE(client.Ask(&AdminStub::Gpus, {}, &gpus).ok());
  EXPECT_EQ(gpus.gpus_size(), 1);
  ASSERT_GT(gpus.backends_size(), 0);
  const control::GpuBackendStatus& last = gpus.backends(gpus.backends_size() - 1);
  EXPECT_EQ(last.name(), "host");
  EXPECT_EQ(last.note(), "");

  daemon.ExpectEndsBySigterm();
  EXPECT_FALSE(std::filesystem::exists(Path("run")));
}

TEST_F(FerrydTest, WhereSeveralNicsShareMessagesLinksAreForThoseWhoInsist) {
  for (const bool insists : {false, true}) {
    RunningFerryd daemon(Path("run"),
                         {"--fabric_rails=127.0.0.2",
                          std::string("--direct_links=") + (insists ? "always" : "auto")},
                         FerrydProcess::kReal);
    DaemonClient client(Path("run"), daemon.ControlAddress());
    control::LinksReply reply;
    ASSERT_TRUE(client.Ask(&AdminStub::Links, {}, &reply).ok());
    EXPECT_EQ(reply.refusal().find("(fabric_rails)") != std::string::npos, !insists)
        << reply.refusal();
    daemon.ExpectEndsBySigterm();
  }
}

// One that wishes as fast as it can write costs the control thread no more than another one.
TEST_F(FerrydTest, AHostileRankIsRefusedLinksNowAndThen) {
  RunningFerryd daemon(Path("run"), {"--direct_links=off"}, FerrydProcess::kReal);
  DaemonClient client(Path("run"), daemon.ControlAddress());
  ASSERT_TRUE(client.CreateJobWith("job", 0, "127.0.0.1:1").ok());
  TestRank rank("job", 0, 2, 1);
  ASSERT_TRUE(rank.Connect(client.attach_path()).ok());
  ASSERT_EQ(rank.Attach().code(), ErrorCode::kOk);
  shm::SegmentHeader session = rank.SegmentHeader(shm::SegmentKind::kSession);
  shm::SegmentHeader inbox = rank.SegmentHeader(shm::SegmentKind::kInbox);
  session.unexpected_limit = inbox.unexpected_limit = kTestMatches;
  Answer entered = rank.SendSegments(session, inbox);
  ASSERT_FALSE(entered.packet.fds.empty()) << entered.text();
  const int doorbell = entered.packet.fds.front().get();

  shm::Descriptor wish{};
  wish.kind = static_cast<uint8_t>(shm::DescriptorKind::kLinkWanted);
  wish.destination = 1;
  shm::LaneProducer lane(&rank.session()->to_daemon);
  lane.Open(0);
  constexpr uint64_t kEnoughNs = 300'000'000;
  const uint64_t begun_ns = MonotonicNs();
  uint64_t wishes = 0;
  uint64_t refusals = 0;
  const auto count_refusals = [&](int wait_ms) {
    for (pollfd answer{rank.socket(), POLLIN, 0}; poll(&answer, 1, wait_ms) == 1; ++refusals) {
      const Answer read = rank.Read();
      const auto* order = read.packet.As<attach::LinkOrder>();
      ASSERT_NE(order, nullptr) << read.text();
      ASSERT_EQ(order->op, static_cast<uint32_t>(attach::LinkOp::kRefuse));
    }
  };
  while (MonotonicNs() - begun_ns < kEnoughNs) {
    wishes += lane.TryPush(wish) ? 1 : 0;
    if (shm::Wake(&rank.session()->daemon_wake).AnnounceLane(shm::DaemonLane(1))) {
      ASSERT_EQ(eventfd_write(doorbell, 1), 0);
    }
    ASSERT_NO_FATAL_FAILURE(count_refusals(0));
  }
  ASSERT_NO_FATAL_FAILURE(count_refusals(100));
  const uint64_t batches =
      (MonotonicNs() - begun_ns) * LinkWishes::kBatchesPerSecond / 1'000'000'000;
  EXPECT_GE(refusals, 1U);
  EXPECT_LE(refusals, batches + 1);
  EXPECT_GT(wishes, 10 * refusals);
}

TEST_F(FerrydTest, TheRealOneRefusesAPortOfTheDataPlaneThatIsInUse) {
  const auto other = ListenTcp({"127.0.0.1", 0}, "port");
  ASSERT_TRUE(other.ok());
  const std::string port = std::to_string(PortOf(other->get()));
  ExpectEnd({"--fabric_port=" + port}, 1, "port " + port + " of 127.0.0.1 is in use",
            FerrydProcess::kReal);
}

TEST_F(FerrydTest, TheRealOneRefusesAProviderThatIsNotThere) {
  ExpectEnd({"--provider=nosuch"}, 1,
            "'nosuch' is not available; available here: ", FerrydProcess::kReal);
  EXPECT_FALSE(std::filesystem::exists(Path("run")));
}

}  // namespace
}  // namespace ferry::daemon
