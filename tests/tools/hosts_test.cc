// The hosts of a job: their names and addresses, how a launcher reaches them, and what ferryrun and
// its agents there say to each other.
#include "tools/ferryrun/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "config/environment.h"
#include "tests/support/patience.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/launchers.h"
#include "tools/ferryrun/remote_host.h"

namespace ferry::tools {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// ---- Messages of agents

std::string TwoFrames() {
  std::string stream;
  AppendFrame(FrameKind::kOutput, 7, "\1hello", &stream);
  AppendFrame(FrameKind::kCreated, 0, "", &stream);
  return stream;
}

TEST(FrameReaderTest, TakesFramesOutOfPiecesOfAnySize) {
  const std::string stream = TwoFrames();
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    FrameReader reader(/*greeting=*/false);
    std::vector<Frame> frames;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.Feed(std::string_view(stream).substr(at, piece));
      for (auto frame = reader.Next(); frame.ok() && frame->has_value(); frame = reader.Next()) {
        frames.push_back(**frame);
      }
    }
    ASSERT_EQ(frames.size(), 2U) << piece;
    EXPECT_EQ(frames[0].kind, FrameKind::kOutput);
    EXPECT_EQ(frames[0].rank, 7U);
    EXPECT_EQ(frames[0].payload, "\1hello");
    EXPECT_EQ(frames[1].kind, FrameKind::kCreated);
  }
}

TEST(FrameReaderTest, SkipsWhatALoginPrints) {
  FrameReader reader(/*greeting=*/true);
  reader.Feed("Welcome!\nYou have mail.\n" + Greeting() + TwoFrames());
  const auto frame = reader.Next();
  ASSERT_TRUE(frame.ok() && frame->has_value());
  EXPECT_EQ((*frame)->rank, 7U);
  EXPECT_EQ(reader.preamble(), "Welcome!\nYou have mail.\n");
}

TEST(FrameReaderTest, RefusesAnotherReleaseAndSizesBeyondReason) {
  FrameReader other(/*greeting=*/true);
  other.Feed("FERRYRUN-AGENT 0.0.1 1.1\n");
  EXPECT_EQ(other.Next().status().code(), ErrorCode::kVersionMismatch);
  EXPECT_THAT(other.Next().ok(), true);  // it is read no further
  FrameReader damaged(/*greeting=*/false);
  damaged.Feed(std::string(12, '\xff'));
  EXPECT_EQ(damaged.Next().status().code(), ErrorCode::kCorrupt);
}

TEST(AgentPayloadTest, NumbersEndsAndErrors) {
  EXPECT_EQ(ReadNumber({FrameKind::kSignal, 0, NumberPayload(-5)}), -5);
  EXPECT_EQ(ReadNumber({FrameKind::kSignal, 0, "x"}), 'x');
  const ProcessEnd end = ReadEnd(
      {FrameKind::kEnded, 0, EndPayload({.exit_code = 3, .signal = 11, .dumped_core = true})});
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.signal, 11);
  EXPECT_TRUE(end.dumped_core);
  const Status failed =
      ReadFailed({FrameKind::kFailed, 0, FailedPayload({ErrorCode::kNotFound, "no such thing"})});
  EXPECT_EQ(failed.code(), ErrorCode::kNotFound);
  EXPECT_EQ(failed.message(), "no such thing");
  EXPECT_EQ(ReadFailed({FrameKind::kFailed, 0, ""}).code(), ErrorCode::kInternal);
}

