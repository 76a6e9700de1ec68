// The states that the page shows, and the events that tell of them, with stand-in replies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tools/ferryctl/web/event_log.h"
#include "tools/ferryctl/web/picture.h"

namespace ferry::tools {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kStartMs = 1'700'000'000'000;

// A daemon with one job of `ranks`, all of which compute.
Look LookAt(uint32_t ranks, uint64_t second) {
  Look look;
  look.unix_ms = kStartMs + second * 1000;
  look.monotonic_ns = (second + 1) * 1'000'000'000;
  look.uid = 1000;
  DaemonLook& daemon = look.daemons.emplace_back();
  daemon.run_directory = "/run/ferry";
  daemon.kind = "node";
  daemon.status.set_pid(42);
  daemon.status.set_state("serving");
  daemon.status.mutable_node()->set_name("n0");
  daemon.status.set_uptime_ms(5000 + second * 1000);
  control::JobStatus* job = daemon.status.add_jobs();
  job->set_job_id("job");
  job->set_size(ranks);
  job->set_joined(ranks);
  job->set_state("running");
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    control::SessionStatus* session = daemon.sessions.add_sessions();
    session->set_job_id("job");
    session->set_rank(rank);
    session->set_pid(100 + rank);
    session->set_state("joined");
    control::RankWait* wait = daemon.why.add_ranks();
    wait->set_job_id("job");
    wait->set_rank(rank);
    wait->set_pid(100 + rank);
    wait->set_state("computes");
    wait->set_detail("computes outside Ferry");
    wait->add_chain(rank);
  }
  return look;
}

void Wait(uint32_t rank, uint32_t peer, uint64_t ms, Look* look) {
  control::RankWait* wait = look->daemons[0].why.mutable_ranks(static_cast<int>(rank));
  wait->set_state("waits");
  wait->set_waits_ms(ms);
  wait->add_chain(peer);
  wait->set_verdict("rank " + std::to_string(rank) + " waits for rank " + std::to_string(peer));
}

void Count(const std::string& scope, const std::string& name, uint64_t value, Look* look) {
  control::CounterValue* counter = look->daemons[0].counters.add_counters();
  counter->set_scope(scope);
  counter->set_name(name);
  counter->set_value(value);
}

// ---- Picture ----

TEST(PictureTest, ShowsRanksOfAJobOnANode) {
  const json state = Picture().Draw(LookAt(4, 0));
  EXPECT_EQ(state["uid"], 1000);
  EXPECT_EQ(state["daemons"]["/run/ferry"]["node"], "n0");
  const json& job = state["jobs"]["job"];
  EXPECT_EQ(job["size"], 4);
  ASSERT_EQ(job["ranks"].size(), 4U);
  EXPECT_EQ(job["ranks"]["3"]["state"], "computes");
  EXPECT_EQ(job["ranks"]["3"]["pid"], 103);
  EXPECT_EQ(job["ranks"]["3"]["at"], "/run/ferry");
  EXPECT_FALSE(job["ranks"]["3"].contains("why"));
}

TEST(PictureTest, NothingHasChangedWhereNothingHas) {
  Picture picture;
  const json before = picture.Draw(LookAt(64, 0));
  EXPECT_THAT(ChangeBetween(before, picture.Draw(LookAt(64, 1))), IsEmpty())
      << "the daemon is a second older, and nothing else";
}

TEST(PictureTest, RatesAreThoseSinceTheLookBefore) {
  Picture picture;
  Look look = LookAt(2, 0);
  look.daemons[0].sessions.mutable_sessions(1)->set_bytes_sent(1'000'000);
  EXPECT_EQ(picture.Draw(look)["jobs"]["job"]["ranks"]["1"]["out"], 0) << "what was before";
  look = LookAt(2, 2);
  look.daemons[0].sessions.mutable_sessions(1)->set_bytes_sent(9'000'000);
  EXPECT_EQ(picture.Draw(look)["jobs"]["job"]["ranks"]["1"]["out"], 4'000'000);
  look = LookAt(2, 3);
  look.daemons[0].sessions.mutable_sessions(1)->set_pid(999);  // another process
  look.daemons[0].sessions.mutable_sessions(1)->set_bytes_sent(100'000'000);
  EXPECT_EQ(picture.Draw(look)["jobs"]["job"]["ranks"]["1"]["out"], 0);
}

