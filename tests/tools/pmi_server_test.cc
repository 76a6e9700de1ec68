// ferryrun's server of PMI-1, with libferry's client of it, and with clients that break the rules.
#include "tools/ferryrun/pmi_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/bootstrap/pmi_wire.h"
#include "tests/support/patience.h"
#include "tools/ferryrun/exchange_hub.h"

namespace ferry::tools {
namespace {

using client::PmiWire;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = ExchangeMessage::Kind;

ServedJob JobOf(std::vector<uint32_t> node_of_rank) {
  return {.name = "job", .node_of_rank = std::move(node_of_rank), .hosts = {}, .nodes_here = {0}};
}

// Machines with a server each, and ferryrun between them.
class Machines {
 public:
  // By rank, the machine on which it runs.
  explicit Machines(const std::vector<uint32_t>& machine_of_rank)
      : job_(JobOf(machine_of_rank)), hub_(machine_of_rank) {
    for (uint32_t rank = 0; rank < machine_of_rank.size(); ++rank) {
      const uint32_t machine = machine_of_rank[rank];
      while (servers_.size() <= machine) {
        servers_.push_back(std::make_unique<PmiServer>(job_, &events_, &words_.emplace_back()));
      }
      StatusOr<UniqueFd> fd = servers_[machine]->Open(rank, /*app=*/rank, /*universe_size=*/9);
      EXPECT_TRUE(fd.ok());
      ends_.push_back(std::move(*fd));
    }
  }

  UniqueFd& end(uint32_t rank) { return ends_[rank]; }
  // Serves until `done` says so.
  template <typename Done>
  void ServeUntil(Done done) {
    const auto end = std::chrono::steady_clock::now() + tests::kPatience;
    while (!done() && std::chrono::steady_clock::now() < end) {
      pollfd waiting{events_.fd(), POLLIN, 0};
      if (poll(&waiting, 1, 10) > 0) {
        events_.Dispatch();
      }
      PassOn();
    }
    ASSERT_LT(std::chrono::steady_clock::now(), end);
  }
  const std::vector<std::string>& faults() const { return faults_; }
  const std::vector<Kind>& seen() const { return seen_; }

 private:
  void PassOn() {
    for (uint32_t machine = 0; machine < servers_.size(); ++machine) {
      for (const ExchangeMessage& message : std::exchange(words_[machine], {})) {
        seen_.push_back(message.kind);
        if (message.kind == Kind::kFault) {
          faults_.push_back(message.why);
        }
        for (const ExchangeHub::Outgoing& out : hub_.Take(machine, message)) {
          servers_[out.machine]->Take(out.message);
        }
      }
    }
  }

