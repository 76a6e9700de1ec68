#include "tools/ferryrun/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string_view>

#include "tools/ferryrun/flag_table.h"

namespace ferry::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kEnvironment[] = {"HERE=now", "EMPTY=", nullptr};

std::variant<Arguments, int> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "ferryrun");
  return ParseArguments(static_cast<int>(words.size()), words.data(), kEnvironment);
}

Arguments Good(const std::vector<const char*>& words) {
  testing::internal::CaptureStderr();
  auto parsed = Parse(words);
  const std::string error = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(std::holds_alternative<Arguments>(parsed)) << error;
  return std::holds_alternative<Arguments>(parsed) ? std::get<Arguments>(parsed) : Arguments();
}

// The message that is printed for a mistake.
std::string Bad(const std::vector<const char*>& words) {
  testing::internal::CaptureStderr();
  const auto parsed = Parse(words);
  const std::string error = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(std::holds_alternative<int>(parsed) && std::get<int>(parsed) == 2) << error;
  return error;
}

TEST(ArgumentsTest, AllNamesOfTheNumberOfRanks) {
  for (const char* name : {"-n", "-np", "-c", "--ranks"}) {
    const Arguments arguments = Good({name, "3", "program", "-n", "7"});
    ASSERT_THAT(arguments.parts, SizeIs(1)) << name;
    EXPECT_EQ(arguments.parts[0].ranks, 3U) << name;
    EXPECT_THAT(arguments.parts[0].program, ElementsAre("program", "-n", "7")) << name;
  }
  EXPECT_EQ(Good({"-n4", "program"}).parts[0].ranks, 4U);
  EXPECT_EQ(Good({"--ranks=4", "program"}).parts[0].ranks, 4U);
  EXPECT_EQ(Good({"program"}).parts[0].ranks, std::nullopt);
}

TEST(ArgumentsTest, SeveralProgramsEachWithTheirOwn) {
  const Arguments arguments =
      Good({"-genv", "ALL", "1", "-n", "1", "-x", "A=x", "first", "-v", ":", "-np", "2", "-wdir",
            "/tmp", "-host", "a", "second", ":", "third"});
  ASSERT_THAT(arguments.parts, SizeIs(3));
  EXPECT_THAT(arguments.variables, ElementsAre("ALL=1"));
  EXPECT_EQ(arguments.parts[0].ranks, 1U);
  EXPECT_THAT(arguments.parts[0].program, ElementsAre("first", "-v"));
  EXPECT_THAT(arguments.parts[0].variables, ElementsAre("A=x"));
  EXPECT_EQ(arguments.parts[0].directory, "");
  EXPECT_EQ(arguments.parts[1].ranks, 2U);
  EXPECT_EQ(arguments.parts[1].directory, "/tmp");
  EXPECT_THAT(arguments.parts[1].hosts, ElementsAre(Host{"a", 1}));
  EXPECT_THAT(arguments.parts[1].variables, IsEmpty());
  EXPECT_THAT(arguments.parts[2].program, ElementsAre("third"));
}

TEST(ArgumentsTest, APartWithoutAProgramIsNamed) {
  EXPECT_THAT(Bad({"-n", "2"}), HasSubstr("no program to run ("));
  EXPECT_THAT(Bad({"-n", "2", ":", "b"}), HasSubstr("no program to run in part 1"));
  EXPECT_THAT(Bad({"a", ":", "-n", "2"}), HasSubstr("no program to run in part 2"));
  EXPECT_THAT(Bad({"a", ":"}), HasSubstr("no program to run after the last \":\""));
  EXPECT_THAT(Bad({"a", ":", ":", "b"}), HasSubstr("no program to run in part 2"));
}

TEST(ArgumentsTest, VariablesAreSetOrPassedOn) {
  const Arguments arguments = Good({"-x", "HERE", "-x", "EMPTY", "-x", "NEW=a=b", "-env", "E", "1",
                                    "-genvlist", "HERE,EMPTY", "-genv", "G", "two words", "p"});
  EXPECT_THAT(arguments.parts[0].variables, ElementsAre("HERE=now", "EMPTY=", "NEW=a=b", "E=1"));
  EXPECT_THAT(arguments.variables, ElementsAre("HERE=now", "EMPTY=", "G=two words"));
}