TEST(PictureTest, ALongWaitHasItsSentenceAndItsBeginning) {
  Picture picture;
  Look look = LookAt(4, 10);
  Wait(1, 0, 20, &look);
  Wait(2, 1, 3000, &look);
  json ranks = picture.Draw(look)["jobs"]["job"]["ranks"];
  EXPECT_EQ(ranks["1"]["state"], "waits");
  EXPECT_FALSE(ranks["1"].contains("why")) << "ranks of a healthy job wait, too";
  EXPECT_EQ(ranks["2"]["why"], "rank 2 waits for rank 1");
  EXPECT_EQ(ranks["2"]["since"], kStartMs + 7000);
  EXPECT_EQ(ranks["2"]["chain"], json({2, 1}));
  // Ages and clocks are not read at once: the beginning does not wobble.
  look = LookAt(4, 11);
  Wait(2, 1, 4123, &look);
  EXPECT_EQ(picture.Draw(look)["jobs"]["job"]["ranks"]["2"]["since"], kStartMs + 7000);
  // It has begun another wait.
  look = LookAt(4, 12);
  Wait(2, 1, 600, &look);
  EXPECT_EQ(picture.Draw(look)["jobs"]["job"]["ranks"]["2"]["since"], kStartMs + 11400);
}

TEST(PictureTest, ALongChainIsCutShort) {
  Look look = LookAt(1024, 0);
  Wait(0, 1, 5000, &look);
  control::RankWait* wait = look.daemons[0].why.mutable_ranks(0);
  std::string verdict = "rank 0 waits for rank 1";
  for (uint32_t rank = 2; rank < 1024; ++rank) {
    wait->add_chain(rank);
    verdict += ", which waits for rank " + std::to_string(rank);
  }
  wait->set_verdict(verdict + ", which computes");
  const json job = Picture().Draw(look)["jobs"]["job"];
  EXPECT_THAT(job["causes"]["1023"]["why"].get<std::string>(),
              testing::AllOf(testing::StartsWith("rank 0 waits for rank 1, which waits"),
                             testing::EndsWith("rank 1023, which computes"), HasSubstr(" ... ")));
  EXPECT_LT(job["causes"].dump().size(), 700U);
  EXPECT_LT(job["ranks"]["0"].dump().size(), 400U);
}

TEST(PictureTest, RanksThatHaveEndedAreThere) {
  Look look = LookAt(3, 0);
  look.daemons[0].sessions.mutable_sessions()->DeleteSubrange(1, 2);
  for (const auto& [rank, state] : {std::pair(1, "died"), std::pair(2, "left")}) {
    control::RankWait* wait = look.daemons[0].why.mutable_ranks(rank);
    wait->set_state(state);
    wait->set_detail(std::string("has ") + state);
    wait->set_pid(0);
  }
  const json ranks = Picture().Draw(look)["jobs"]["job"]["ranks"];
  EXPECT_EQ(ranks["1"]["state"], "died");
  EXPECT_EQ(ranks["1"]["does"], "has died");
  EXPECT_EQ(ranks["2"]["state"], "left");
}