  const ServedJob job_;
  ExchangeHub hub_;
  EventSet events_;
  std::deque<std::vector<ExchangeMessage>> words_;  // by machine
  std::vector<std::unique_ptr<PmiServer>> servers_;
  std::vector<UniqueFd> ends_;  // of ranks
  std::vector<std::string> faults_;
  std::vector<Kind> seen_;
};

constexpr char kInit[] = "cmd=init pmi_version=1 pmi_subversion=1\n";

void Say(const UniqueFd& end, const std::string& text) {
  ASSERT_EQ(send(end.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

// Returns the text that has come, without waiting.
std::string Heard(const UniqueFd& end) {
  std::array<char, 1 << 16> bytes;
  const ssize_t size = recv(end.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  return {bytes.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

// The answers to lines that a rank alone in its job says after "init".
std::string Answers(const std::string& lines) {
  Machines machines({0});
  Say(machines.end(0), kInit + lines);
  std::string heard;
  machines.ServeUntil([&] {
    heard += Heard(machines.end(0));
    return std::count(heard.begin(), heard.end(), '\n') ==
           1 + std::count(lines.begin(), lines.end(), '\n');
  });
  return heard.substr(heard.find('\n') + 1);
}

// ---- Those that keep the rules ----

// A rank by libferry's own client: it leaves words for the others, and returns what it reads.
std::string MeetOthers(UniqueFd end, uint32_t rank, uint32_t size) {
  const std::string words[] = {"PMI_FD=" + std::to_string(end.Release()),
                               "PMI_RANK=" + std::to_string(rank),
                               "PMI_SIZE=" + std::to_string(size)};
  const char* const environment[] = {words[0].c_str(), words[1].c_str(), words[2].c_str(), nullptr};
  auto wire = PmiWire::Open(environment, tests::kPatienceMs);
  if (!wire.ok()) {
    return wire.status().message();
  }
  std::string heard = std::to_string((*wire)->local_ranks().size()) + "/" +
                      std::to_string(*(*wire)->app()) + "/" +
                      std::to_string(*(*wire)->universe_size());
  for (const std::string name : {"first", "second"}) {
    EXPECT_TRUE((*wire)->Put(name, name + " of " + std::to_string(rank)).ok());
    EXPECT_TRUE((*wire)->Fence().ok());
    for (uint32_t other = 0; other < size; ++other) {
      const StatusOr<std::string> said = (*wire)->Get(other, name);
      heard += ", " + (said.ok() ? *said : said.status().message());
    }
  }
  return heard;
}

TEST(PmiServerTest, RanksOfSeveralMachinesMeet) {
  const std::vector<uint32_t> machine_of_rank = {0, 1, 0};
  Machines machines(machine_of_rank);
  std::atomic<uint32_t> done = 0;
  std::vector<std::string> heard(3);
  std::vector<std::thread> ranks;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      heard[rank] = MeetOthers(std::move(machines.end(rank)), rank, 3);
      ++done;
    });
  }
  machines.ServeUntil([&] { return done == 3; });
  for (std::thread& rank : ranks) {
    rank.join();
  }
  const std::string words =
      ", first of 0, first of 1, first of 2, second of 0, second of 1, second of 2";
  EXPECT_THAT(heard, ElementsAre("2/0/9" + words, "1/1/9" + words, "2/2/9" + words));
  EXPECT_THAT(machines.faults(), IsEmpty());
}

TEST(PmiServerTest, AnswersAsHydraDoes) {
  EXPECT_EQ(Answers("cmd=get_maxes\n"),
            "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  EXPECT_EQ(Answers("cmd=get_my_kvsname\ncmd=get kvsname=ferry_job_0 key=a\n"),
            "cmd=my_kvsname kvsname=ferry_job_0\n"
            "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
  EXPECT_EQ(Answers("cmd=put kvsname=ferry_job_0 key=a value=b=c\n"
                    "cmd=get kvsname=ferry_job_0 key=a\n"),
            "cmd=put_result rc=0 msg=success\ncmd=get_result rc=0 msg=success value=b=c\n");
  EXPECT_EQ(Answers("cmd=get kvsname=ferry_job_0 key=PMI_process_mapping\n"),
            "cmd=get_result rc=0 msg=success value=(vector,(0,1,1))\n");
  EXPECT_EQ(Answers("cmd=barrier_in\n"), "cmd=barrier_out\n");
  EXPECT_EQ(Answers("cmd=finalize\n"), "cmd=finalize_ack\n");
}

TEST(PmiServerTest, RefusesWhatItDoesNotDo) {
  EXPECT_THAT(Answers("cmd=lookup_name service=a\n"), HasSubstr("cmd=lookup_result rc=1"));
  EXPECT_THAT(Answers("cmd=put kvsname=another key=a value=b\n"), HasSubstr("no_such_kvsname"));
  EXPECT_THAT(Answers("cmd=put kvsname=ferry_job_0 key=" + std::string(65, 'k') + " value=b\n"),
              HasSubstr("too_long"));
  Machines machines({0});
  Say(machines.end(0),
      std::string(kInit) + "mcmd=spawn\nnprocs=1\nexecname=a\nendcmd\ncmd=get_appnum\n");
  std::string heard;
  machines.ServeUntil([&] {
    heard += Heard(machines.end(0));
    return heard.ends_with("cmd=appnum appnum=0\n");
  });
  EXPECT_THAT(heard, HasSubstr("cmd=spawn_result rc=-1"));
}

TEST(PmiServerTest, ProgramsThatFollowEachOtherHaveValuesAndBarriersOfTheirOwn) {
  Machines machines({0, 0});
  for (const uint32_t rank : {0U, 1U}) {
    Say(machines.end(rank), std::string(kInit) + "cmd=put kvsname=ferry_job_0 key=a" +
                                std::to_string(rank) + " value=b\n");
  }
  std::string heard[2];
  const auto hears = [&](uint32_t rank, const std::string& text) {
    machines.ServeUntil([&] {
      heard[rank] += Heard(machines.end(rank));
      return heard[rank].ends_with(text);
    });
  };
  hears(0, "rc=0 msg=success\n");
  hears(1, "rc=0 msg=success\n");
  // Rank 0 goes on to its next program while rank 1 is in the first one.
  Say(machines.end(0), "cmd=finalize\n");
  hears(0, "cmd=finalize_ack\n");
  Say(machines.end(0), kInit);
  hears(0, "rc=0\n");
  Say(machines.end(0), "cmd=get kvsname=ferry_job_1 key=a1\n");
  hears(0, "key_not_found value=unknown\n");
  Say(machines.end(0), "cmd=barrier_in\n");
  Say(machines.end(1), "cmd=finalize\n");
  hears(1, "cmd=finalize_ack\n");
  Say(machines.end(1), std::string(kInit) + "cmd=barrier_in\n");
  hears(0, "cmd=barrier_out\n");
  hears(1, "cmd=barrier_out\n");
  EXPECT_THAT(machines.faults(), IsEmpty());
}

// ---- Those that break them ----

struct Fault {
  const char* name;
  std::string said;  // by rank 1, after rank 0 has said `before`
  const char* words;
  std::string before = {};
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class PmiFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(PmiFaultTest, IsNamed) {
  for (const std::vector<uint32_t>& machine_of_rank : {std::vector<uint32_t>{0, 0}, {0, 1}}) {
    Machines machines(machine_of_rank);
    Say(machines.end(0), GetParam().before);
    if (!GetParam().before.empty()) {
      machines.ServeUntil([&] { return !machines.seen().empty(); });
    }
    std::string unsent = GetParam().said;
    machines.ServeUntil([&] {
      const ssize_t size =
          send(machines.end(1).get(), unsent.data(), unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      unsent.erase(0, static_cast<size_t>(std::max<ssize_t>(size, 0)));
      return !machines.faults().empty();
    });
    EXPECT_THAT(machines.faults(), SizeIs(1));
    EXPECT_THAT(machines.faults().front(), HasSubstr(GetParam().words));
  }
}

const std::string kBegun = kInit;

INSTANTIATE_TEST_SUITE_P(
    All, PmiFaultTest,
    testing::Values(
        Fault{"SpeaksHttp", "GET / HTTP/1.1\r\n", "rank 1 says \"GET / HTTP/1.1?\" to its PMI"},
        Fault{"NeverEndsALine", std::string(1 << 17, 'x'), "a line of more than 65536 bytes"},
        Fault{"HasNulls", kBegun + std::string("cmd=put\0\n", 9), "which is not PMI-1"},
        Fault{"AsksForWhatThereIsNot", kBegun + "cmd=format_disk\n", "\"format_disk\""},
        Fault{"BeginsInTheMiddle", "cmd=barrier_in\n", "before \"cmd=init\""},
        Fault{"BeginsTwice", kBegun + kInit, "a second time"},
        Fault{"GoesOnInABarrier", kBegun + "cmd=barrier_in\ncmd=get_maxes\n",
              "while it waits in a barrier"},
        Fault{"EntersABarrierAfterAnEnd", kBegun + "cmd=barrier_in\n",
              "rank 1 waits in a barrier of PMI-1 for rank 0, which has finalized already",
              kBegun + "cmd=finalize\n"},
        Fault{"EndsBeforeABarrier", kBegun + "cmd=finalize\n",
              "rank 0 waits in a barrier of PMI-1 for rank 1, which has finalized already",
              kBegun + "cmd=barrier_in\n"}),
    [](const auto& info) { return info.param.name; });

TEST(PmiServerTest, AnAbortHasItsExitCode) {
  Machines machines({0});
  Say(machines.end(0), kBegun + "cmd=abort exitcode=37\n");
  machines.ServeUntil(
      [&] { return !machines.seen().empty() && machines.seen().back() == Kind::kAborts; });
}

// A client that asks and never reads takes only so much memory, and one that puts only so much.
TEST(PmiServerTest, MemoryIsBounded) {
  Machines machines({0});
  std::string lines = kBegun;
  const std::string put =
      "cmd=put kvsname=ferry_job_0 key=a value=" + std::string(1000, 'x') + "\n";
  while (lines.size() < 6U << 20) {
    lines += put;
  }
  std::string heard;
  machines.ServeUntil([&] {
    const ssize_t size =
        send(machines.end(0).get(), lines.data(), lines.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    lines.erase(0, static_cast<size_t>(std::max<ssize_t>(size, 0)));
    heard += Heard(machines.end(0));
    return lines.empty() && heard.ends_with("too_much_before_one_barrier\n");
  });
  EXPECT_THAT(heard, HasSubstr("rc=0 msg=success"));
}

TEST(PmiMappingTest, SaysWhereRanksAre) {
  EXPECT_EQ(client::PmiMappingText({0, 0, 0, 0}), "(vector,(0,1,4))");
  EXPECT_EQ(client::PmiMappingText({0, 0, 1, 1}), "(vector,(0,2,2))");
  EXPECT_EQ(client::PmiMappingText({0, 1, 0, 1, 0}), "(vector,(0,2,1))") << "in turn";
  for (const std::vector<uint32_t>& nodes :
       {std::vector<uint32_t>{0, 0, 1, 2, 2, 0}, {3, 3, 1, 1, 1}, {0, 1, 0, 1, 0}}) {
    const std::string text = client::PmiMappingText(nodes);
    for (uint32_t rank = 0; rank < nodes.size(); ++rank) {
      std::vector<uint32_t> same;
      for (uint32_t other = 0; other < nodes.size(); ++other) {
        if (nodes[other] == nodes[rank]) {
          same.push_back(other);
        }
      }
      EXPECT_EQ(*client::ParseProcessMapping(text, rank, static_cast<uint32_t>(nodes.size())), same)
          << text;
    }
  }
}

}  // namespace
}  // namespace ferry::tools
