// Jobs that a PMIx server has started.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <barrier>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "client/bootstrap/own_daemon.h"
#include "client/bootstrap/pmi_job.h"
#include "client/bootstrap/pmix_library.h"

namespace ferry::client {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using NodeOfRank = std::vector<uint32_t>;

TEST(PmixLibraryTest, KnowsWhetherAServerStartedThisProcess) {
  const char* const both[] = {"PMIX_NAMESPACE=job", "PMIX_RANK=0", nullptr};
  const char* const one[] = {"PMIX_RANK=0", nullptr};
  const char* const none[] = {"PMIX_RANKING=0", nullptr};
  EXPECT_TRUE(PmixLibrary::IsAround(both));
  EXPECT_FALSE(PmixLibrary::IsAround(one));
  EXPECT_FALSE(PmixLibrary::IsAround(none));
}

TEST(RankListTest, ReadsListsInAnyOrder) {
  EXPECT_THAT(*ParseRankList("0"), ElementsAre(0));
  EXPECT_THAT(*ParseRankList("7,1,12"), ElementsAre(1, 7, 12));
}

TEST(RankListTest, RefusesWhatIsNoList) {
  for (const char* text : {"", ",", "1,", ",1", "1 2", "a", "-1", "1,,2", "99999999999"}) {
    EXPECT_EQ(ParseRankList(text).status().code(), ErrorCode::kCorrupt) << text;
  }
}

// The values that all ranks have published; others see them only after a fence.
class Board {
 public:
  explicit Board(uint32_t ranks) : fence_(static_cast<std::ptrdiff_t>(ranks), Publish{this}) {}

  void Put(uint32_t rank, const std::string& name, const std::string& words) {
    const std::lock_guard lock(mutex_);
    said_[{rank, name}] = words;
  }
  void Fence() { fence_.arrive_and_wait(); }
  StatusOr<std::string> Get(uint32_t rank, const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = heard_.find({rank, name});
    return found == heard_.end() ? StatusOr<std::string>(Status(ErrorCode::kNotFound, name))
                                 : StatusOr<std::string>(found->second);
  }

 private:
  struct Publish {
    Board* board;
    void operator()() noexcept { board->heard_ = board->said_; }
  };
  std::mutex mutex_;
  std::map<std::pair<uint32_t, std::string>, std::string> said_;
  std::map<std::pair<uint32_t, std::string>, std::string> heard_;
  std::barrier<Publish> fence_;
};

class BoardExchange : public Exchange {
 public:
  BoardExchange(Board* board, uint32_t rank, const NodeOfRank& nodes)
      : board_(board), rank_(rank), size_(static_cast<uint32_t>(nodes.size())) {
    for (uint32_t other = 0; other < size_; ++other) {
      if (nodes[other] == nodes[rank]) {
        local_.push_back(other);
      }
    }
  }
  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return size_; }
  const std::vector<uint32_t>& local_ranks() const override { return local_; }
  Status Put(const std::string& name, const std::string& words) override {
    board_->Put(rank_, name, words);
    return {};
  }
  Status Fence() override {
    board_->Fence();
    return {};
  }
  StatusOr<std::string> Get(uint32_t rank, const std::string& name) override {
    return board_->Get(rank, name);
  }

 private:
  Board* const board_;
  const uint32_t rank_;
  const uint32_t size_;
  std::vector<uint32_t> local_;
};

struct PlayedStarter : JobStarter {
  StatusOr<DaemonPlace> Find(bool is_alone) override {
    alone = is_alone;
    return daemon;
  }
  Status CreateJob(const NewJob& job) override {
    created.push_back(job);
    return creation;
  }

  StatusOr<DaemonPlace> daemon = Status(ErrorCode::kInternal, "not set");
  Status creation;
  bool alone = false;
  std::vector<NewJob> created;
};

// A job of ranks on these nodes; `change` may spoil a node's starter.
struct Agreement {
  explicit Agreement(const NodeOfRank& nodes, std::map<uint32_t, Status> no_daemon = {},
                     std::map<uint32_t, Status> no_job = {}, const std::string& host = "10.0.0.",
                     const std::vector<uint64_t>& radixes = {})
      : starters(nodes.size()), options(nodes.size()), outcomes(nodes.size()) {
    Board board(static_cast<uint32_t>(nodes.size()));
    std::vector<std::thread> ranks;
    for (uint32_t rank = 0; rank < nodes.size(); ++rank) {
      const uint32_t node = nodes[rank];
      starters[rank].daemon = DaemonPlace{"/run/with space/" + std::to_string(node),
                                          host + std::to_string(node) + ":1"};
      if (no_daemon.contains(node)) {
        starters[rank].daemon = no_daemon[node];
      }
      starters[rank].creation = no_job[node];
      if (!radixes.empty()) {
        options[rank].tree_radix = radixes[rank];
      }
      ranks.emplace_back([&, rank] {
        BoardExchange exchange(&board, rank, nodes);
        outcomes[rank] = AgreeOnJob(&exchange, &starters[rank], &options[rank]);
      });
    }
    for (std::thread& rank : ranks) {
      rank.join();
    }
  }