TEST(AgentMessagesTest, SurviveTheJourney) {
  const auto rank =
      ReadRank(ToText(AgentRank{.part = 2, .variables = {"A=\n", "B="}, .is_held = true}));
  ASSERT_TRUE(rank.ok()) << rank.status().message();
  EXPECT_EQ(rank->part, 2U);
  EXPECT_THAT(rank->variables, ElementsAre("A=\n", "B="));
  EXPECT_TRUE(rank->is_held);

  AgentSetUp set_up;
  set_up.host = "b";
  set_up.options = {"FERRY_SPIN_PAUSES=7"};
  set_up.needs_address = true;
  set_up.grace_ms = 77;
  set_up.deadlock_check_s = 78;
  const auto read = ReadSetUp(ToText(set_up));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->host, "b");
  EXPECT_THAT(read->options, ElementsAre("FERRY_SPIN_PAUSES=7"));
  EXPECT_TRUE(read->needs_address);
  EXPECT_FALSE(read->private_daemon);
  EXPECT_EQ(read->grace_ms, 77U);
  EXPECT_EQ(read->deadlock_check_s, 78U);

  const Mapping mapping{.count = 4,
                        .oversubscribes = false,
                        .unit = Unit::kNuma,
                        .per_unit = 2,
                        .width = 3,
                        .threads_are_cpus = true,
                        .order = Mapping::Order::kUnit,
                        .order_unit = Unit::kSocket};
  const BindingRules rules{.binding = Binding::kSocket, .mapping = mapping, .threads = {0, 8, 1}};
  const auto serve = ReadServe(ToText(AgentServe{.private_daemon = true,
                                                 .node = 3,
                                                 .authority = "pem",
                                                 .authority_key = "key",
                                                 .binding = rules,
                                                 .tells_bindings = true,
                                                 .name_space = "ferry-1"}));
  ASSERT_TRUE(serve.ok()) << serve.status().message();
  EXPECT_EQ(serve->name_space, "ferry-1");
  EXPECT_EQ(serve->node, 3U);
  EXPECT_EQ(serve->authority_key, "key");
  EXPECT_TRUE(serve->tells_bindings);
  EXPECT_EQ(serve->binding.binding, rules.binding);
  EXPECT_EQ(serve->binding.mapping, rules.mapping);
  EXPECT_EQ(serve->binding.threads, rules.threads);
  EXPECT_EQ(ReadServe(ToText(AgentServe{}))->binding.mapping, Mapping());
}

TEST(AgentMessagesTest, AnExchangeComesBackAsItWas) {
  const std::string bytes("a\0\xff", 3);
  const auto read = ReadExchange(ToText(ExchangeMessage{.kind = ExchangeMessage::Kind::kAnswer,
                                                        .fence = "7",
                                                        .ranks = {1, 70000},
                                                        .rank = 3,
                                                        .machine = 2,
                                                        .data = bytes,
                                                        .why = "none"}));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->kind, ExchangeMessage::Kind::kAnswer);
  EXPECT_EQ(read->fence, "7");
  EXPECT_THAT(read->ranks, ElementsAre(1, 70000));
  EXPECT_EQ(read->rank, 3U);
  EXPECT_EQ(read->machine, 2U);
  EXPECT_EQ(read->data, bytes);
  EXPECT_EQ(read->why, "none");
}

