// Agents that call ferryrun: what they and ferryrun write, and ferryrun's end of their connections,
// with a script in the place of srun, which starts real callers, or what else it likes.
#include "tools/ferryrun/called_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/bootstrap/meeting_stream.h"
#include "common/clock.h"
#include "common/unique_fd.h"
#include "tests/support/patience.h"
#include "tools/ferryrun/agent_call.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/call_door.h"
#include "tools/ferryrun/event_set.h"
#include "tools/ferryrun/remote_host.h"

namespace ferry::tools {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// ---- Texts --------------------------------------------------------------------------------------

TEST(CallTextTest, APlaceIsReadAsItWasWritten) {
  const CallPlace place{.port = 4567, .secret = "abc", .addresses = {"10.0.0.7", "fd00::7"}};
  EXPECT_EQ(ToText(place), "1 4567 abc 10.0.0.7 fd00::7");
  const StatusOr<CallPlace> read = ReadCallPlace(ToText(place));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, place);
}

TEST(CallTextTest, OtherPlacesAreRefused) {
  for (const char* text : {"", "1", "1 4567", "1 4567 abc", "1 0 abc 10.0.0.7",
                           "1 65536 abc 10.0.0.7", "1 port abc 10.0.0.7", "2 4567 abc 10.0.0.7"}) {
    EXPECT_EQ(ReadCallPlace(text).status().code(), ErrorCode::kCorrupt) << text;
  }
}

TEST(CallTextTest, AHelloIsReadAsItWasWritten) {
  const CallHello hello{.names = {"n1", "n1.site.org"}, .tasks = 3};
  EXPECT_EQ(ReadCallHello(ToText(hello)), hello);
}

TEST(CallTextTest, OtherHellosAreRefused) {
  const std::string good = ToText(CallHello{.names = {"n1"}, .tasks = 3});
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(ReadCallHello(good.substr(0, size)), std::nullopt) << size;
  }
  EXPECT_EQ(ReadCallHello(good + "x"), std::nullopt);
  EXPECT_EQ(ReadCallHello(ToText(CallHello{.names = {"-n"}, .tasks = 3})), std::nullopt);
  EXPECT_EQ(ReadCallHello(ToText(CallHello{.names = {}, .tasks = 3})), std::nullopt);
}

// ---- The door -----------------------------------------------------------------------------------

class CallDoorTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(door_.Open("lo").ok());
    ASSERT_THAT(door_.place().addresses, ElementsAre("127.0.0.1"));
    door_.Serve(
        &events_, /*most=*/4,
        [this](const CallHello& hello, client::MeetingStream*) { taken_ = hello.names; },
        [] { FAIL() << "there are descriptors"; });
  }

  UniqueFd Connect() const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(door_.place().port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    UniqueFd connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return connection;
  }
  // A connection of one that knows `secret`, until it has been heard: taken, or sent away.
  StatusOr<std::string> Call(const std::string& secret) {
    client::MeetingStream stream(Connect(), client::MeetingStream::Side::kCaller,
                                 client::KeyOfText(secret), *client::DrawNumber());
    stream.Put(ToText(CallHello{.names = {"n1"}, .tasks = 1}));
    StatusOr<std::string> answer = Status(ErrorCode::kWouldBlock, "");
    while (taken_.empty() && answer.status().code() == ErrorCode::kWouldBlock) {
      events_.Dispatch();
      answer = stream.Turn();
    }
    return answer;
  }
  // Nothing, and the end of the connection.
  static bool IsHungUp(const UniqueFd& connection) {
    char byte = 0;
    return recv(connection.get(), &byte, 1, 0) <= 0;
  }

  EventSet events_;
  CallDoor door_;
  std::vector<std::string> taken_;
};

TEST_F(CallDoorTest, SilentConnectionsKeepNobodyOut) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 10; ++i) {
    silent.push_back(Connect());
    events_.Dispatch();
  }
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(IsHungUp(silent[i])) << i;
  }
  Call(door_.place().secret).ok();
  EXPECT_THAT(taken_, ElementsAre("n1"));
  EXPECT_EQ(door_.Remarks(), "");
  door_.DropSilent(MonotonicNs() + 10'000'000'000);
  for (int i = 6; i < 10; ++i) {
    EXPECT_TRUE(IsHungUp(silent[i])) << i;
  }
}

