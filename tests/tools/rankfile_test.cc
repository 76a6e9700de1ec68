// Rankfiles: what their lines say, which of them make sense, and what becomes of them.
#include "tools/ferryrun/rankfile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include "config/options.h"
#include "tools/ferryrun/arguments.h"
#include "tools/ferryrun/cpu_places.h"
#include "tools/ferryrun/node_plan.h"

namespace ferry::tools {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using topology::CpuSet;

// Two sockets of two cores of two threads, numbered as BIOSes often do.
topology::Machine TwoSockets() {
  topology::Machine machine;
  machine.cores = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  machine.sockets = {{0, 1, 4, 5}, {2, 3, 6, 7}};
  return machine;
}
constexpr std::initializer_list<uint32_t> kAll = {0, 1, 2, 3, 4, 5, 6, 7};

TEST(RankFileTest, ReadsEveryFormOfALine) {
  const auto lines = ParseRankFile(
      "# my ranks\n"
      "rank 1=beta slot=0:0,1;1:*\n"
      "\n"
      "rank 0=alpha.site.org slot=0:0-2   # the first\r\n"
      "rank  2 = beta  slot=4-6,8\n"
      "rank 3=+n1\n"
      "rank 4=10.0.0.1 slot=S1:C0",
      "file");
  ASSERT_TRUE(lines.ok()) << lines.status().message();
  EXPECT_THAT(*lines, ElementsAre(RankfileLine{"alpha.site.org", "0:0-2"},
                                  RankfileLine{"beta", "0:0,1;1:*"}, RankfileLine{"beta", "4-6,8"},
                                  RankfileLine{"+n1", ""}, RankfileLine{"10.0.0.1", "S1:C0"}));
}

TEST(RankFileTest, RefusesOtherLinesByTheirNumber) {
  struct Case {
    const char* text;
    const char* words;
  };
  for (const Case& one : {
           Case{"", "file names no rank"},
           Case{"# nothing\n", "file names no rank"},
           Case{"rank 0\n", "file:1: 'rank 0' is no line such as 'rank 0=host slot=0:0-2'"},
           Case{"rank 0=\n", "file:1: 'rank 0=' is no line such as"},
           Case{"\nslot 0=a\n", "file:2: 'slot 0=a' is no line such as"},
           Case{"rank 0=a b\n", "is no line such as"},
           Case{"rank 0=a slot=0 slot=1\n", "is no line such as"},
           Case{"rank x=a\n", "file:1: 'x' is no rank"},
           Case{"rank -1=a\n", "file:1: '-1' is no rank"},
           Case{"rank 4294967295=a\n", "is no rank"},
           Case{"rank 0=-a\n", "'-a' names no host"},
           Case{"rank 0=a slot=\n", "slot=: '' is no number, no range of numbers, and not *"},
           Case{"rank 0=a slot=x\n", "slot=x: 'x' is no number"},
           Case{"rank 0=a slot=2-1\n", "'2-1' is no number"},
           Case{"rank 0=a slot=0:\n", "slot=0:: '' is no number"},
           Case{"rank 0=a slot=0:0:1\n", "'0:1' is no number"},
           Case{"rank 0=a slot=1,,2\n", "'' is no number"},
           Case{"rank 0=a slot=1;\n", "'' is no number"},
           Case{"rank 0=a slot=99999999999999999999\n", "is no number"},
           Case{"rank 0=a slot=0-9000\n", "'0-9000' is no number"},
           Case{"rank 0=a\nrank 0=b\n", "file:2: rank 0 has two lines"},
           Case{"rank 0=a\nrank 2=b\n", "file: rank 1 has no line"},
           Case{"rank 1=a\n", "file: rank 0 has no line"},
       }) {
    const auto lines = ParseRankFile(one.text, "file");
    ASSERT_FALSE(lines.ok()) << one.text;
    EXPECT_THAT(lines.status().message(), HasSubstr(one.words)) << one.text;
  }
}

TEST(RankFileTest, AFileThatIsNotThereIsNamed) {
  EXPECT_THAT(ReadRankFile("/no/such/file").status().message(),
              HasSubstr("cannot read the rankfile /no/such/file"));
}

// ---- CPUs

CpuSet Cpus(std::string_view slot, bool counts_threads = false) {
  const auto cpus = CpusOfSlot(TwoSockets(), kAll, slot, counts_threads);
  EXPECT_TRUE(cpus.ok()) << cpus.status().message();
  return cpus.ok() ? *cpus : CpuSet();
}

TEST(RankSlotTest, NamesCoresOfTheNodeOrOfSockets) {
  EXPECT_EQ(Cpus("0"), (CpuSet{0, 4}));
  EXPECT_EQ(Cpus("1-2"), (CpuSet{1, 2, 5, 6}));
  EXPECT_EQ(Cpus("0,3"), (CpuSet{0, 3, 4, 7}));
  EXPECT_EQ(Cpus("*"), CpuSet(kAll));
  EXPECT_EQ(Cpus("1:0"), (CpuSet{2, 6}));
  EXPECT_EQ(Cpus("1:*"), (CpuSet{2, 3, 6, 7}));
  EXPECT_EQ(Cpus("0:1;1:1"), (CpuSet{1, 3, 5, 7}));
  EXPECT_EQ(Cpus("0:1,1:1"), (CpuSet{1, 3, 5, 7}));
  EXPECT_EQ(Cpus("0-1:2"), (CpuSet{2, 6}));
  EXPECT_EQ(Cpus("s1:c0"), (CpuSet{2, 6}));
}

TEST(RankSlotTest, NamesHardwareThreadsWhereTheseCount) {
  EXPECT_EQ(Cpus("0", true), (CpuSet{0}));
  EXPECT_EQ(Cpus("1", true), (CpuSet{4}));
  EXPECT_EQ(Cpus("1:1,2", true), (CpuSet{3, 6}));
}

TEST(RankSlotTest, RefusesWhatTheNodeDoesNotHave) {
  const auto why = [](std::string_view slot, const CpuSet& allowed = kAll) {
    return CpusOfSlot(TwoSockets(), allowed, slot, false).status().message();
  };
  EXPECT_THAT(why("4"), HasSubstr("the rankfile's slot=4: there are 4 cores there, from 0 on"));
  EXPECT_THAT(why("0:2"), HasSubstr("there are 2 cores there"));
  EXPECT_THAT(why("2:0"), HasSubstr("there are 2 sockets there"));
  EXPECT_THAT(why("0", {1, 2}), HasSubstr("CPUs 0,4 are none of those on which ferryrun may run, "
                                          "1-2"));
  EXPECT_EQ(*CpusOfSlot(TwoSockets(), {4, 5}, "0", false), (CpuSet{4}));
}

TEST(RankSlotTest, RanksWithoutASlotAreNotBound) {
  const BindingRules rules{.threads = {0, 0, 0}, .slots = {"1:0", "", "1:0-1"}};
  const auto places = BindRanks(TwoSockets(), {kAll, {3}, 0}, rules);
  ASSERT_TRUE(places.ok()) << places.status().message();
  EXPECT_THAT(places->cpus, ElementsAre(CpuSet{2, 6}, CpuSet{}, CpuSet{2, 3, 6, 7}));
  EXPECT_EQ(places->claimed, (CpuSet{2, 6, 7}));
  EXPECT_EQ(places->why_not, "the rankfile gives it no slot");
}

// ---- Command lines and nodes

class RankFileJobTest : public testing::Test {
 protected:
  // ferryrun -rankfile FILE, with these words after it.
  std::variant<Arguments, int> Parse(const std::string& lines, std::vector<const char*> words) {
    const std::string path = testing::TempDir() + "ranks";
    std::ofstream(path) << lines;
    std::vector<const char*> all = {"ferryrun", "-rankfile", path.c_str()};
    all.insert(all.end(), words.begin(), words.end());
    const char* const none[] = {nullptr};
    testing::internal::CaptureStderr();
    auto parsed = ParseArguments(static_cast<int>(all.size()), all.data(), none);
    errors_ = testing::internal::GetCapturedStderr();
    return parsed;
  }
  // The hosts of the ranks.
  std::vector<std::string> Hosts(const std::string& lines, const std::vector<const char*>& words) {
    const auto parsed = Parse(lines, words);
    if (!std::holds_alternative<Arguments>(parsed)) {
      return {errors_};
    }
    const auto layout = PlanNodes(std::get<Arguments>(parsed), config::Options(),
                                  [](const std::string& name) { return name == "here"; });
    if (!layout.ok()) {
      return {layout.status().message()};
    }
    std::vector<std::string> hosts;
    for (const uint32_t node : layout->node_of_rank) {
      hosts.push_back(layout->nodes[node].host);
    }
    return hosts;
  }