TEST(AgentMessagesTest, DamagedOnesAreRefused) {
  const std::string good = ToText(AgentServing{"/run", "a:1"});
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(ReadServing(good.substr(0, size)).status().code(), ErrorCode::kCorrupt) << size;
  }
  EXPECT_EQ(ReadServe(good).status().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(ReadRank("").status().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(ReadExchange(good).status().code(), ErrorCode::kCorrupt);
}

// ---- An agent

// A shell in an agent's place.
std::unique_ptr<RemoteHost> StartShell(const std::string& script) {
  StatusOr<std::unique_ptr<RemoteHost>> host = RemoteHost::Start("there", {"sh", "-c", script});
  EXPECT_TRUE(host.ok()) << host.status().ToString();
  return host.ok() ? std::move(*host) : nullptr;
}

// An agent that says back whatever it is told.
std::string EchoScript() { return "printf '%s' '" + Greeting() + "'; exec cat"; }

bool HasWords(const RemoteHost& host, int timeout_ms) {
  pollfd words = host.WordsInterest();
  return poll(&words, 1, timeout_ms) == 1 && (words.revents & POLLIN) != 0;
}

// Takes frames until one has come.
Frame NextFrame(RemoteHost* host) {
  while (true) {
    const StatusOr<std::optional<Frame>> frame = host->Next();
    EXPECT_TRUE(frame.ok()) << frame.status().ToString();
    if (!frame.ok() || frame->has_value()) {
      return frame.ok() ? **frame : Frame{};
    }
    if (!HasWords(*host, tests::kPatienceMs)) {
      ADD_FAILURE() << "nothing came";
      return {};
    }
    host->Advance();
  }
}

TEST(RemoteHostTest, SendingTakesNothingFromThoseWhoPollForWords) {
  const std::unique_ptr<RemoteHost> host = StartShell(EchoScript());
  ASSERT_NE(host, nullptr);
  host->Send(FrameKind::kEnded, 3, EndPayload({.exit_code = 7}));
  while (NextFrame(host.get()).kind != FrameKind::kEnded) {
  }
  host->Send(FrameKind::kEnded, 4, EndPayload({.exit_code = 8}));
  ASSERT_TRUE(HasWords(*host, tests::kPatienceMs));
  // The launcher has words for the host meanwhile.
  host->Send(FrameKind::kSignal, 0, NumberPayload(15));
  EXPECT_TRUE(HasWords(*host, 0));
  const Frame ended = NextFrame(host.get());
  EXPECT_EQ(ended.kind, FrameKind::kEnded);
  EXPECT_EQ(ended.rank, 4U);
  EXPECT_EQ(ReadEnd(ended).exit_code, 8);
  EXPECT_EQ(NextFrame(host.get()).kind, FrameKind::kSignal);
}

TEST(RemoteHostTest, WhatComesBehindAnAwaitedAnswerIsKept) {
  StatusOr<SignalSource> signals = SignalSource::Create();
  ASSERT_TRUE(signals.ok()) << signals.status().ToString();
  const std::unique_ptr<RemoteHost> host = StartShell(EchoScript());
  ASSERT_NE(host, nullptr);
  host->Send(FrameKind::kCreated, 0, "");
  host->Send(FrameKind::kDaemonEnded, 0, "its words");
  const StatusOr<Frame> created = host->Await(FrameKind::kCreated, tests::kPatienceMs, &*signals);
  ASSERT_TRUE(created.ok()) << created.status().ToString();
  const Frame next = NextFrame(host.get());
  EXPECT_EQ(next.kind, FrameKind::kDaemonEnded);
  EXPECT_EQ(next.payload, "its words");
}

TEST(RemoteHostTest, ALauncherThatEndsIsQuoted) {
  StatusOr<SignalSource> signals = SignalSource::Create();
  ASSERT_TRUE(signals.ok()) << signals.status().ToString();
  const std::unique_ptr<RemoteHost> host = StartShell("echo 'no route to host' >&2; exit 255");
  ASSERT_NE(host, nullptr);
  const StatusOr<Frame> found = host->Await(FrameKind::kFound, tests::kPatienceMs, &*signals);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), ErrorCode::kNodeUnreachable);
  EXPECT_THAT(found.status().message(), HasSubstr("exited with code 255"));
  EXPECT_THAT(found.status().message(), HasSubstr("no route to host"));
}

// ---- Addresses

AddressQuestion Question() {
  return {.network = "",
          .named = {},
          .default_interface = "",
          .addresses = {{"lo", "127.0.0.1", true},
                        {"lo", "::1", true},
                        {"eth0", "10.0.0.7", false},
                        {"ib0", "10.1.255.7", false},
                        {"ib0", "fd00:1::7", false}}};
}