TEST_F(CallDoorTest, NoiseIsDropped) {
  const UniqueFd noisy = Connect();
  ASSERT_EQ(send(noisy.get(), "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
  while (recv(noisy.get(), nullptr, 0, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN) {
    events_.Dispatch();
  }
  EXPECT_TRUE(IsHungUp(noisy));
  EXPECT_EQ(door_.Remarks(), "");
}

TEST_F(CallDoorTest, AnotherSecretIsRefusedAndCounted) {
  EXPECT_EQ(Call("another").status().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(taken_, IsEmpty());
  EXPECT_THAT(door_.Remarks(), HasSubstr("1 caller with another secret, the last from 127.0.0.1"));
}

TEST_F(CallDoorTest, AShutDoorTakesNobody) {
  const UniqueFd silent = Connect();
  events_.Dispatch();
  door_.Shut();
  EXPECT_TRUE(IsHungUp(silent));
  events_.Dispatch();
}

// ---- Connections --------------------------------------------------------------------------------

// Hosts a, b and c. The functions of the script: `call HOST` starts a caller there and waits for
// it; `spoilt` makes the secret another one.
class CalledHostsTest : public testing::Test {
 protected:
  Status Start(const std::string& script) {
    return StartAs({.commands = {{Script(script)}}, .may_be_each = true, .is_step_of_slurm = true});
  }
  // A command for each host, whose name is the script's first word: PBS's way. The words that
  // follow are for the caller, and `call HOST` passes them on.
  Status StartEach(const std::string& script) {
    const std::string path = Script("shift\n" + script);
    CallCommands call{.commands = {}, .secret_of_job = "cookie"};
    for (const char* host : {"a", "b", "c"}) {
      call.commands.push_back({path, host, kCallFlag});
    }
    return StartAs(call);
  }
  static std::string Script(const std::string& script) {
    const std::string path = testing::TempDir() + "command";
    std::ofstream(path) << "#!/bin/sh\n"
                           "host=$1\n"
                           "call() { SLURMD_NODENAME=$1 tools/ferryrun/ferryrun ${words:---call}; "
                           "}\n"
                           "spoilt() { FERRYRUN_CALL=$(echo \"$FERRYRUN_CALL\" | "
                           "sed 's/^\\(1 [0-9]* \\)./\\1x/'); export FERRYRUN_CALL; }\n"
                        << script;
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  Status StartAs(const CallCommands& call) {
    const std::vector<std::string> hosts = {"a", "b", "c"};
    StatusOr<std::vector<std::unique_ptr<HostStream>>> streams =
        StartCallers({.hosts = hosts,
                      .call = call,
                      .network = "lo",
                      .first_limit_ms = first_limit_ms_,
                      .next_limit_ms = next_limit_ms_});
    if (!streams.ok()) {
      return streams.status();
    }
    for (size_t i = 0; i < hosts.size(); ++i) {
      hosts_.push_back(std::make_unique<RemoteHost>(hosts[i], std::move((*streams)[i])));
    }
    return {};
  }

  // Receives until `condition` holds. False: nothing came for long.
  bool ReceiveUntil(const std::function<bool()>& condition) {
    const uint64_t deadline_ns = MonotonicNs() + tests::kPatienceMs * 1'000'000ULL;
    while (!condition() && MonotonicNs() < deadline_ns) {
      std::vector<pollfd> fds;
      for (const auto& host : hosts_) {
        fds.push_back(host->WordsInterest());
        fds.push_back(host->RoomInterest());
      }
      poll(fds.data(), fds.size(), 1000);
      for (const auto& host : hosts_) {
        host->Advance();
      }
    }
    return condition();
  }
  bool Ends(size_t host) {
    return ReceiveUntil([&] { return hosts_[host]->ended(); });
  }
  // An agent answers at the other end.
  bool Answers(size_t host) {
    AgentSetUp set_up;
    set_up.host = hosts_[host]->name();
    set_up.private_daemon = true;
    set_up.grace_ms = 100;
    hosts_[host]->Send(FrameKind::kSetUp, 0, ToText(set_up));
    bool has_answer = false;
    return ReceiveUntil([&] {
             const StatusOr<std::optional<Frame>> frame = hosts_[host]->Next();
             EXPECT_TRUE(frame.ok()) << frame.status().message();
             has_answer |= frame.ok() && frame->has_value() && (*frame)->kind == FrameKind::kFound;
             return has_answer || !frame.ok();
           }) &&
           has_answer;
  }

  uint64_t first_limit_ms_ = 55'000;
  uint64_t next_limit_ms_ = 10'000;
  std::vector<std::unique_ptr<RemoteHost>> hosts_;
};

TEST_F(CalledHostsTest, EachStreamLeadsToItsHostWhateverTheOrder) {
  ASSERT_TRUE(Start("call c & call a & call b & wait\n").ok());
  for (size_t host = 0; host < 3; ++host) {
    EXPECT_TRUE(Answers(host)) << host;
  }
  EXPECT_EQ(hosts_[0]->pid(), hosts_[2]->pid());
}

TEST_F(CalledHostsTest, AnEndedStreamEndsItsAgentAlone) {
  ASSERT_TRUE(Start("call a & call b & call c & wait\n").ok());
  ASSERT_TRUE(Answers(1));
  hosts_[1].reset();
  hosts_.erase(hosts_.begin() + 1);
  EXPECT_TRUE(Answers(0));
  EXPECT_TRUE(Answers(1));
}

TEST_F(CalledHostsTest, ACallerWithAnotherSecretIsSentAway) {
  ASSERT_TRUE(Start("(spoilt; call b) & call a & call c & wait\n").ok());
  EXPECT_TRUE(Answers(0));
  EXPECT_TRUE(Answers(2));
  ASSERT_TRUE(Ends(1));
  EXPECT_THAT(hosts_[1]->LastWords(),
              AllOf(StartsWith("its agent cannot call this ferryrun: 127.0.0.1:"),
                    HasSubstr(": it refuses this process's secret (--network names"),
                    HasSubstr("; 1 caller with another secret, the last from 127.0.0.1, had to be "
                              "sent away")));
  EXPECT_FALSE(hosts_[0]->ended());
}

// Its line, which says so, is lost: it counts as the host's own word.
TEST_F(CalledHostsTest, ACallerWithAnotherSecretTakesNobodysPlace) {
  ASSERT_TRUE(Start("(spoilt; call b > /dev/null)\ncall a & call b & call c & wait\n").ok());
  for (size_t host = 0; host < 3; ++host) {
    EXPECT_TRUE(Answers(host)) << host;
  }
}

TEST_F(CalledHostsTest, ASecondAgentOfAHostIsSentAway) {
  ASSERT_TRUE(Start("call a & call a & call b & call c & wait\n").ok());
  for (size_t host = 0; host < 3; ++host) {
    EXPECT_TRUE(Answers(host)) << host;
  }
}

TEST_F(CalledHostsTest, AnAgentOfAnotherHostIsNamed) {
  next_limit_ms_ = 3000;
  ASSERT_TRUE(Start("call a & call b & call d & wait\n").ok());
  ASSERT_TRUE(Ends(2));
  EXPECT_THAT(hosts_[2]->LastWords(),
              HasSubstr("command has not started its agent within 3 s after the last that came "
                        "(--launch-timeout SECONDS waits for longer); an agent of host d has "
                        "called, which is none of the job's"));
}

TEST_F(CalledHostsTest, AnAgentThatIsNotStartedIsNamedSoonAfterTheOthersCame) {
  next_limit_ms_ = 1000;
  ASSERT_TRUE(Start("call a & call b & exec sleep 1000\n").ok());
  const uint64_t began_ns = MonotonicNs();
  ASSERT_TRUE(Ends(2));
  EXPECT_LT(MonotonicNs() - began_ns, 20'000'000'000U);
  EXPECT_THAT(hosts_[2]->LastWords(),
              HasSubstr("command has not started its agent within 1 s after the last that came"));
  EXPECT_TRUE(Answers(0));
  EXPECT_TRUE(Answers(1));
}

TEST_F(CalledHostsTest, TheFirstAgentIsWaitedForLonger) {
  first_limit_ms_ = 2000;
  next_limit_ms_ = 1;
  ASSERT_TRUE(Start("exec sleep 1000\n").ok());
  const uint64_t began_ns = MonotonicNs();
  for (size_t host = 0; host < 3; ++host) {
    ASSERT_TRUE(Ends(host));
    EXPECT_THAT(hosts_[host]->LastWords(),
                HasSubstr("command has not started its agent within 2 s (--launch-timeout"));
  }
  EXPECT_GE(MonotonicNs() - began_ns, 1'900'000'000U);
}

// As scripts of the batch system let them come. All together take longer than one may.
TEST_F(CalledHostsTest, AgentsThatComeOneAfterTheOtherAreWaitedFor) {
  next_limit_ms_ = 6000;
  ASSERT_TRUE(Start("call a & sleep 4; call b & sleep 4; call c & wait\n").ok());
  for (size_t host = 0; host < 3; ++host) {
    EXPECT_TRUE(Answers(host)) << host;
  }
}

// As in a Flux instance that Slurm has started: its variables are of that step.
TEST_F(CalledHostsTest, VariablesOfAnotherStepCountForNothing) {
  ASSERT_TRUE(StartAs({.commands = {{Script("export SLURM_STEP_NUM_TASKS=1\n"
                                            "call a & call b & call c & wait\n")}}})
                  .ok());
  for (size_t host = 0; host < 3; ++host) {
    EXPECT_TRUE(Answers(host)) << host;
  }
}

TEST_F(CalledHostsTest, FewerAgentsThanHostsAreNoticedAtOnce) {
  ASSERT_TRUE(Start("export SLURM_STEP_NUM_TASKS=2\ncall a & call b & wait\n").ok());
  ASSERT_TRUE(Ends(2));
  EXPECT_THAT(hosts_[2]->LastWords(),
              HasSubstr("command has started agents on 2 of 3 hosts only, and none there"));
  EXPECT_TRUE(Answers(0));
}

TEST_F(CalledHostsTest, ACommandThatRefusesEndsAllStreamsWithItsWords) {
  ASSERT_TRUE(Start("echo 'srun: error: Unable to create step' >&2; exit 3\n").ok());
  for (size_t host = 0; host < 3; ++host) {
    ASSERT_TRUE(Ends(host));
    EXPECT_THAT(hosts_[host]->LastWords(),
                AllOf(HasSubstr("command exited with code 3"),
                      HasSubstr("command wrote:\n  srun: error: Unable to create step")));
  }
  EXPECT_TRUE(hosts_[0]->IsLostWith(*hosts_[2]));
}

TEST_F(CalledHostsTest, AKilledCommandEndsAllStreams) {
  ASSERT_TRUE(Start("call a & call b & call c & wait\n").ok());
  for (size_t host = 0; host < 3; ++host) {
    ASSERT_TRUE(Answers(host));
  }
  ASSERT_EQ(kill(hosts_[0]->pid(), SIGKILL), 0);
  for (size_t host = 0; host < 3; ++host) {
    ASSERT_TRUE(Ends(host));
    EXPECT_THAT(hosts_[host]->LastWords(), HasSubstr("command was killed by SIGKILL"));
  }
  EXPECT_TRUE(hosts_[0]->IsLostWith(*hosts_[1]));
}

TEST_F(CalledHostsTest, AnAgentThatBeginsToCallAndDoesNotComeIsNamed) {
  ASSERT_TRUE(Start("call a & call b & echo '0: FERRYRUN-CALLS c'; exec sleep 1000\n").ok());
  EXPECT_TRUE(Answers(0));
  EXPECT_TRUE(Answers(1));
  const uint64_t began_ns = MonotonicNs();
  ASSERT_TRUE(Ends(2));
  EXPECT_LT(MonotonicNs() - began_ns, 13'000'000'000U);
  EXPECT_THAT(hosts_[2]->LastWords(), HasSubstr("its agent has not reached this ferryrun, at "
                                                "127.0.0.1:"));
}

TEST_F(CalledHostsTest, AnErrorOfTheCommandMakesThePatienceShort) {
  ASSERT_TRUE(Start("call a & call b &\n"
                    "echo 'slurmstepd: error: execve(): No such file or directory' >&2\n"
                    "exec sleep 1000\n")
                  .ok());
  ASSERT_TRUE(Ends(2));
  EXPECT_THAT(hosts_[2]->LastWords(),
              AllOf(HasSubstr("command told of an error, and its agent has not called within 10 s "
                              "after that"),
                    HasSubstr("wrote:\n  slurmstepd: error: execve()")));
  EXPECT_TRUE(Answers(0));
}

// ---- A command for each host --------------------------------------------------------------------

constexpr char kCall[] = "words=$*; PBS_JOBCOOKIE=cookie; export PBS_JOBCOOKIE; call $host\n";

TEST_F(CalledHostsTest, EachCommandStartsOneAgent) {
  ASSERT_TRUE(StartEach(std::string("test -z \"$FERRYRUN_CALL\" || exit 9\n") + kCall).ok());
  for (size_t host = 0; host < 3; ++host) {
    EXPECT_TRUE(Answers(host)) << host;
  }
  EXPECT_NE(hosts_[0]->pid(), hosts_[2]->pid());
}

TEST_F(CalledHostsTest, ACommandThatRefusesEndsItsOwnStream) {
  ASSERT_TRUE(
      StartEach(std::string("test $host != b || { echo 'no node b' >&2; exit 255; }\n") + kCall)
          .ok());
  ASSERT_TRUE(Ends(1));
  EXPECT_THAT(hosts_[1]->LastWords(), AllOf(HasSubstr("command exited with code 255"),
                                            HasSubstr("command wrote:\n  no node b")));
  EXPECT_TRUE(Answers(0));
  EXPECT_TRUE(Answers(2));
}

TEST_F(CalledHostsTest, AKilledCommandEndsItsOwnStream) {
  ASSERT_TRUE(StartEach(kCall).ok());
  for (size_t host = 0; host < 3; ++host) {
    ASSERT_TRUE(Answers(host));
  }
  ASSERT_EQ(kill(hosts_[0]->pid(), SIGKILL), 0);
  ASSERT_TRUE(Ends(0));
  EXPECT_THAT(hosts_[0]->LastWords(), HasSubstr("command was killed by SIGKILL"));
  EXPECT_FALSE(hosts_[0]->IsLostWith(*hosts_[1]));
  EXPECT_TRUE(Answers(1));
}

// All can read the words of a command line.
TEST_F(CalledHostsTest, ACallerWithoutTheSecretOfTheJobIsSentAway) {
  ASSERT_TRUE(StartEach("words=$*\n"
                        "case $host in\n"
                        "  b) export PBS_JOBCOOKIE=cookie ;;\n"
                        "  c) export PBS_JOBCOOKIE=other ;;\n"
                        "esac\n"
                        "call $host\n")
                  .ok());
  ASSERT_TRUE(Ends(0));
  EXPECT_THAT(
      hosts_[0]->LastWords(),
      AllOf(HasSubstr("command exited with code 1"),
            HasSubstr("cannot call the one that has started it: here is no PBS_JOBCOOKIE")));
  ASSERT_TRUE(Ends(2));
  EXPECT_THAT(hosts_[2]->LastWords(), AllOf(HasSubstr("command exited with code 1"),
                                            HasSubstr("it refuses this process's secret")));
  EXPECT_TRUE(Answers(1));
}

TEST_F(CalledHostsTest, ACommandThatIsNotThereIsAnError) {
  const auto streams = StartCallers(
      {.hosts = {"a", "b"}, .call = {.commands = {{"no-such-srun"}}}, .network = "lo"});
  ASSERT_FALSE(streams.ok());
  EXPECT_THAT(streams.status().message(),
              AllOf(HasSubstr("hosts a to b: "), HasSubstr("no-such-srun")));
}

TEST_F(CalledHostsTest, ANetworkThatIsNotThereIsAnError) {
  const auto streams =
      StartCallers({.hosts = {"a", "b"}, .call = {.commands = {{"true"}}}, .network = "nosuch0"});
  ASSERT_FALSE(streams.ok());
  EXPECT_THAT(streams.status().message(), HasSubstr("nosuch0"));
}

}  // namespace
}  // namespace ferry::tools