TEST(PictureTest, PathsAreNamedByHowBytesTravel) {
  Picture picture;
  for (const uint64_t second : {0, 1}) {
    Look look = LookAt(2, second);
    for (const char* scope : {"job job rank 0", "job job rank 1"}) {
      Count(scope, "path_cell_bytes", second * 1000, &look);
      Count(scope, "path_inline_bytes", second * 10, &look);
      Count(scope, "path_process_vm_bytes", second * 200'000, &look);
      Count(scope, "path_packet_bytes", second * 5000, &look);
      Count(scope, "link_bytes_received", second * 4000, &look);
      Count(scope, "messages_sent", second * 77, &look);
    }
    const json paths = picture.Draw(look)["paths"];
    EXPECT_EQ(paths["lane"]["rate"], second * 2020);
    EXPECT_EQ(paths["one copy"]["rate"], second * 400'000);
    EXPECT_EQ(paths["direct link"]["rate"], second * 8000);
    EXPECT_EQ(paths["daemon"]["rate"], second * 2000) << "links' bytes are counted once";
    EXPECT_EQ(paths.size(), 4U);
  }
}

// With more ranks than are counted at a look, each counts with what it did between its turns.
TEST(PictureTest, CountersMayComeByTurns) {
  Picture picture;
  json paths;
  for (uint64_t second = 0; second < 4; ++second) {
    Look look = LookAt(2, second);
    Count(second % 2 == 0 ? "job job rank 0" : "job job rank 1", "path_cell_bytes", 1000 * second,
          &look);
    paths = picture.Draw(look)["paths"];
  }
  EXPECT_EQ(paths["lane"]["rate"], 2000) << "two ranks of 1,000 bytes a second";
}

TEST(PictureTest, BytesBetweenNodesAreAddedUp) {
  Picture picture;
  json job;
  for (const uint64_t second : {0, 1}) {
    Look look = LookAt(4, second);
    for (int rank : {2, 3}) {  // on another node
      look.daemons[0].why.mutable_ranks(rank)->set_node(1);
      look.daemons[0].why.mutable_ranks(rank)->set_state("elsewhere");
    }
    for (const uint32_t rank : {0U, 1U}) {
      control::LinkStatus* link = look.daemons[0].links.add_links();
      link->set_job_id("job");
      link->set_rank(rank);
      link->set_peer(rank + 2);
      link->set_node(1);
      link->set_state(rank == 0 ? "none" : "up");
      link->set_daemon_bytes(second * 1000);
    }
    control::LinkTotals* totals = look.daemons[0].links.add_totals();
    totals->set_job_id("job");
    totals->set_rank(1);
    totals->set_links(1);
    totals->set_bytes_sent(second * 50'000);
    job = picture.Draw(look)["jobs"]["job"];
  }
  EXPECT_EQ(job["flows"]["0>1"], 52'000);
  EXPECT_EQ(job["pairs"]["0>2"]["rate"], 1000);
  EXPECT_EQ(job["pairs"]["1>3"]["state"], "up");
  EXPECT_EQ(job["ranks"]["1"]["link_out"], 50'000);
}

TEST(PictureTest, OfManyPairsThoseThatMoveMostAreShown) {
  Picture picture;
  json job;
  for (const uint64_t second : {0, 1}) {
    Look look = LookAt(1, second);
    for (uint32_t peer = 1; peer <= 1000; ++peer) {
      control::LinkStatus* link = look.daemons[0].links.add_links();
      link->set_job_id("job");
      link->set_peer(peer);
      link->set_node(1);
      link->set_daemon_bytes(second * peer);
    }
    job = picture.Draw(look)["jobs"]["job"];
  }
  EXPECT_EQ(job["pairs"].size(), kMostPairs);
  EXPECT_TRUE(job["pairs"].contains("0>1000"));
  EXPECT_FALSE(job["pairs"].contains("0>1"));
  EXPECT_EQ(job["pairs_left_out"], 1000 - kMostPairs);
}

TEST(PictureTest, RoundsToThreeDigits) {
  EXPECT_EQ(Rounded(0), 0);
  EXPECT_EQ(Rounded(-1), 0);
  EXPECT_EQ(Rounded(123'456), 123'000);
  EXPECT_EQ(Rounded(123.4), 123);
  EXPECT_NEAR(Rounded(0.0123456), 0.0123, 1e-9);
  EXPECT_EQ(Rounded(123'456, 1), 100'000);
  EXPECT_EQ(Rounded(0, 1), 0);
}

// ---- Large jobs ----

// All ranks wait for the next one but 512, which computes, and each says a sentence of 480 bytes.
Look LongChain(uint64_t second) {
  Look look = LookAt(1024, second);
  for (uint32_t rank = 0; rank < 1024; ++rank) {
    if (rank != 512) {
      Wait(rank, (rank + 1) % 1024, 5000 + second * 1000, &look);
      control::RankWait* const wait = look.daemons[0].why.mutable_ranks(static_cast<int>(rank));
      for (uint32_t next = (rank + 2) % 1024; wait->chain().rbegin()[0] != 512; ++next) {
        wait->add_chain(next % 1024);
      }
      wait->set_verdict(wait->verdict() + std::string(480, '.'));
    }
  }
  return look;
}

TEST(PictureTest, AThousandRanksThatWaitHaveOneCauseWithASentence) {
  Picture picture;
  const json state = picture.Draw(LongChain(0));
  const json& job = state["jobs"]["job"];
  ASSERT_EQ(job["causes"].size(), 1U);
  const json& cause = job["causes"]["512"];
  EXPECT_EQ(cause["waits"], 1023);
  EXPECT_THAT(cause["why"].get<std::string>(), testing::StartsWith("rank 511 waits for rank 512"));
  EXPECT_EQ(job["ranks"]["513"]["cause"], 512);
  EXPECT_EQ(job["ranks"]["513"]["chain"], json({513, 514})) << "the next one leads on";
  EXPECT_FALSE(job["ranks"]["513"].contains("why"));
  EXPECT_FALSE(job["ranks"]["512"].contains("cause"));
  EXPECT_LT(state.dump().size(), 400U << 10) << "with all sentences it has 900 KiB";
  EXPECT_THAT(ChangeBetween(state, picture.Draw(LongChain(1))), IsEmpty()) << "nothing moves";
}

TEST(PictureTest, RanksOfASmallJobKeepTheirSentences) {
  Look look = LookAt(128, 0);
  Wait(1, 0, 5000, &look);
  const json job = Picture().Draw(look)["jobs"]["job"];
  EXPECT_EQ(job["ranks"]["1"]["why"], "rank 1 waits for rank 0");
  EXPECT_EQ(job["causes"]["0"]["why"], "rank 1 waits for rank 0");
  EXPECT_EQ(job["causes"]["0"]["waits"], 1);
  EXPECT_FALSE(job.contains("rough"));
}

// Each rank sends about as much in each second, no two seconds the same.
Look Busy(uint32_t ranks, uint64_t second) {
  Look look = LookAt(ranks, second);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    control::SessionStatus* const session =
        look.daemons[0].sessions.mutable_sessions(static_cast<int>(rank));
    const uint64_t wobble = (rank * 7919 + second * 104'729) % 40'000;
    session->set_bytes_sent(second * 1'200'000 + wobble);
    session->set_bytes_received(second * 1'200'000 + wobble);
    session->set_messages_sent(second * 120 + wobble / 10'000);
  }
  return look;
}

TEST(PictureTest, SteadyTrafficOfALargeJobCostsSmallEvents) {
  const auto bytes_of = [](uint32_t ranks) {
    Picture picture;
    json before = picture.Draw(Busy(ranks, 0));
    size_t bytes = 0;
    for (uint64_t second = 1; second <= 30; ++second) {
      json now = picture.Draw(Busy(ranks, second));
      bytes += second > 10 ? ChangeBetween(before, now).dump().size() : 0;
      before = std::move(now);
    }
    return bytes / 20;
  };
  EXPECT_GT(bytes_of(128), 6U << 10) << "a small job's ranks are told to three digits";
  EXPECT_LT(bytes_of(1024), 16U << 10) << "an event of 100 KiB each second would be much";
}

TEST(PictureTest, SumsOfALargeJobAreExact) {
  Picture picture;
  json job;
  for (const uint64_t second : {0, 1}) {
    Look look = LookAt(1024, second);
    for (int rank = 0; rank < 1024; ++rank) {
      look.daemons[0].why.mutable_ranks(rank)->set_node(rank < 512 ? 0 : 1);
      look.daemons[0].sessions.mutable_sessions(rank)->set_bytes_sent(second * 1490);
    }
    job = picture.Draw(look)["jobs"]["job"];
  }
  EXPECT_EQ(job["ranks"]["7"]["out"], 1000) << "one digit of each rank";
  EXPECT_EQ(job["rates"]["0"], 763'000) << "three of the sum";
  EXPECT_EQ(job["rates"]["1"], 763'000);
}

TEST(PictureTest, OfManyCausesEightAreTold) {
  Look look = LookAt(1024, 0);
  for (uint32_t rank = 0; rank < 1000; rank += 2) {
    Wait(rank, rank + 1, 5000, &look);
  }
  const json job = Picture().Draw(look)["jobs"]["job"];
  EXPECT_EQ(job["causes"].size(), kMostCauses);
  EXPECT_EQ(job["ranks"]["998"]["cause"], 999);
}

// A large job in which one rank changes costs an event of one rank.
TEST(PictureTest, AnEventOfALargeJobHasOnlyWhatHasChanged) {
  Picture picture;
  const json before = picture.Draw(LookAt(1024, 0));
  Look look = LookAt(1024, 1);
  Wait(512, 511, 900, &look);
  const json change = ChangeBetween(before, picture.Draw(look));
  EXPECT_LT(change.dump().size(), 400U) << change.dump();
  EXPECT_EQ(change["jobs"]["job"]["ranks"].size(), 1U);
  EXPECT_LT(before.dump().size(), 512U << 10);
}

// ---- Changes ----

// A state with names of three letters, so that two of them have some in common.
json RandomState(std::mt19937* random, int depth = 3) {
  json state = json::object();
  for (uint32_t i = (*random)() % 5; i > 0; --i) {
    const std::string key(1, static_cast<char>('a' + (*random)() % 3));
    switch ((*random)() % (depth > 0 ? 5 : 4)) {
      case 0:
        state[key] = (*random)() % 3;
        break;
      case 1:
        state[key] = std::string((*random)() % 3, 'x');
        break;
      case 2:
        state[key] = std::vector<uint32_t>((*random)() % 3, 7);
        break;
      case 3:
        state[key] = json::object();
        break;
      default:
        state[key] = RandomState(random, depth - 1);
    }
  }
  return state;
}

TEST(ChangeTest, MakesTheOneStateOfTheOther) {
  std::mt19937 random(20261130);
  for (int i = 0; i < 5000; ++i) {
    const json from = RandomState(&random);
    const json to = RandomState(&random);
    json made = from;
    made.merge_patch(ChangeBetween(from, to));
    ASSERT_EQ(made, to) << from << " " << to;
    ASSERT_THAT(ChangeBetween(to, to), IsEmpty());
  }
}

// ---- EventLog ----

// Reads on from `number`, and returns the state that the events tell.
json ReadOn(EventLog* log, uint64_t* number, json state = nullptr) {
  while (const auto event = log->After(*number)) {
    const std::string& text = *event->text;
    const json data = json::parse(text.substr(text.find("data: ") + 6));
    if (text.starts_with("event: snapshot\n")) {
      state = data["state"];
    } else {
      EXPECT_TRUE(text.starts_with("event: change\n")) << text;
      state.merge_patch(data["change"]);
    }
    EXPECT_TRUE(text.ends_with("}\n\n"));
    *number = event->number;
  }
  return state;
}

TEST(EventLogTest, EveryReaderComesToTheSameState) {
  std::mt19937 random(7);
  EventLog log;
  uint64_t early = 0;
  EXPECT_TRUE(ReadOn(&log, &early).is_null());
  json early_state;
  json state;
  for (uint64_t second = 0; second < 200; ++second) {
    state = RandomState(&random);
    log.Add(state, kStartMs + second * 1000);
    early_state = ReadOn(&log, &early, early_state);
    ASSERT_EQ(early_state, state) << second;
  }
  uint64_t late = 0;
  EXPECT_EQ(ReadOn(&log, &late), state);
  EXPECT_EQ(late, early);
}

TEST(EventLogTest, ANewReaderGetsTheLastMinute) {
  EventLog log;
  for (uint64_t second = 0; second < 200; ++second) {
    log.Add({{"second", second}}, kStartMs + second * 1000);
  }
  const auto snapshot = log.After(0);
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_THAT(*snapshot->text, HasSubstr("\"second\":139"));
  uint64_t number = snapshot->number;
  int changes = 0;
  for (auto event = log.After(number); event; event = log.After(number = event->number)) {
    ++changes;
  }
  EXPECT_EQ(changes, 60);
}

TEST(EventLogTest, AReaderThatFallsBehindGetsASnapshotAgain) {
  EventLog log;
  log.Add({{"second", 0}}, kStartMs);
  uint64_t number = 0;
  const json state = ReadOn(&log, &number);
  for (uint64_t second = 1; second < 300; ++second) {
    log.Add({{"second", second}}, kStartMs + second * 1000);
  }
  const auto next = log.After(number);
  ASSERT_TRUE(next.has_value());
  EXPECT_THAT(*next->text, testing::StartsWith("event: snapshot"));
  EXPECT_EQ(ReadOn(&log, &number, state)["second"], 299);
}

TEST(EventLogTest, KeepsNoMoreThanItMay) {
  EventLog log;
  for (uint64_t i = 0; i < 100; ++i) {
    log.Add({{"text", std::string(200'000, static_cast<char>('a' + i % 20))}}, kStartMs + i);
    ASSERT_LE(log.bytes(), EventLog::kMostBytes);
  }
  EXPECT_GT(log.bytes(), EventLog::kMostBytes / 2);
  uint64_t number = 0;
  EXPECT_EQ(ReadOn(&log, &number)["text"].get<std::string>()[0], 'a' + 99 % 20);
}

TEST(EventLogTest, AfterClearNothingOfBeforeIsTold) {
  EventLog log;
  log.Add({{"old", 1}}, kStartMs);
  log.Add({{"old", 2}}, kStartMs + 1000);
  uint64_t number = 0;
  ReadOn(&log, &number);
  log.Clear();
  EXPECT_FALSE(log.After(0).has_value());
  EXPECT_FALSE(log.After(number).has_value());
  log.Add({{"new", 1}}, kStartMs + 90'000);
  EXPECT_EQ(ReadOn(&log, &number, {{"old", 2}}), json({{"new", 1}}));
}

TEST(EventLogTest, NamesOfAnyBytesAreOneLineOfJson) {
  EventLog log;
  log.Add({{"a\nevent: snapshot\n\n", "\xff\r\n</script>"}}, kStartMs);
  const std::string text = *log.After(0)->text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
}

}  // namespace
}  // namespace ferry::tools