TEST(HostAddressTest, ANetworkDecides) {
  AddressQuestion question = Question();
  question.named = {"10.0.0.7"};
  for (const auto& [network, address] : {std::pair{"ib0", "10.1.255.7"},
                                         {"10.1.0.0/16", "10.1.255.7"},
                                         {"fd00:1::/64", "fd00:1::7"},
                                         {"10.0.0.7", "10.0.0.7"},
                                         {"0.0.0.0/0", "127.0.0.1"}}) {
    question.network = network;
    const auto chosen = ChooseAddress(question);
    ASSERT_TRUE(chosen.ok()) << network << ": " << chosen.status().message();
    EXPECT_EQ(*chosen, address) << network;
  }
}

TEST(HostAddressTest, ANetworkThatIsNotThereIsRefused) {
  AddressQuestion question = Question();
  question.network = "10.2.0.0/16";
  EXPECT_THAT(ChooseAddress(question).status().message(),
              HasSubstr("no address in --network 10.2.0.0/16; there is: 10.0.0.7 (eth0), "));
  question.network = "eth7";
  EXPECT_EQ(ChooseAddress(question).status().code(), ErrorCode::kNotFound);
  for (const char* wrong : {"10.2.0.0/33", "10.2.0/16", "10.0.0.0/", "eth0/24"}) {
    question.network = wrong;
    EXPECT_THAT(ChooseAddress(question).status().message(),
                HasSubstr("is neither an interface nor a network"))
        << wrong;
  }
}

TEST(HostAddressTest, ThenTheNameThenTheDefaultRoute) {
  AddressQuestion question = Question();
  question.default_interface = "eth0";
  question.named = {"127.0.0.1", "10.1.255.7"};  // a name may stand for loopback, as Debian does it
  EXPECT_EQ(*ChooseAddress(question), "10.1.255.7");
  question.named = {"127.0.0.1"};
  EXPECT_EQ(*ChooseAddress(question), "10.0.0.7");
}

TEST(HostAddressTest, ElseThereMustBeOneOnly) {
  AddressQuestion question = Question();
  EXPECT_THAT(ChooseAddress(question).status().message(),
              HasSubstr("several addresses, 10.0.0.7 (eth0), 10.1.255.7 (ib0), fd00:1::7 (ib0): "
                        "name the network with --network"));
  question.addresses.resize(3);
  EXPECT_EQ(*ChooseAddress(question), "10.0.0.7");
  question.addresses.resize(2);
  EXPECT_EQ(ChooseAddress(question).status().code(), ErrorCode::kNotFound);
}

TEST(HostAddressTest, KnowsThisHost) {
  EXPECT_TRUE(IsThisHost("localhost"));
  EXPECT_TRUE(IsThisHost("127.0.0.1"));
  EXPECT_TRUE(IsThisHost(config::HostName()));
  EXPECT_FALSE(IsThisHost("192.0.2.1"));  // kept for documents
  const auto own = OwnAddresses();
  ASSERT_TRUE(own.ok());
  for (const OwnAddress& address : *own) {
    EXPECT_TRUE(IsThisHost(address.text)) << address.text;
  }
}

// ---- Lists

TEST(HostListTest, ReadsNamesAddressesAndSlots) {
  const auto hosts = ParseHostList("a,b:4,10.0.0.1,fd00::7,[fd00::8]:2,[fd00::9],me@c");
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_THAT(*hosts,
              ElementsAre(Host{"a", 1}, Host{"b", 4}, Host{"10.0.0.1", 1}, Host{"fd00::7", 1},
                          Host{"fd00::8", 2}, Host{"fd00::9", 1}, Host{"me@c", 1}));
}

TEST(HostListTest, AHostNamedAgainGetsMoreSlots) {
  EXPECT_THAT(*ParseHostList("a,b,a:3"), ElementsAre(Host{"a", 4}, Host{"b", 1}));
}

