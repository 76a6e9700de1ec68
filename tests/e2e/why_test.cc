// `ferryctl why` with real daemons and ranks that are stuck: it must name the request, the peer and
// the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class WhyTest : public testing::Test {
 protected:
  void Start(int ranks, int nodes, const std::string& what) {
    StartProgram(ranks, nodes, {"tests/e2e/ranks/waits", what});
  }
  void StartProgram(int ranks, int nodes, const Words& program) {
    job_ = std::make_unique<Command>(
        PrivateJob({"-n", std::to_string(ranks), "--nodes", std::to_string(nodes),
                    "--peer_timeout_ms=60000", "--operation_timeout_ms=60000"},
                   program));
    ASSERT_TRUE(UnderWay(job_.get(), ranks));
    directories_ = Daemons(*job_);
    ASSERT_THAT(directories_, SizeIs(nodes));
    const json status = Ask(0, {"status"});
    ASSERT_THAT(status["jobs"], SizeIs(1));
    id_ = status["jobs"][0]["job_id"];
  }
  void TearDown() override {
    for (const pid_t pid : stopped_) {
      kill(pid, SIGCONT);
    }
  }

  CommandResult Ferryctl(int node, const Words& arguments) {
    return RunCommand(Joined(
        {"tools/ferryctl/ferryctl", "--run_directory=" + directories_[static_cast<size_t>(node)]},
        arguments));
  }
  json Ask(int node, const Words& arguments) {
    return json::parse(Ferryctl(node, Joined(arguments, {"--json"})).out, nullptr, false);
  }
  // Asks until the first step of the rank's first request contains `step`.
  json Why(int node, int rank, const std::string& step) {
    json why;
    EXPECT_TRUE(Eventually([&] {
      why = Ask(node, {"why", id_ + "." + std::to_string(rank)});
      why = why.is_object() && why.contains("ranks") ? why["ranks"][0] : json();
      return why.is_object() && !why["reasons"].empty() && why["state"] == "waits" &&
             why["reasons"][0]["step"].get<std::string>().find(step) != std::string::npos;
    })) << why.dump(2);
    return why;
  }
  pid_t PidOf(int node, int rank) {
    const json sessions = Ask(node, {"sessions"});
    for (const json& session : sessions["sessions"]) {
      if (session["rank"] == rank) {
        return session["pid"].get<pid_t>();
      }
    }
    return -1;
  }
  void Stop(pid_t pid) {
    ASSERT_GT(pid, 1);
    stopped_.push_back(pid);
    kill(pid, SIGSTOP);
  }

  std::unique_ptr<Command> job_;
  Words directories_;
  std::string id_;
  std::vector<pid_t> stopped_;
};

TEST_F(WhyTest, AReceiveThatNobodySendsFor) {
  Start(2, 1, "unmatched");
  const json why = Why(0, 1, "posted, unmatched; nothing else from rank 0 has come");
  EXPECT_EQ(why["reasons"][0]["operation"], "receive");
  EXPECT_EQ(why["reasons"][0]["peer"], 0);
  EXPECT_EQ(why["reasons"][0]["peer_state"], "computes");
  EXPECT_EQ(why["reasons"][0]["tag"], 7);
  EXPECT_EQ(why["reasons"][0]["size_bytes"], 8);
  EXPECT_THAT(why["chain"], ElementsAre(1, 0));
  EXPECT_THAT(why["verdict"].get<std::string>(),
              HasSubstr("rank 1 waits for rank 0, which is outside Ferry"));
  EXPECT_EQ(why["deadlock"], false);
  // The age counts from the start of the receive, whenever ferryctl asks.
  EXPECT_TRUE(Eventually([&] { return Why(0, 1, "posted")["reasons"][0]["age_ms"] > 100; }));
  EXPECT_THAT(Ferryctl(0, {"why", id_ + ".1"}).out,
              AllOf(HasSubstr("rank 1 waits for rank 0, which is outside Ferry"),
                    HasSubstr("OPERATION"), HasSubstr("posted, unmatched")));
  EXPECT_EQ(Ask(0, {"status"})["users"][0]["requests"], 1) << "not what the tables have room for";
}

