// The hosts and ranks that batch systems give to a job: what they write, and what is made of it.
#include "tools/ferryrun/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "config/options.h"
#include "tools/ferryrun/node_list.h"
#include "tools/ferryrun/node_plan.h"

namespace ferry::tools {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StrEq;

// ---- Lists in short

std::vector<std::string> Names(std::string_view text) {
  const auto names = ExpandNodeList(text);
  EXPECT_TRUE(names.ok()) << names.status().message();
  return names.ok() ? *names : std::vector<std::string>();
}

TEST(NodeListTest, ReadsEveryFormOfBrackets) {
  EXPECT_THAT(Names("login"), ElementsAre("login"));
  EXPECT_THAT(Names("a,b-1,c.site.org"), ElementsAre("a", "b-1", "c.site.org"));
  EXPECT_THAT(Names("n[1-3,07,9-10]"), ElementsAre("n1", "n2", "n3", "n07", "n9", "n10"));
  EXPECT_THAT(Names("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(Names("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
  EXPECT_THAT(Names("n[5]"), ElementsAre("n5"));
  EXPECT_THAT(Names("r[1-2]n[0-1]-ib,z"),
              ElementsAre("r1n0-ib", "r1n1-ib", "r2n0-ib", "r2n1-ib", "z"));
  EXPECT_THAT(Names("foo[2-4,12],bar,foobar[3-4]"),
              ElementsAre("foo2", "foo3", "foo4", "foo12", "bar", "foobar3", "foobar4"));
  EXPECT_THAT(Names("[1-2]"), ElementsAre("1", "2"));
}

TEST(NodeListTest, TenThousandHostsAreNoMatter) {
  const std::vector<std::string> names = Names("nid[000001-010000]");
  ASSERT_THAT(names, SizeIs(10000));
  EXPECT_EQ(names.front(), "nid000001");
  EXPECT_EQ(names.back(), "nid010000");
}

TEST(NodeListTest, RefusesOthersInWords) {
  struct Case {
    const char* text;
    const char* words;
  };
  for (const Case& one : {
           Case{"", "nothing between two commas"},
           Case{"a,,b", "nothing between two commas"},
           Case{"a,", "nothing between two commas"},
           Case{"n[", "'[' without ']'"},
           Case{"n[1-3", "'[' without ']'"},
           Case{"n1-3]", "']' without '['"},
           Case{"n[1-[2-3]]", "a bracket is opened in brackets"},
           Case{"n[]", "nothing between two commas"},
           Case{"n[1-3,]", "nothing between two commas"},
           Case{"n[a-b]", "'a' is no number"},
           Case{"n[-3]", "'' is no number"},
           Case{"n[3-]", "'' is no number"},
           Case{"n[1--3]", "'-3' is no number"},
           Case{"n[0x1-2]", "'0x1' is no number"},
           Case{"bgl[000x133]", "'000x133' is no number"},
           Case{"n[9-1]", "'9-1' runs backwards"},
           Case{"n[0-2147483647]", "it names more than 100000"},
           Case{"n[0-99999999999999999]", "it names more than 100000"},
           Case{"n[1-99999999999999999999]", "is no number"},
           Case{"n[0-999]m[0-999]", "it names more than 100000"},
           Case{"n[0-9][0-9][0-9][0-9][0-9][0-9]", "it names more than 100000"},
           Case{"n[1-60000],m[1-60000]", "it names more than 100000"},
       }) {
    const auto names = ExpandNodeList(one.text);
    ASSERT_FALSE(names.ok()) << one.text;
    EXPECT_EQ(names.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(names.status().message(), HasSubstr(one.words)) << one.text;
  }
}

// Each of these is long, or promises much, and must cost neither time nor memory.
TEST(NodeListTest, RefusesMuchAtOnce) {
  EXPECT_THAT(ExpandNodeList(std::string(100'000, 'n') + "[1-100000]").status().message(),
              AllOf(HasSubstr("is too long"), HasSubstr("nnn...'")));
  EXPECT_THAT(ExpandNodeList("n[1-90000]" + std::string(100'000, 'x')).status().message(),
              HasSubstr("names of more than 255 bytes"));
  std::string brackets = "n";
  for (int i = 0; i < 30'000; ++i) {
    brackets += "[1]";
  }
  EXPECT_THAT(ExpandNodeList(brackets).status().message(),
              HasSubstr("names of more than 255 bytes"));
  std::string ones = "n[1";
  for (int i = 0; i < 200'000; ++i) {
    ones += ",1";
  }
  EXPECT_THAT(ExpandNodeList(ones + "]").status().message(),
              HasSubstr("it names more than 100000"));
}

TEST(NodeListTest, ShortListsAreReadBack) {
  struct Case {
    std::vector<std::string> names;
    const char* list;
  };
  for (const Case& one : {
           Case{{"login"}, "login"},
           Case{{"n1"}, "n1"},
           Case{{"n1", "n2", "n3", "n7"}, "n[1-3,7]"},
           Case{{"n08", "n09", "n10"}, "n[08-10]"},
           Case{{"n8", "n9", "n10", "n11"}, "n[8-9,10-11]"},
           Case{{"n2", "n1", "m1", "m2", "a", "b"}, "n[2,1],m[1-2],a,b"},
           Case{{"a", "n1", "a2", "a3"}, "a,n1,a[2-3]"},
           Case{{"1", "2"}, "[1-2]"},
           Case{{"r1n0-ib", "r1n1-ib"}, "r1n0-ib,r1n1-ib"},
           Case{{"n1234567890123456789", "n1234567890123456790"},
                "n1234567890123456789,n1234567890123456790"},
           Case{{"n00", "n0", "n1"}, "n[00,0-1]"},
           Case{{"10.0.0.9", "10.0.0.10"}, "10.0.0.[9,10]"},
       }) {
    EXPECT_EQ(ShortNodeList(one.names), one.list);
    EXPECT_EQ(Names(one.list), one.names);
  }
  EXPECT_EQ(ShortNodeList(Names("nid[000001-010000]")), "nid[000001-010000]");
}

TEST(CountsTest, ReadsRepeatedNumbers) {
  EXPECT_THAT(*ExpandCounts("2(x3),1", 4), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(*ExpandCounts("5", 1), ElementsAre(5));
  EXPECT_THAT(*ExpandCounts("2(x1),5,100(x2)", 4), ElementsAre(2, 5, 100, 100));
}

TEST(CountsTest, RefusesOthersInWords) {
  struct Case {
    const char* text;
    const char* words;
  };
  for (const Case& one : {
           Case{"", "nothing between two commas"},
           Case{"-1(x2)", "'-1' is no number"},
           Case{"0(x2)", "'0(x2)' counts nothing"},
           Case{"2(x0),1,1", "'2(x0)' counts nothing"},
           Case{"2(x-2)", "'-2' is no number"},
           Case{"2(x2", "'2(x2' has no ')'"},
           Case{"2(3)", "'2(3)' is no number"},
           Case{"two", "'two' is no number"},
           Case{"1,1,1", "numbers for more than 2 nodes"},
           Case{"1(x4294967296)", "numbers for more than 2 nodes"},
           Case{"1(x999999999999999999)", "numbers for more than 2 nodes"},
           Case{"1", "numbers for 1 nodes only, of 2"},
       }) {
    const auto counts = ExpandCounts(one.text, 2);
    ASSERT_FALSE(counts.ok()) << one.text;
    EXPECT_THAT(counts.status().message(), HasSubstr(one.words)) << one.text;
  }
}

// ---- What batch systems say

using Hosts = std::vector<Host>;

class AllocationTest : public testing::Test {
 protected:
  AllocationTest() {
    std::string path = testing::TempDir() + "allocation-XXXXXX";
    folder_ = mkdtemp(path.data());
  }
  ~AllocationTest() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::string& text) const {
    std::ofstream(folder_ + "/file") << text;
    return folder_ + "/file";
  }
  static StatusOr<std::optional<Allocation>> Find(const std::vector<std::string>& variables,
                                                  const std::string& wanted = "auto",
                                                  bool has_terminal = false) {
    std::vector<const char*> environment;
    for (const std::string& variable : variables) {
      environment.push_back(variable.c_str());
    }
    environment.push_back(nullptr);
    return FindAllocation(environment.data(), wanted, has_terminal);
  }
  static Allocation Found(const std::vector<std::string>& variables,
                          const std::string& wanted = "auto", bool has_terminal = false) {
    const auto found = Find(variables, wanted, has_terminal);
    EXPECT_TRUE(found.ok()) << found.status().message();
    EXPECT_TRUE(found.ok() && found->has_value());
    return found.ok() && found->has_value() ? **found : Allocation{};
  }
  static std::string Refused(const std::vector<std::string>& variables) {
    const auto found = Find(variables);
    EXPECT_FALSE(found.ok());
    EXPECT_THAT(found.status().message(), HasSubstr("--allocation none"));
    return found.status().message();
  }

  std::string folder_;
};

const std::vector<std::string> kSlurm = {"SLURM_JOB_ID=1",           "SLURM_JOB_NODELIST=n[1-2]",
                                         "SLURM_TASKS_PER_NODE=3,2", "SLURM_NTASKS=5",
                                         "SLURM_PROCID=0",           "SLURMD_NODENAME=n1"};

std::vector<std::string> With(std::vector<std::string> variables,
                              const std::vector<std::string>& more) {
  variables.insert(variables.end(), more.begin(), more.end());
  return variables;
}

TEST_F(AllocationTest, WithoutABatchSystemThereIsNone) {
  EXPECT_FALSE(Find({"PATH=/bin", "SLURM_CONF=/etc/slurm.conf"})->has_value());
}

TEST_F(AllocationTest, OfABatchScriptOfSlurm) {
  const Allocation found = Found(kSlurm);
  EXPECT_EQ(found.system, "Slurm");
  EXPECT_EQ(found.hosts, (Hosts{{"n1", 3}, {"n2", 2}}));
  EXPECT_EQ(found.ranks, 5U);
  EXPECT_EQ(found.name_of_node, "n1");
  EXPECT_THAT(found.launchers, ElementsAre(StrEq("srun")));
  EXPECT_EQ(Describe(found), "2 hosts of Slurm's allocation (SLURM_JOB_NODELIST): n1:3, n2:2");
}

TEST_F(AllocationTest, SlurmMayLeaveCountsOut) {
  const Allocation found = Found({"SLURM_JOB_NODELIST=n[1-2]"});
  EXPECT_EQ(found.hosts, (Hosts{{"n1", 1}, {"n2", 1}}));
  EXPECT_EQ(found.ranks, std::nullopt);
}

// The variables of a step that sbatch inherited, of the step that holds salloc's shell, and of
// srun --pty: only there they count.
TEST_F(AllocationTest, StepsOfSlurmCountWhereSomebodyTypes) {
  const std::vector<std::string> step = {"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=2",
                                         "SLURM_STEP_NODELIST=n9", "SLURM_PTY_PORT=4711",
                                         "SLURM_STEP_TASKS_PER_NODE=2"};
  EXPECT_EQ(Found(With(kSlurm, step)).hosts, (Hosts{{"n1", 3}, {"n2", 2}}));
  EXPECT_EQ(Found(With(kSlurm, {"SLURM_STEP_ID=4294967290", "SLURM_STEP_NUM_TASKS=1",
                                "SLURM_STEP_NODELIST=n1", "SLURM_PTY_PORT=4711",
                                "SLURM_STEP_TASKS_PER_NODE=1"}),
                  "auto", /*has_terminal=*/true)
                .hosts,
            (Hosts{{"n1", 3}, {"n2", 2}}));
  const std::vector<std::string> shell = With(
      step,
      {"SLURM_JOB_NODELIST=n[8-9]", "SLURM_TASKS_PER_NODE=2", "SLURM_NTASKS=2", "SLURM_PROCID=0"});
  EXPECT_EQ(Found(shell, "auto", /*has_terminal=*/true).hosts, (Hosts{{"n9", 2}}));
  EXPECT_FALSE(Find(shell, "auto", /*has_terminal=*/false)->has_value());
}

// Each such ferryrun is one of several, and so are its hosts.
TEST_F(AllocationTest, AFerryrunThatALauncherStartedStaysOnItsHost) {
  for (const std::vector<std::string>& task : std::vector<std::vector<std::string>>{
           {"PMI_RANK=0", "PMI_SIZE=2"},
           {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1"},
           {"PALS_RANKID=0"},
           {"FERRY_JOB_ID=0123"},
       }) {
    EXPECT_FALSE(Find(With(kSlurm, task))->has_value()) << task[0];
  }
}

TEST_F(AllocationTest, SlurmsMistakesAreNamed) {
  EXPECT_THAT(Refused({"SLURM_JOB_NODELIST=n[1-"}),
              HasSubstr("SLURM_JOB_NODELIST: 'n[1-': '[' without ']'"));
  EXPECT_THAT(Refused({"SLURM_JOB_NODELIST=n[0-2147483647]"}), HasSubstr("more than 100000"));
  EXPECT_THAT(Refused({"SLURM_JOB_NODELIST="}), HasSubstr("SLURM_JOB_NODELIST: ''"));
  EXPECT_THAT(Refused({"SLURM_JOB_NODELIST=(null)"}), HasSubstr("'(null)' names no host"));
  EXPECT_THAT(Refused({"SLURM_JOB_NODELIST=-oProxyCommand=x"}), HasSubstr("names no host"));
  EXPECT_THAT(Refused({"SLURM_JOB_NODELIST=n;reboot"}), HasSubstr("names no host"));
  EXPECT_THAT(Refused({"SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=-1(x2)"}),
              HasSubstr("SLURM_TASKS_PER_NODE: '-1(x2)': '-1' is no number"));
  EXPECT_THAT(Refused({"SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=4"}),
              HasSubstr("numbers for 1 nodes only, of 2"));
  EXPECT_THAT(Refused({"SLURM_JOB_NODELIST=n1", "SLURM_TASKS_PER_NODE=4000000000"}),
              HasSubstr("'n1' has no number of slots from 1 to 999999999"));
  for (const char* tasks : {"0", "-4", "many", ""}) {
    EXPECT_THAT(Refused({"SLURM_JOB_NODELIST=n1", std::string("SLURM_NTASKS=") + tasks}),
                HasSubstr("SLURM_NTASKS: '" + std::string(tasks) + "' is no number of tasks"));
  }
}

TEST_F(AllocationTest, OfPbsALineForEachSlot) {
  const Allocation found = Found({"PBS_NODEFILE=" + File("b.site\na.site\nb.site\n\nb.site\n")});
  EXPECT_EQ(found.system, "PBS");
  EXPECT_EQ(found.hosts, (Hosts{{"b.site", 3}, {"a.site", 1}}));
  EXPECT_THAT(found.launchers, ElementsAre(StrEq("pbs_tmrsh"), StrEq("pbsdsh")));
}

TEST_F(AllocationTest, OfLsfTheFileOrThePairs) {
  EXPECT_EQ(Found({"LSB_MCPU_HOSTS=a 4 b 2 "}).hosts, (Hosts{{"a", 4}, {"b", 2}}));
  EXPECT_THAT(Found({"LSB_MCPU_HOSTS=a 4"}).launchers, ElementsAre(StrEq("blaunch")));
  EXPECT_EQ(Found({"LSB_MCPU_HOSTS=a 4", "LSB_DJOB_HOSTFILE=" + File("a\nc\nc\n")}).hosts,
            (Hosts{{"a", 1}, {"c", 2}}));
}

TEST_F(AllocationTest, OfGridEngineALineForEachQueue) {
  const Allocation found = Found({"PE_HOSTFILE=" + File("a.site 2 all.q@a.site UNDEFINED\n"
                                                        "b.site 4 all.q@b.site 0,0:0,1\n"
                                                        "a.site 1 long.q@a.site <NULL>\n")});
  EXPECT_EQ(found.hosts, (Hosts{{"a.site", 3}, {"b.site", 4}}));
  EXPECT_THAT(found.launchers, ElementsAre(StrEq("qrsh")));
}

TEST_F(AllocationTest, MistakesInFilesAreNamed) {
  EXPECT_THAT(Refused({"PBS_NODEFILE=/no/such"}),
              HasSubstr("PBS_NODEFILE: cannot read '/no/such': No such file"));
  EXPECT_THAT(Refused({"PE_HOSTFILE=/dev/zero"}),
              HasSubstr("PE_HOSTFILE: '/dev/zero' is no file of 16777216 bytes at most"));
  EXPECT_THAT(Refused({"LSB_DJOB_HOSTFILE=" + folder_}), HasSubstr("is no file"));
  EXPECT_THAT(Refused({"PBS_NODEFILE=" + File("")}), HasSubstr("it names no host"));
  EXPECT_THAT(Refused({"PBS_NODEFILE=" + File("a 4\n")}),
              HasSubstr("'4' follows the name of a host"));
  EXPECT_THAT(Refused({"PBS_NODEFILE=" + File("$(reboot)\n")}),
              HasSubstr("'$(reboot)' names no host"));
  EXPECT_THAT(Refused({"PE_HOSTFILE=" + File("a\n")}), HasSubstr("'a' has no number of slots"));
  EXPECT_THAT(Refused({"PE_HOSTFILE=" + File("a -2 q x\n")}),
              HasSubstr("'a' has no number of slots"));
  EXPECT_THAT(Refused({"LSB_MCPU_HOSTS=a 4 b"}), HasSubstr("'b' has no number of slots"));
  EXPECT_THAT(Refused({"LSB_MCPU_HOSTS="}), HasSubstr("it names no host"));
}

TEST_F(AllocationTest, AFileOfMoreHostsThanThereAreIsRefused) {
  std::string lines;
  for (size_t i = 0; i <= kMostNodes; ++i) {
    lines += std::to_string(i) + "\n";
  }
  EXPECT_THAT(Refused({"PBS_NODEFILE=" + File(lines)}), HasSubstr("more than 100000 hosts"));
}

TEST_F(AllocationTest, OneSystemCanBeAskedForOrNone) {
  const std::vector<std::string> both = With(kSlurm, {"LSB_MCPU_HOSTS=z 1"});
  EXPECT_EQ(Found(both).system, "Slurm");
  EXPECT_EQ(Found(both, "lsf").system, "LSF");
  EXPECT_FALSE(Find(both, "none")->has_value());
  EXPECT_THAT(Find(both, "pbs").status().message(),
              HasSubstr("--allocation pbs: ferryrun runs in none of these, for there is no "
                        "PBS_NODEFILE"));
}

// As `flux kvs get resource.R` prints it.
constexpr char kResources[] =
    R"({"version": 1, "execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0-3"}},)"
    R"( {"rank": "2", "children": {"core": "0,7", "gpu": "0"}}], "starttime": 0.0,)"
    R"( "expiration": 0.0, "nodelist": ["tuo[8-9]", "login"]}})";

TEST_F(AllocationTest, OfFluxTheCoresOfEachNode) {
  const auto hosts = ReadFluxResources(kResources);
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_EQ(*hosts, (Hosts{{"tuo8", 4}, {"tuo9", 4}, {"login", 2}}));
}

TEST_F(AllocationTest, RefusesWhatIsNoResourceSetOfFlux) {
  for (const char* text :
       {"", "{", "[]", "null", "{\"version\": 1}", "{\"version\": 2, \"execution\": {}}",
        R"({"version": 1, "execution": {"R_lite": 7, "nodelist": []}})",
        R"({"version": 1, "execution": {"R_lite": [{}], "nodelist": ["a"]}})"}) {
    EXPECT_THAT(ReadFluxResources(text).status().message(),
                HasSubstr("is no resource set of version 1"))
        << text;
  }
  const auto with = [](const std::string& ranks, const std::string& nodes) {
    return ReadFluxResources(R"({"version": 1, "execution": {"R_lite": [{"rank": ")" + ranks +
                             R"(", "children": {"core": "0-1"}}], "nodelist": [)" + nodes + "]}}")
        .status()
        .message();
  };
  EXPECT_THAT(with("0-2", R"("a")"), HasSubstr("resources of 3 nodes and names of 1"));
  EXPECT_THAT(with("0-4294967295", R"("a")"), HasSubstr("it names more than 100000"));
  EXPECT_THAT(with("0", R"("a[")"), HasSubstr("'[' without ']'"));
  EXPECT_THAT(with("0", "7"), HasSubstr("nothing between two commas"));
  EXPECT_THAT(with("0", R"("-x")"), HasSubstr("'-x' names no host"));
  EXPECT_THAT(ReadFluxResources(std::string(1'000'000, '[')).status().message(),
              HasSubstr("is no resource set"));
}

// ---- What becomes of a command line

bool IsNobody(const std::string&) { return false; }

Arguments Job(std::optional<uint64_t> ranks, std::vector<Host> hosts = {}) {
  Arguments arguments;
  arguments.parts.push_back({.ranks = ranks,
                             .program = {"x"},
                             .variables = {},
                             .directory = "",
                             .hosts = std::move(hosts)});
  return arguments;
}

Allocation Of(std::vector<Host> hosts) {
  return {.system = "PBS", .source = "PBS_NODEFILE", .hosts = std::move(hosts)};
}

std::vector<std::string> HostsOfRanks(const Allocation& allocation, Arguments arguments,
                                      const std::optional<std::string>& here = std::nullopt) {
  const Status taken = TakeAllocation(allocation, here, IsNobody, &arguments);
  EXPECT_TRUE(taken.ok()) << taken.message();
  const auto layout = PlanNodes(arguments, config::Options(),
                                [&here](const std::string& name) { return name == here; });
  EXPECT_TRUE(layout.ok()) << layout.status().message();
  std::vector<std::string> hosts;
  for (const uint32_t node : layout->node_of_rank) {
    hosts.push_back(layout->nodes[node].host + (layout->nodes[node].remote ? "" : " (here)"));
  }
  return hosts;
}

TEST(TakeAllocationTest, ThereAreAsManyRanksAsSlots) {
  const Allocation two = Of({{"a", 2}, {"b", 1}});
  EXPECT_THAT(HostsOfRanks(two, Job(std::nullopt), "b"), ElementsAre("a", "a", "b (here)"));
  EXPECT_THAT(HostsOfRanks(two, Job(2)), ElementsAre("a", "a"));
  EXPECT_THAT(HostsOfRanks(two, Job(4)), ElementsAre("a", "a", "b", "a"));
  Allocation fewer = two;
  fewer.ranks = 2;
  EXPECT_THAT(HostsOfRanks(fewer, Job(std::nullopt)), ElementsAre("a", "a"));
  Arguments each = Job(std::nullopt);
  each.mapping = {.by = Mapping::By::kCount, .count = 2};
  EXPECT_THAT(HostsOfRanks(fewer, each), ElementsAre("a", "a", "b", "b"));
}

TEST(TakeAllocationTest, HostsOfAProgramAreTheAllocations) {
  Allocation three = Of({{"a.site", 2}, {"b.site", 3}, {"c", 1}});
  three.ranks = 6;
  EXPECT_THAT(HostsOfRanks(three, Job(std::nullopt, {{"b", 1}, {"b.site", 1}})),
              ElementsAre("b.site", "b.site", "b.site"));
  EXPECT_THAT(HostsOfRanks(three, Job(2, {{"c", 1}, {"a", 1}})), ElementsAre("c", "a.site"));
}

TEST(TakeAllocationTest, ThisHostHasAllItsNames) {
  const auto is_this = [](const std::string& name) { return name == "localhost"; };
  Arguments arguments = Job(1, {{"localhost", 1}});
  ASSERT_TRUE(TakeAllocation(Of({{"a", 1}, {"b", 1}}), "b", is_this, &arguments).ok());
  EXPECT_EQ(arguments.parts[0].hosts, (Hosts{{"b", 1}}));
  EXPECT_FALSE(TakeAllocation(Of({{"a", 1}}), std::nullopt, is_this, &arguments).ok());
}

TEST(TakeAllocationTest, AHostBeyondTheAllocationIsRefused) {
  for (const char* name : {"c", "a.elsewhere", "localhost"}) {
    Arguments arguments = Job(2, {{name, 1}});
    const Status taken =
        TakeAllocation(Of({{"a.site", 2}, {"b", 1}}), std::nullopt, IsNobody, &arguments);
    EXPECT_EQ(taken.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(taken.message(), "-host " + std::string(name) +
                                   ": 2 hosts of PBS's allocation (PBS_NODEFILE): a.site:2, b:1; "
                                   "it is none of them (--allocation none takes other hosts)");
  }
}

TEST(TakeAllocationTest, SeveralProgramsHaveARankEachUnlessTheySayMore) {
  Arguments arguments = Job(std::nullopt);
  arguments.parts.push_back(arguments.parts[0]);
  EXPECT_THAT(HostsOfRanks(Of({{"a", 8}}), arguments), ElementsAre("a", "a"));
}

TEST(TakeAllocationTest, ThisHostIsFoundByItsNameOrAnAddress) {
  Allocation allocation = Of({{"a.site", 1}, {"b.site", 1}});
  EXPECT_EQ(NameOfThisHost(allocation, "b", IsNobody), "b.site");
  EXPECT_EQ(NameOfThisHost(allocation, "b.site", IsNobody), "b.site");
  EXPECT_EQ(NameOfThisHost(allocation, "b.elsewhere", IsNobody), std::nullopt);
  const auto is_a = [](const std::string& name) { return name == "a.site"; };
  EXPECT_EQ(NameOfThisHost(allocation, "x", is_a), std::nullopt);  // it asks no resolver
  allocation.has_aliases = true;
  EXPECT_EQ(NameOfThisHost(allocation, "x", is_a), "a.site");
  allocation.name_of_node = "b.site";
  EXPECT_EQ(NameOfThisHost(allocation, "a.site", IsNobody), "b.site");
  EXPECT_EQ(NameOfThisHost(Of({{"10.0.0.1", 1}}), "10.0.0.2", IsNobody), std::nullopt);
}

}  // namespace
}  // namespace ferry::tools