TEST(HostListTest, SaysWhichEntryIsWrong) {
  EXPECT_THAT(ParseHostList("a,,b").status().message(), HasSubstr("'' names no host"));
  EXPECT_THAT(ParseHostList("").status().message(), HasSubstr("'' names no host"));
  EXPECT_THAT(ParseHostList("a:0").status().message(), HasSubstr("'0' is no number of slots"));
  EXPECT_THAT(ParseHostList("a:x").status().message(), HasSubstr("'a:x': 'x' is no number"));
  EXPECT_THAT(ParseHostList("[fd00::8").status().message(), HasSubstr("[ADDRESS]:SLOTS"));
  // Names that a launcher would take for a flag, or a shell for a command.
  EXPECT_THAT(ParseHostList("-oProxyCommand").status().message(), HasSubstr("names no host"));
  EXPECT_THAT(ParseHostList("a;reboot").status().message(), HasSubstr("names no host"));
}

TEST(HostFileTest, TakesBothWaysOfWriting) {
  const auto hosts =
      ParseHostFile("# nodes\n\na slots=2 max_slots=4\n  b:3  # big\n\tc\r\na slots=1\n", "hosts");
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_THAT(*hosts, ElementsAre(Host{"a", 3}, Host{"b", 3}, Host{"c", 1}));
}

TEST(HostFileTest, SaysWhereItIsWrong) {
  EXPECT_THAT(ParseHostFile("a\nb cores=2\n", "hosts").status().message(),
              HasSubstr("hosts:2: 'cores=2' after a host"));
  EXPECT_THAT(ParseHostFile("a\n\nb slots=many\n", "hosts").status().message(),
              HasSubstr("hosts:3: "));
  EXPECT_THAT(ParseHostFile("# none\n", "hosts").status().message(), "hosts names no host");
  EXPECT_THAT(ReadHostFile("/nonexistent/hosts").status().message(),
              HasSubstr("cannot read the host file /nonexistent/hosts: No such file"));
}

// ---- Launchers

TEST(LauncherCommandTest, BySshWithoutAPassword) {
  EXPECT_THAT(*LauncherCommand({}, "a", "/usr/bin/ferryrun", {"--agent"}),
              ElementsAre("ssh", "-x", "-o", "BatchMode=yes", "a", "/usr/bin/ferryrun", "--agent"));
}

TEST(LauncherCommandTest, WhatAShellWouldReadIsQuoted) {
  EXPECT_THAT(*LauncherCommand({}, "a", "/my own/'ferryrun'", {"", "$x"}),
              testing::IsSupersetOf({std::string("'/my own/'\\''ferryrun'\\'''"), std::string("''"),
                                     std::string("'$x'")}));
}

TEST(LauncherCommandTest, ByACommandOfOnesOwn) {
  config::Options options;
  options.rsh = " ssh  -p 2222 ";
  options.launcher = "srun";  // rsh comes first
  EXPECT_THAT(*LauncherCommand(options, "a", "/f", {}),
              ElementsAre("ssh", "-p", "2222", "a", "/f"));
  options.rsh = "  ";
  EXPECT_THAT(LauncherCommand(options, "a", "/f", {}).status().message(),
              HasSubstr("which is no command"));
}

TEST(LauncherCommandTest, BySrunAsAStepOfTheJob) {
  config::Options options;
  options.launcher = "srun";
  const auto command = LauncherCommand(options, "a", "/my own/ferryrun", {"--agent"});
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->front(), "srun");
  EXPECT_THAT(*command, Contains("--nodelist=a"));
  EXPECT_THAT(*command, Contains("--ntasks=1"));
  EXPECT_THAT(*command, Contains("--unbuffered"));
  // No shell reads it there.
  EXPECT_EQ((*command)[command->size() - 2], "/my own/ferryrun");
}

TEST(LauncherCommandTest, ByQrshAsATaskOfTheJob) {
  config::Options options;
  options.launcher = "qrsh";
  EXPECT_THAT(*LauncherCommand(options, "a", "/my own/ferryrun", {"--agent"}),
              ElementsAre("qrsh", "-inherit", "a", "'/my own/ferryrun'", "--agent"));
}