TEST_F(WhyTest, TopShowsTheRanksOnce) {
  Start(2, 1, "wrong_tag");
  Why(0, 1, "what has come");
  const json top = Ask(0, {"top", "--once", "--interval-ms", "10"});
  ASSERT_THAT(top["sessions"], SizeIs(2));
  EXPECT_EQ(top["sessions"][0]["name"], id_ + ".0");
  EXPECT_EQ(top["sessions"][1]["unexpected"], 3);
  EXPECT_EQ(top["sessions"][1]["unfinished"], 1);
  const std::string phrase = "ferry_recv from rank 0, tag 7, 8 B";
  EXPECT_EQ(top["sessions"][1]["calls"][0]["phrase"], phrase);
  EXPECT_THAT(top["sessions"][0]["calls"], SizeIs(0)) << "it computes";
  EXPECT_EQ(Ask(0, {"sessions"})["sessions"][1]["calls"][0]["name"], "ferry_recv");
  EXPECT_THAT(Ferryctl(0, {"sessions"}).out, AllOf(HasSubstr("WAITS IN"), HasSubstr(phrase)));
  EXPECT_THAT(Ferryctl(0, {"top", "-n", "2", "--interval-ms", "10"}).out,
              AllOf(HasSubstr("RANK"), HasSubstr("waits.1"), HasSubstr("staging: "),
                    HasSubstr("WAITS IN"), HasSubstr(phrase)));
}

TEST_F(WhyTest, QueuesListReceivesAndMessagesWithoutOne) {
  Start(2, 1, "wrong_tag");
  Why(0, 1, "what has come");
  const json queues = Ask(0, {"queues", id_ + ".1"})["queues"];
  ASSERT_THAT(queues, SizeIs(1)) << queues;
  EXPECT_EQ(queues[0]["of"], "messages of ferry.h");
  EXPECT_THAT(queues[0]["receives"], SizeIs(1));
  EXPECT_THAT(queues[0]["sends"], SizeIs(0));
  EXPECT_EQ(queues[0]["unexpected"][0]["source"], 0);
  EXPECT_EQ(queues[0]["unexpected"][0]["count"], 3);
  EXPECT_THAT(Ferryctl(0, {"queues", id_ + ".1"}).out,
              AllOf(HasSubstr("pending receives:"), HasSubstr("unexpected messages:")));
  EXPECT_THAT(Ferryctl(0, {"queues"}).err, HasSubstr("whose queues?"));
  EXPECT_THAT(Ferryctl(0, {"queues", id_}).err, HasSubstr("is a job: write "));
}

TEST_F(WhyTest, AWrongTagNamesTheMessagesThatCameInstead) {
  Start(2, 1, "wrong_tag");
  const json why = Why(0, 1, "what has come from rank 0 is tag 5 (3 messages)");
  ASSERT_THAT(why["unexpected"], SizeIs(1));
  EXPECT_EQ(why["unexpected"][0]["tag"], 5);
  EXPECT_EQ(why["unexpected"][0]["count"], 3);
  EXPECT_EQ(why["unexpected"][0]["announced"], false);
}

TEST_F(WhyTest, AReceiveFromAnybodyNamesNobody) {
  Start(2, 1, "any");
  const json why = Why(0, 1, "posted, unmatched; nothing else has come");
  EXPECT_EQ(why["reasons"][0]["peer"], -1);
  EXPECT_THAT(why["chain"], ElementsAre(1));
  EXPECT_THAT(why["verdict"].get<std::string>(), HasSubstr("any rank"));
}

TEST_F(WhyTest, ALargeSendToARankThatIsStopped) {
  Start(2, 1, "send");
  const pid_t receiver = PidOf(0, 1);
  Stop(receiver);
  const json why = Why(0, 0, "announced; rank 1 has");
  EXPECT_EQ(why["reasons"][0]["operation"], "send");
  EXPECT_EQ(why["reasons"][0]["size_bytes"], 1 << 20);
  EXPECT_TRUE(
      Eventually([&] { return Why(0, 0, "announced")["reasons"][0]["peer_state"] == "stopped"; }));
  EXPECT_THAT(Why(0, 0, "announced")["verdict"].get<std::string>(),
              HasSubstr("rank 0 waits for rank 1, which is stopped by a signal (state T): `kill "
                        "-CONT " +
                        std::to_string(receiver) + "`"));
}