  std::vector<PlayedStarter> starters;  // by rank; only leaders' are used
  std::vector<config::Options> options;
  std::vector<Status> outcomes;
};

TEST(PmiJobTest, AllRanksAgreeAndEveryLeaderTellsItsDaemon) {
  const NodeOfRank nodes = {1, 0, 1, 0, 2};  // nodes are numbered anew, by their lowest rank
  const Agreement agreed(nodes);
  std::set<std::string> jobs;
  for (uint32_t rank = 0; rank < nodes.size(); ++rank) {
    ASSERT_TRUE(agreed.outcomes[rank].ok()) << agreed.outcomes[rank].message();
    const config::Options& options = agreed.options[rank];
    EXPECT_EQ(options.rank, rank);
    EXPECT_EQ(options.size, 5U);
    EXPECT_EQ(options.run_directory, "/run/with space/" + std::to_string(nodes[rank]));
    jobs.insert(options.job_id + " " + options.job_secret);
    EXPECT_EQ(options.job_id.size(), 12U);
    EXPECT_EQ(options.job_secret.size(), 64U);
  }
  EXPECT_THAT(jobs, SizeIs(1));
  EXPECT_THAT(
      (std::vector<uint64_t>{agreed.options[0].node, agreed.options[1].node, agreed.options[2].node,
                             agreed.options[3].node, agreed.options[4].node}),
      ElementsAre(0, 1, 0, 1, 2));
  for (const uint32_t leader : {0, 1, 4}) {
    ASSERT_THAT(agreed.starters[leader].created, SizeIs(1)) << leader;
    const NewJob& created = agreed.starters[leader].created[0];
    EXPECT_EQ(created.id, agreed.options[0].job_id);
    EXPECT_EQ(created.secret, agreed.options[0].job_secret);
    EXPECT_EQ(created.node, agreed.options[leader].node);
    EXPECT_THAT(created.node_of_rank, ElementsAre(0, 1, 0, 1, 2));
    EXPECT_THAT(created.addresses, ElementsAre("10.0.0.1:1", "10.0.0.0:1", "10.0.0.2:1"));
    EXPECT_EQ(created.tree_radix, 16U);
    EXPECT_FALSE(agreed.starters[leader].alone);
  }
  EXPECT_THAT(agreed.starters[2].created, SizeIs(0));
}

// Else the daemons would differ in whom they tell what.
TEST(PmiJobTest, TheRadixOfRankZeroHoldsForAllDaemons) {
  const Agreement agreed({0, 0, 1, 2}, {}, {}, "10.0.0.", {7, 0, 3, 16});
  for (const uint32_t rank : {0, 1, 2, 3}) {
    ASSERT_TRUE(agreed.outcomes[rank].ok()) << agreed.outcomes[rank].message();
    EXPECT_EQ(agreed.options[rank].tree_radix, 7U);
  }
  for (const uint32_t leader : {0, 2, 3}) {
    ASSERT_THAT(agreed.starters[leader].created, SizeIs(1)) << leader;
    EXPECT_EQ(agreed.starters[leader].created[0].tree_radix, 7U);
  }
}

// A rank 0 with another libferry, or a launcher that cuts values off.
TEST(PmiJobTest, AJobWithoutARadixIsAnErrorThatTellsNoSecret) {
  class Cut : public BoardExchange {
   public:
    Cut(Board* board, std::string job)
        : BoardExchange(board, 0, NodeOfRank{0}), job_(std::move(job)) {}
    Status Put(const std::string& name, const std::string& words) override {
      return BoardExchange::Put(name, name == "ferry.job" ? job_ : words);
    }

   private:
    const std::string job_;
  };
  for (const char* job : {"", "id", "id hidden", "id hidden ", "id hidden x", "id hidden -1",
                          "id hidden 4294967296", "id hidden 16 more"}) {
    Board board(1);
    Cut exchange(&board, job);
    PlayedStarter starter;
    starter.daemon = DaemonPlace{"/run", "127.0.0.1:1"};
    config::Options options;
    const Status outcome = AgreeOnJob(&exchange, &starter, &options);
    EXPECT_EQ(outcome.code(), ErrorCode::kCorrupt) << job;
    EXPECT_THAT(outcome.message(), AllOf(HasSubstr("without a name, a secret or a radix"),
                                         testing::Not(HasSubstr("hidden"))));
    EXPECT_THAT(starter.created, SizeIs(0));
  }
}