TEST(LauncherCommandTest, ByBlaunchWithoutAShell) {
  config::Options options;
  options.launcher = "blaunch";
  EXPECT_THAT(*LauncherCommand(options, "a", "/my own/ferryrun", {"--agent"}),
              ElementsAre("blaunch", "a", "-no-shell", "/my own/ferryrun", "--agent"));
}

TEST(LauncherCommandTest, WhatCarriesNoStreamsIsRefused) {
  config::Options options;
  for (const char* launcher : {"pbs_tmrsh", "pbsdsh", "flux"}) {
    options.launcher = launcher;
    EXPECT_THAT(LauncherCommand(options, "a", "/f", {}).status().message(),
                HasSubstr("carries no streams of an agent on a"));
    EXPECT_TRUE(AgentsCall(options, 1, 0)) << launcher;
  }
}

TEST(LauncherCommandTest, AgentsCallWhereOneCommandStartsThemAll) {
  config::Options options;
  for (const char* launcher : {"srun", "blaunch"}) {
    options.launcher = launcher;
    EXPECT_TRUE(AgentsCall(options, 2, 64)) << launcher;
    EXPECT_FALSE(AgentsCall(options, 1, 64)) << launcher;
    EXPECT_FALSE(AgentsCall(options, 2, 0)) << launcher;
  }
  for (const char* launcher : {"ssh", "qrsh", "none"}) {
    options.launcher = launcher;
    EXPECT_FALSE(AgentsCall(options, 2, 64)) << launcher;
  }
  options.launcher = "flux";
  EXPECT_FALSE(AgentsCall(options, 0, 64));
  options.rsh = "other";
  EXPECT_FALSE(AgentsCall(options, 2, 64));
}

// ---- Launchers whose agents call

TEST(PlanCallsTest, OneBlaunchForAllHosts) {
  config::Options options;
  options.launcher = "blaunch";
  const char* const environment[] = {nullptr};
  const auto plan = PlanCalls(options, {"a", "b"}, "/my own/f", environment);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->commands, ElementsAre(ElementsAre("blaunch", "-n", "-z", "a b", "-no-shell",
                                                      "/my own/f", "--call")));
  EXPECT_EQ(plan->secret_of_job, "");
  EXPECT_TRUE(plan->may_be_each);
  EXPECT_FALSE(plan->is_step_of_slurm);
}

TEST(PlanCallsTest, ACommandOfPbsForEachHost) {
  config::Options options;
  options.launcher = "pbs_tmrsh";
  const char* const environment[] = {"PBS_JOBCOOKIE=cookie", nullptr};
  const auto plan = PlanCalls(options, {"a", "b"}, "/f", environment);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->commands, ElementsAre(ElementsAre("pbs_tmrsh", "a", "/f", "--call"),
                                          ElementsAre("pbs_tmrsh", "b", "/f", "--call")));
  EXPECT_EQ(plan->secret_of_job, "cookie");
  EXPECT_FALSE(plan->may_be_each);
  options.launcher = "pbsdsh";
  EXPECT_THAT(PlanCalls(options, {"a"}, "/f", environment)->commands,
              ElementsAre(ElementsAre("pbsdsh", "-h", "a", "--", "/f", "--call")));
}

TEST(PlanCallsTest, OutsideOfAJobOfPbsItIsAnError) {
  config::Options options;
  options.launcher = "pbs_tmrsh";
  const char* const environment[] = {nullptr};
  EXPECT_THAT(PlanCalls(options, {"a"}, "/f", environment).status().message(),
              HasSubstr("pbs_tmrsh works in a job of PBS, and here is no PBS_JOBCOOKIE"));
}

TEST(LauncherCommandTest, NoneReachesNobody) {
  config::Options options;
  options.launcher = "none";
  EXPECT_THAT(LauncherCommand(options, "a", "/f", {}).status().message(),
              HasSubstr("a is another host, and launcher is none"));
}

}  // namespace
}  // namespace ferry::tools