TEST_F(WhyTest, MismatchedTagsAreADeadlock) {
  Start(2, 1, "crossed");
  const json sender =
      Why(0, 0, "announced; rank 1 has posted no receive that matches; it waits for tag 4 instead");
  EXPECT_TRUE(Eventually([&] { return Why(0, 0, "announced")["deadlock"] == true; }));
  const json receiver = Why(0, 1, "what has come from rank 0 is tag 3 (1 message)");
  EXPECT_EQ(receiver["unexpected"][0]["announced"], true);
  EXPECT_THAT(receiver["chain"], ElementsAre(1, 0, 1));
  EXPECT_THAT(receiver["verdict"].get<std::string>(),
              HasSubstr("deadlock: rank 1 waits for rank 0, which waits for rank 1"));
}

TEST_F(WhyTest, ACircleOfReceivesIsADeadlockOfAll) {
  Start(3, 1, "circle");
  json all;
  EXPECT_TRUE(Eventually([&] {
    all = Ask(0, {"why", id_})["ranks"];
    return all.size() == 3 && std::all_of(all.begin(), all.end(), [](const json& rank) {
             return rank["deadlock"] == true;
           });
  })) << all.dump(2);
  EXPECT_THAT(all[1]["chain"], ElementsAre(1, 2, 0, 1));
  EXPECT_THAT(Ferryctl(0, {"why", id_}).out,
              AllOf(HasSubstr("RANK"), HasSubstr("deadlock: rank 0 waits for rank 1, which waits "
                                                 "for rank 2, which waits for rank 0")));
}

// Their daemons must ask each other, and the messages between them may be under way.
TEST_F(WhyTest, ACircleOverNodesIsToldWithinTwoLooks) {
  Start(4, 2, "circle");
  ASSERT_TRUE(Eventually([&] {
    for (int node = 0; node < 2; ++node) {
      const json ranks = Ask(node, {"why", id_})["ranks"];
      if (ranks.size() != 2 || ranks[0]["state"] != "waits" || ranks[1]["state"] != "waits") {
        return false;
      }
    }
    return true;
  }));
  json all;
  for (int look = 0; look < 2 && (all.empty() || all[0]["deadlock"] != true); ++look) {
    all = Ask(0, {"why", id_})["ranks"];
  }
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_THAT(all[0]["chain"], ElementsAre(0, 1, 2, 3, 0));
  EXPECT_EQ(all[0]["deadlock"], true) << all.dump(2);
  EXPECT_EQ(all[1]["deadlock"], true) << all.dump(2);
  EXPECT_THAT(all[0]["verdict"].get<std::string>(),
              HasSubstr("deadlock: rank 0 waits for rank 1, which waits for rank 2, which waits "
                        "for rank 3, which waits for rank 0: each of them waits for what"));
}

TEST_F(WhyTest, MismatchedTagsOverNodesAreADeadlock) {
  Start(2, 2, "crossed");
  json sender;
  EXPECT_TRUE(Eventually([&] {
    sender = Why(0, 0, "announced to rank 1; it has posted no receive that matches");
    return sender["deadlock"] == true;
  })) << sender.dump(2);
  EXPECT_THAT(sender["chain"], ElementsAre(0, 1, 0));
  EXPECT_EQ(Why(1, 1, "what has come from rank 0 is tag 3 (1 message)")["deadlock"], true);
}

// ---- Streams ----

class StreamsTest : public WhyTest, public testing::WithParamInterface<const char*> {};

TEST_P(StreamsTest, ThatWaitForEachOtherAreADeadlock) {
  StartProgram(3, 1, {"tests/e2e/ranks/stuck_queues", GetParam()});
  const bool sends_first = std::string_view(GetParam()) == "sends";
  json why;
  EXPECT_TRUE(Eventually([&] {
    why = Ask(0, {"why", id_ + ".0"})["ranks"][0];
    return why["deadlock"] == true;
  })) << why.dump(2);
  EXPECT_THAT(
      why["verdict"].get<std::string>(),
      HasSubstr(sends_first ? "deadlock: rank 0 waits for rank 1, which waits for rank 2, which "
                              "waits for rank 0: each of them waits for what the next one has not "
                              "sent or asked for; rank 0 is in ferry_queue_wait, whose stream has "
                              "first to send to rank 1, tag 3, where that stands behind a wait"
                            : "deadlock: rank 0 waits for rank 2, which waits for rank 1, which "
                              "waits for rank 0: each of them waits for what the next one has not "
                              "sent or asked for; rank 0 is in ferry_queue_wait, whose stream has "
                              "first to receive from rank 2, tag 3, where that stands behind a "
                              "wait"));
}
INSTANTIATE_TEST_SUITE_P(All, StreamsTest, testing::Values("circle", "sends", "later"));