TEST(PmiJobTest, OnOneNodeADaemonMayBeStartedForIt) {
  const Agreement agreed({0, 0, 0}, {}, {}, "127.0.0.");
  EXPECT_TRUE(agreed.outcomes[2].ok()) << agreed.outcomes[2].message();
  EXPECT_TRUE(agreed.starters[0].alone);
}

TEST(PmiJobTest, ANodeWithoutADaemonFailsAllRanksInTheSameWords) {
  const Agreement agreed({0, 0, 1}, {{1, {ErrorCode::kNoDaemon, "no ferryd there"}}});
  for (const Status& outcome : agreed.outcomes) {
    EXPECT_EQ(outcome.code(), ErrorCode::kNoDaemon);
    EXPECT_EQ(outcome.message(), "the node of rank 2: no ferryd there");
  }
  EXPECT_THAT(agreed.starters[0].created, SizeIs(0));
}

TEST(PmiJobTest, ADaemonThatRefusesTheJobFailsAllRanks) {
  const Agreement agreed({0, 1, 1}, {}, {{0, {ErrorCode::kLimitExceeded, "a quota"}}});
  for (const Status& outcome : agreed.outcomes) {
    EXPECT_EQ(outcome.code(), ErrorCode::kLimitExceeded);
    EXPECT_EQ(outcome.message(), "the node of rank 0: a quota");
  }
}

TEST(PmiJobTest, ALoopbackAddressWillNotDoForSeveralNodes) {
  const Agreement agreed({0, 1}, {}, {}, "127.0.0.");
  for (const Status& outcome : agreed.outcomes) {
    EXPECT_EQ(outcome.code(), ErrorCode::kNodeUnreachable);
    EXPECT_THAT(outcome.message(),
                HasSubstr("the node of rank 0: its ferryd listens at 127.0.0.0:1, which other"));
  }
}

TEST(OwnDaemonTest, LooksWhereFerryrunIsInstalledAndBuilt) {
  EXPECT_THAT(PlacesOfFerryrun("/usr/lib/x86_64-linux-gnu"),
              testing::Contains("/usr/lib/x86_64-linux-gnu/../../bin/ferryrun"));
  EXPECT_THAT(PlacesOfFerryrun("/opt/ferry/lib"),
              testing::Contains("/opt/ferry/lib/../bin/ferryrun"));
  EXPECT_THAT(PlacesOfFerryrun(""), testing::IsEmpty());
}

// With a ferryrun of its own, found by PATH: this test's libraries lie elsewhere.
class OwnDaemonHelperTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    setenv("PATH", (folder_ + ":/usr/bin:/bin").c_str(), 1);
  }
  void Play(const std::string& script) {
    std::ofstream(folder_ + "/ferryrun") << "#!/bin/sh\n" << script;
    std::filesystem::permissions(folder_ + "/ferryrun", std::filesystem::perms::owner_all);
  }

  const std::string folder_ = testing::TempDir() + "helper";
};

TEST_F(OwnDaemonHelperTest, LivesAsLongAsItsOwner) {
  const std::string end = folder_ + "/ended";
  Play("test \"$*\" = --daemon || exit 1\necho serves /run/own\ncat\ntouch " + end + "\n");
  {
    const auto daemon = OwnDaemon::Start();
    ASSERT_TRUE(daemon.ok()) << daemon.status().message();
    EXPECT_EQ((*daemon)->run_directory(), "/run/own");
    EXPECT_FALSE(std::filesystem::exists(end));
  }
  EXPECT_TRUE(std::filesystem::exists(end));
}

TEST_F(OwnDaemonHelperTest, SaysWhyThereIsNone) {
  Play("echo cannot open the fabric\necho it is gone\nexit 1\n");
  const Status status = OwnDaemon::Start().status();
  EXPECT_EQ(status.code(), ErrorCode::kNoDaemon);
  EXPECT_THAT(status.message(), HasSubstr("none could be started for this job: cannot open the "
                                          "fabric\nit is gone"));
  Play("exit 1\n");
  EXPECT_THAT(OwnDaemon::Start().status().message(), HasSubstr("ferryrun said nothing"));
}

TEST_F(OwnDaemonHelperTest, SaysThatThereIsNoFerryrun) {
  std::filesystem::remove(folder_ + "/ferryrun");
  setenv("PATH", folder_.c_str(), 1);
  const Status status = OwnDaemon::Start().status();
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_THAT(status.message(),
              HasSubstr("no ferryd serves this node, and ferryrun, which would start one for this "
                        "job, cannot be run: No such file"));
}

}  // namespace
}  // namespace ferry::client