  std::string errors_;
};

constexpr char kThree[] = "rank 0=b\nrank 1=here slot=0\nrank 2=b slot=1\n";

TEST_F(RankFileJobTest, RanksRunWhereItSays) {
  EXPECT_THAT(Hosts(kThree, {"p"}), ElementsAre("b", "here", "b"));
  EXPECT_THAT(Hosts(kThree, {"-n", "2", "p"}), ElementsAre("b", "here"));
  EXPECT_THAT(Hosts(kThree, {"-hosts", "a,here:4,b", "p"}), ElementsAre("b", "here", "b"));
  EXPECT_THAT(Hosts(kThree, {"-n", "1", "p", ":", "-n", "2", "q"}), ElementsAre("b", "here", "b"));
  EXPECT_THAT(Hosts(kThree, {"--use-hwthread-cpus", "p"}), ElementsAre("b", "here", "b"));
}

TEST_F(RankFileJobTest, HostsAreTheJobsWhateverTheirDomain) {
  EXPECT_THAT(Hosts("rank 0=b\nrank 1=+n0\n", {"-hosts", "a.site.org,b.site.org", "p"}),
              ElementsAre("b.site.org", "a.site.org"));
  EXPECT_THAT(Hosts("rank 0=c\n", {"-hosts", "a,b", "p"}),
              ElementsAre("the rankfile names host c, which is none of the job's 2 hosts"));
  EXPECT_THAT(Hosts("rank 0=+n2\n", {"-hosts", "a,b", "p"}),
              ElementsAre("the rankfile names host +n2, and the job has 2 hosts, from +n0 on"));
  EXPECT_THAT(Hosts("rank 0=+n0\n", {"p"}), ElementsAre(HasSubstr("the job has 0 hosts")));
}

TEST_F(RankFileJobTest, OtherWordsAboutPlacesContradictIt) {
  const std::vector<std::vector<const char*>> others = {
      {"--map-by", "node", "p"}, {"--bind-to", "core", "p"}, {"--rank-by", "node", "p"},
      {"-ppn", "2", "p"},        {"--nodes", "2", "p"},      {"-host", "b", "p"}};
  for (const auto& words : others) {
    EXPECT_THAT(Hosts(kThree, words),
                ElementsAre(AllOf(HasSubstr("-rankfile "), HasSubstr(words[0]),
                                  HasSubstr(" both say where ranks run: leave one out"))))
        << words[0];
  }
}

TEST_F(RankFileJobTest, EachRankHasALine) {
  EXPECT_THAT(Hosts(kThree, {"-n", "4", "p"}),
              ElementsAre(HasSubstr("the rankfile has no line for rank 3")));
  EXPECT_THAT(Hosts(kThree, {"-n", "3", "p", ":", "q"}),
              ElementsAre(HasSubstr("has no line for rank 3")));
}

}  // namespace
}  // namespace ferry::tools