// Nothing is a deadlock that goes on, whenever and however often one looks.
class HealthyTest : public WhyTest,
                    public testing::WithParamInterface<std::tuple<const char*, int>> {};

TEST_P(HealthyTest, AHaloExchangeIsNeverCalledADeadlock) {
  constexpr int kLooks = 40;
  const auto& [program, nodes] = GetParam();
  StartProgram(4, nodes, {program, "halo"});
  std::set<std::string> told;
  size_t waits = 0;
  for (int look = 0; look < kLooks; ++look) {
    const json answer = Ask(look % nodes, {"why", id_});
    for (const json& rank : answer["ranks"]) {
      waits += rank["state"] == "waits" ? 1 : 0;
      const std::string verdict = rank["verdict"];
      if (rank["deadlock"] == true || verdict.find("deadlock") != verdict.npos ||
          verdict.find("circle") != verdict.npos) {
        told.insert(verdict);
      }
    }
  }
  EXPECT_THAT(told, testing::IsEmpty());
  EXPECT_GT(waits, 10U) << "the looks must have met ranks that wait";
}
// By CPUs, and by streams whose kernels take longer than the time between two looks.
INSTANTIATE_TEST_SUITE_P(Programs, HealthyTest,
                         testing::Combine(testing::Values("tests/e2e/ranks/waits",
                                                          "tests/e2e/ranks/stuck_queues"),
                                          testing::Values(1, 2)));

// Each rank has receives from the others, for what they may ask of its window.
TEST_F(WhyTest, AWindowOverMemoryOfTheProgramsOwnIsNoDeadlock) {
  StartProgram(3, 1, {"tests/mpi/ranks/rma_waits"});
  const json why = Why(0, 0, "posted, unmatched; nothing else from rank 2 has come");
  EXPECT_THAT(why["reasons"], SizeIs(1));
  EXPECT_EQ(why["deadlock"], false);
  EXPECT_THAT(why["chain"], ElementsAre(0, 2));
  EXPECT_THAT(why["verdict"].get<std::string>(),
              HasSubstr("rank 0 waits for rank 2, which is outside Ferry"));
}

TEST_F(WhyTest, AChainEndsAtTheRankThatIsStopped) {
  Start(3, 1, "chain");
  Stop(PidOf(0, 2));
  json why;
  EXPECT_TRUE(Eventually([&] {
    why = Why(0, 0, "posted, unmatched");
    return why["chain"] == json({0, 1, 2}) &&
           why["verdict"].get<std::string>().find("stopped") != std::string::npos;
  })) << why.dump(2);
  EXPECT_THAT(why["verdict"].get<std::string>(),
              HasSubstr("rank 0 waits for rank 1, which waits for rank 2, which is stopped"));
  const json stopped = Ask(0, {"why", id_ + ".2"})["ranks"][0];
  EXPECT_EQ(stopped["state"], "stopped");
}

TEST_F(WhyTest, AFloodEndsAtTheRankThatDoesNotReceive) {
  Start(2, 1, "flood");
  kill(PidOf(0, 0), SIGUSR1);
  const json why = Why(0, 0, "announced; rank 1 has posted no receive that matches");
  EXPECT_EQ(why["reasons"][0]["operation"], "send");
  EXPECT_THAT(why["chain"], ElementsAre(0, 1));
}

TEST_F(WhyTest, MissingCreditNamesTheRankOfTheOtherNode) {
  Start(2, 2, "flood");
  const pid_t sender = PidOf(0, 0);
  ASSERT_GT(sender, 1);
  const json daemon = Ask(1, {"status"});
  Stop(daemon["pid"].get<pid_t>());
  kill(sender, SIGUSR1);
  const CommandResult at_once =
      Ferryctl(0, {"why", id_ + ".0"});  // not only once the link counts as cut
  EXPECT_EQ(at_once.exit_code, 0) << at_once.err;
  const json why = Why(0, 0, "queued: no credit: rank 1 has not drained the last 64 messages");
  EXPECT_EQ(why["reasons"][0]["peer_state"], "elsewhere");
  EXPECT_THAT(why["verdict"].get<std::string>(),
              AllOf(HasSubstr("rank 0 waits for rank 1, which is on node 1 (127.0.0.1:"),
                    HasSubstr("`ferryctl why " + id_ + ".1` there tells more")));
  const CommandResult elsewhere = Ferryctl(0, {"why", id_ + ".1"});
  EXPECT_EQ(elsewhere.exit_code, 1);
  EXPECT_THAT(elsewhere.err, HasSubstr("is not on this node: ask the ferryd of node 1 at 127."));
}