TEST(ArgumentsTest, AVariableThatIsNotThereIsWarnedOf) {
  testing::internal::CaptureStderr();
  const auto parsed = Parse({"-x", "NOWHERE", "p"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ferryrun: warning: -x NOWHERE: there is no such variable here\n");
  EXPECT_THAT(std::get<Arguments>(parsed).parts[0].variables, IsEmpty());
}

TEST(ArgumentsTest, ItsOwnVariablesAreNotToBeSet) {
  EXPECT_THAT(Bad({"-x", "FERRY_RANK=3", "p"}),
              HasSubstr("-x FERRY_RANK: that variable is ferryrun's own to set"));
  EXPECT_THAT(Bad({"-genv", "FERRY_JOB_SECRET", "x", "p"}), HasSubstr("ferryrun's own"));
  EXPECT_THAT(Good({"-x", "FERRY_SPIN_PAUSES=1", "p"}).parts[0].variables, SizeIs(1));
}

TEST(ArgumentsTest, PlacesAndBindings) {
  const Arguments by_node = Good({"--map-by", "node", "--bind-to", "core", "p"});
  EXPECT_EQ(by_node.mapping.by, Mapping::By::kNode);
  EXPECT_THAT(by_node.options, ElementsAre("--bind_to=core"));
  const Arguments per_node = Good({"-ppn", "2", "-bind-to", "socket", "p"});
  EXPECT_EQ(per_node.mapping.by, Mapping::By::kCount);
  EXPECT_EQ(per_node.mapping.count, 2U);
  EXPECT_TRUE(per_node.mapping.wraps);
  EXPECT_THAT(per_node.options, ElementsAre("--bind_to=socket"));
  EXPECT_THAT(Bad({"--bind-to", "rack", "p"}), HasSubstr("--bind-to rack: it knows auto, none"));
  EXPECT_THAT(Bad({"--map-by", "board", "p"}), HasSubstr("--map-by board"));
  EXPECT_THAT(Bad({"-ppn", "0", "p"}), HasSubstr("-ppn 0"));
}

TEST(ArgumentsTest, RulesThatSayTheSameGoTogether) {
  const Arguments all = Good({"-ppn", "2", "--map-by", "numa:PE=4", "--rank-by", "node", "p"});
  EXPECT_EQ(all.mapping.by, Mapping::By::kCount);
  EXPECT_EQ(all.mapping.unit, Unit::kNuma);
  EXPECT_EQ(all.mapping.width, 4U);
  EXPECT_EQ(all.mapping.order_unit, Unit::kNode);
  EXPECT_THAT(all.options, ElementsAre("--bind_to=core"));  // of which each has 4
  EXPECT_THAT(Good({"--map-by", ":PE=2:HWTCPUS", "p"}).options, ElementsAre("--bind_to=hwthread"));
  EXPECT_THAT(Good({"--bind-to", "numa:2", "p"}).options, ElementsAre("--bind_to=numa"));
  EXPECT_THAT(Good({"--map-by", "numa", "p"}).options, IsEmpty());
  EXPECT_THAT(Good({"--bind_to=core", "p"}).options, ElementsAre("--bind_to=core"));
  EXPECT_EQ(Good({"-n", "2", "-np", "2", "p", ":", "-n", "3", "q"}).parts[1].ranks, 3U);
}

TEST(ArgumentsTest, RulesThatContradictAreBothNamed) {
  EXPECT_THAT(Bad({"-n", "2", "-c", "4", "p"}),
              HasSubstr("-n 2 and -c 4 both say how many ranks to start: leave one out "
                        "(--cpus-per-rank N gives each rank N cores)"));
  EXPECT_THAT(Bad({"-ppn", "2", "--map-by", "node", "p"}),
              HasSubstr("-ppn 2 and --map-by node both say how many ranks each node gets"));
  EXPECT_THAT(Bad({"--map-by", "ppr:1:node", "-N", "2", "p"}),
              HasSubstr("--map-by ppr:1:node and -N 2 both say"));
  EXPECT_THAT(Bad({"--map-by", "numa", "--bycore", "p"}),
              HasSubstr("--map-by numa and --bycore both say how ranks are dealt out"));
  EXPECT_THAT(Bad({"--bind-to", "core", "-bind-to-socket", "p"}),
              HasSubstr("--bind-to core and -bind-to-socket both say what ranks are bound to"));
  EXPECT_THAT(Bad({"--bind-to", "core", "--bind_to=none", "p"}),
              HasSubstr("--bind-to core and --bind_to=none both say"));
  EXPECT_THAT(Bad({"--rank-by", "core", "--rank-by", "node", "p"}), HasSubstr("which rank runs"));
  EXPECT_THAT(Bad({"--map-by", "slot:PE=2", "--cpus-per-proc", "4", "p"}),
              HasSubstr("--map-by slot:PE=2 and --cpus-per-proc 4 both say how many cores"));
  for (const char* other : {"none", "numa", "socket"}) {
    EXPECT_THAT(Bad({"--bind-to", other, "--map-by", "slot:PE=2", "p"}),
                HasSubstr("--map-by slot:PE=2 gives each rank cores of its own, and --bind-to " +
                          std::string(other) + " does not: leave one out"));
  }
  EXPECT_THAT(Bad({"--use-hwthread-cpus", "--bind-to", "core:2", "p"}),
              HasSubstr("say --bind-to hwthread"));
}

TEST(ArgumentsTest, HostsFromListsAndFiles) {
  const std::string file = testing::TempDir() + "hosts";
  std::ofstream(file) << "b slots=2\nc\n";
  const Arguments arguments = Good({"-hosts", "a,b", "-f", file.c_str(), "p"});
  EXPECT_THAT(arguments.hosts, ElementsAre(Host{"a", 1}, Host{"b", 3}, Host{"c", 1}));
  EXPECT_THAT(Bad({"-host", "a:z", "p"}), HasSubstr("-host a:z: 'a:z': 'z' is no number"));
  EXPECT_THAT(Bad({"--hostfile", "/nonexistent", "p"}), HasSubstr("cannot read the host file"));
}

TEST(ArgumentsTest, WhatPeersTakeForGrantedIsAccepted) {
  const Arguments arguments =
      Good({"--oversubscribe", "--allow-run-as-root", "-genvall", "--tag-output", "p"});
  EXPECT_THAT(arguments.parts[0].program, ElementsAre("p"));
  EXPECT_TRUE(arguments.label);
  EXPECT_TRUE(Good({"-l", "p"}).label);
  EXPECT_FALSE(Good({"p"}).label);
  EXPECT_FALSE(Good({"-l", "--no-label", "p"}).label);
}

TEST(ArgumentsTest, OptionsOfFerrydAreKept) {
  const Arguments arguments = Good({"--eager-max-bytes", "512", "--heap_bytes=4", "--launcher",
                                    "srun", "--run_directory=/r", "p"});
  EXPECT_THAT(arguments.options, ElementsAre("--eager_max_bytes=512", "--heap_bytes=4",
                                             "--launcher=srun", "--run_directory=/r"));
  EXPECT_TRUE(arguments.names_run_directory);
}

TEST(ArgumentsTest, MallocIsAFlagAndAnOption) {
  EXPECT_THAT(Good({"--malloc", "./a"}).options, ElementsAre("--malloc=ferry"));
  EXPECT_THAT(Good({"--malloc=system", "./a"}).options, ElementsAre("--malloc=system"));
}

TEST(ArgumentsTest, AnUnknownFlagIsNamed) {
  EXPECT_EQ(Bad({"-n", "2", "--frobnicate", "f", "p"}),
            "ferryrun: unknown flag --frobnicate (ferryrun --help explains the flags)\n");
}

TEST(ArgumentsTest, AFlagThatIsMistypedHasANeighbour) {
  EXPECT_THAT(Bad({"--lable", "p"}), HasSubstr("unknown flag --lable; did you mean --label?"));
  EXPECT_THAT(Bad({"--hsotfile", "f", "p"}), HasSubstr("did you mean --hostfile?"));
  EXPECT_THAT(Bad({"--heap_byte=4", "p"}), HasSubstr("did you mean --heap_bytes?"));
  EXPECT_THAT(Bad({"--rank=3", "p"}), HasSubstr("did you mean --ranks?"));  // set by ferryrun
}

TEST(ArgumentsTest, OtherLaunchersFlagsAreTakenOrRefusedInWords) {
  EXPECT_EQ(Good({"--np", "3", "p"}).parts[0].ranks, 3u);
  EXPECT_EQ(Good({"-N", "2", "p"}).mapping.count, 2u);
  EXPECT_TRUE(Good({"-v", "p"}).verbose);
  EXPECT_TRUE(Good({"--report-bindings", "p"}).report_bindings);
  testing::internal::CaptureStderr();
  const auto parsed = Parse({"--mca", "btl", "tcp,self", "p"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ferryrun: warning: --mca btl is ignored: a setting of Open MPI's components\n");
  ASSERT_TRUE(std::holds_alternative<Arguments>(parsed));
  EXPECT_THAT(std::get<Arguments>(parsed).parts[0].program, ElementsAre("p"));
  EXPECT_THAT(
      Bad({"-hosts-group", "f", "p"}),
      HasSubstr("-hosts-group is another launcher's flag; here, -host, --map-by and --bind-to "
                "say where ranks run"));
}

TEST(ArgumentsTest, ValuesThatAreMissingOrTooMany) {
  EXPECT_THAT(Bad({"-n"}), HasSubstr("-n needs N after it"));
  EXPECT_THAT(Bad({"-genv", "A"}), HasSubstr("-genv needs NAME VALUE after it"));
  EXPECT_THAT(Bad({"--heap-bytes"}), HasSubstr("--heap-bytes needs VALUE after it"));
  EXPECT_THAT(Bad({"--private=yes", "p"}), HasSubstr("--private takes no value"));
  EXPECT_THAT(Bad({"-n", "-3", "p"}), HasSubstr("-n: '-3' is not a whole number"));
  EXPECT_THAT(Bad({"--timeout", "0", "p"}), HasSubstr("--timeout 0"));
  EXPECT_THAT(Bad({"-wdir", "", "p"}), HasSubstr("-wdir '' is no directory"));
}

TEST(ArgumentsTest, TwoDashesEndTheFlags) {
  EXPECT_THAT(Good({"-n", "2", "--", "-program"}).parts[0].program, ElementsAre("-program"));
}

TEST(ArgumentsTest, HelpAndVersionRunNothing) {
  for (const char* flag : {"-h", "--help", "-version", "--version"}) {
    testing::internal::CaptureStdout();
    const auto parsed = Parse({"-n", "2", flag});
    EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::Not(IsEmpty())) << flag;
    EXPECT_EQ(std::get<int>(parsed), 0) << flag;
  }
}

TEST(FlagTableTest, EveryNameLeadsToItsRowAndStandsInTheHelp) {
  const std::string help = HelpText();
  std::set<std::string_view> seen;
  for (const FlagRow& row : FlagTable()) {
    EXPECT_EQ(help.find(std::string("\n  ") + row.names) != std::string::npos, IsOurs(row))
        << row.names;
    for (const std::string_view name : NamesOf(row)) {
      EXPECT_EQ(FindFlag(name), &row) << name;
      EXPECT_TRUE(seen.insert(name).second) << name;
    }
  }
  EXPECT_EQ(FindFlag("-z"), nullptr);
  EXPECT_EQ(FindFlag(""), nullptr);
}

}  // namespace
}  // namespace ferry::tools