TEST_F(WhyTest, ATransferBetweenNodesSaysHowFarItIs) {
  Start(2, 2, "fetch");
  Why(0, 0, "announced to rank 1; it has posted no receive that matches");
  const json daemon = Ask(0, {"status"});
  const pid_t receiver = PidOf(1, 1);
  ASSERT_GT(receiver, 1);
  Stop(daemon["pid"].get<pid_t>());  // so that the fetch begins and stops there
  kill(receiver, SIGUSR1);
  const json why = Why(1, 1, "matched; being fetched from rank 0: 0 of 1048576 bytes");
  EXPECT_EQ(why["reasons"][0]["operation"], "receive");
  EXPECT_EQ(why["reasons"][0]["done_bytes"], 0);
  EXPECT_EQ(why["reasons"][0]["peer_state"], "elsewhere");
}

// A table with a line for each would be long: `--all` prints it.
TEST_F(WhyTest, ManyRanksAreToldInGroups) {
  Start(72, 1, "chain");
  ASSERT_TRUE(Eventually([&] {
    const json why = Ask(0, {"why", id_});
    return std::count_if(why["ranks"].begin(), why["ranks"].end(),
                         [](const json& rank) { return rank["state"] == "waits"; }) == 71;
  }));
  std::string text;
  const auto lines = [&](const Words& words) {
    text = Ferryctl(0, words).out;
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_LT(lines({"why", id_}), 12) << text;
  EXPECT_THAT(text, HasSubstr("71 ranks wait (0-70) for rank 71, directly or through others:\n"
                              "  rank 70 waits for rank 71, which is outside Ferry"));
  EXPECT_LT(lines({"why"}), 12) << text;
  EXPECT_GT(lines({"why", id_, "--all"}), 72);
  EXPECT_LT(lines({"sessions"}), 24) << text;
  EXPECT_THAT(text, HasSubstr("0-71\n"));
  EXPECT_GT(lines({"sessions", "--all"}), 72);
  EXPECT_LT(lines({"top", "--once", "--interval-ms=100"}), 72) << text;
  EXPECT_THAT(text, HasSubstr("72 ranks: 72 joined; out 0 B/s, in 0 B/s; 71 wait in ferry_recv\n"));
  EXPECT_GT(lines({"top", "--once", "--interval-ms=100", "--all"}), 72);
}

TEST_F(WhyTest, AJobGoesByTheNameOfItsProgram) {
  Start(2, 1, "unmatched");
  Why(0, 1, "posted, unmatched");
  const json job = Ask(0, {"status"})["jobs"][0];
  EXPECT_EQ(job["program"], "waits");
  EXPECT_EQ(job["job_id"], id_);
  EXPECT_TRUE(job["age_ms"].is_number_unsigned());
  for (const char* name : {"1", "waits.1"}) {
    EXPECT_EQ(Ask(0, {"why", name})["ranks"][0]["rank"], 1) << name;
    EXPECT_EQ(Ask(0, {"why", name})["job_id"], id_) << name;
  }
  EXPECT_THAT(Ask(0, {"why", "waits"})["ranks"], SizeIs(2));
  EXPECT_THAT(Ferryctl(0, {"why", "1"}).out, HasSubstr("rank 1 of job waits "));
  EXPECT_THAT(Ferryctl(0, {"sessions"}).out, HasSubstr("waits"));
  EXPECT_THAT(Ferryctl(0, {"-j", "waits", "status"}).out, testing::Not(HasSubstr(id_)));
  EXPECT_EQ(Ferryctl(0, {"counters", "1"}).exit_code, 0);
}

TEST_F(WhyTest, UnknownNamesSaySo) {
  Start(1, 1, "unmatched");
  const CommandResult unknown = Ferryctl(0, {"why", "UNKNOWN"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("there is no job UNKNOWN on this daemon"));
  EXPECT_THAT(Ferryctl(0, {"why", "nojob.0"}).err,
              HasSubstr("there is no job nojob on this daemon"));
  EXPECT_THAT(Ferryctl(0, {"why", id_ + ".9"}).err, HasSubstr("its ranks are 0 to 0"));
  const CommandResult nobody = Ferryctl(0, {"why", "9"});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_THAT(nobody.err, HasSubstr("its ranks are 0 to 0"));
}

}  // namespace
}  // namespace ferry::e2e
