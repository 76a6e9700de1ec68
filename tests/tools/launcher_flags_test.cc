// The flags of mpirun, mpiexec and srun, from the documentation of Open MPI 4.1 and 5.0, MPICH 4.0,
// Intel MPI 2021 and Slurm 22.05: each is one of ferryrun's in other words, or the message says
// what to type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tools/ferryrun/arguments.h"
#include "tools/ferryrun/flag_table.h"

namespace ferry::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

using Environment = std::vector<const char*>;

struct Outcome {
  std::variant<Arguments, int> parsed;
  std::string error;
};

// `flags`, and a program behind them.
Outcome Parse(const std::string& flags, Environment environment = {}) {
  std::vector<std::string> words = {"ferryrun"};
  std::istringstream text(flags);
  for (std::string word; text >> word;) {
    words.push_back(word);
  }
  words.push_back("program");
  std::vector<const char*> argv;
  for (const std::string& word : words) {
    argv.push_back(word.c_str());
  }
  environment.push_back(nullptr);
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  auto parsed = ParseArguments(static_cast<int>(argv.size()), argv.data(), environment.data());
  (void)testing::internal::GetCapturedStdout();
  return {std::move(parsed), testing::internal::GetCapturedStderr()};
}

// ---- The same in other words

struct Same {
  const char* flags;
  const char* ferry;  // "": what is so in any case
};

class SameFlagTest : public testing::TestWithParam<Same> {};

TEST_P(SameFlagTest, IsTheFlagOfFerryrun) {
  const Outcome other = Parse(GetParam().flags);
  const Outcome own = Parse(GetParam().ferry);
  EXPECT_EQ(other.error, "");
  ASSERT_EQ(own.error, "");
  EXPECT_TRUE(other.parsed == own.parsed) << GetParam().flags << " is not " << GetParam().ferry;
  if (*GetParam().ferry != '\0') {
    EXPECT_FALSE(other.parsed == Parse("").parsed) << "it has no effect";
  }
}

INSTANTIATE_TEST_SUITE_P(
    OpenMpi, SameFlagTest,
    testing::Values(
        Same{"-np 4", "-n 4"}, Same{"--np 4", "-n 4"}, Same{"--n 4", "-n 4"}, Same{"-c 4", "-n 4"},
        Same{"-H a,b:2", "-host a,b:2"}, Same{"--host a", "-host a"}, Same{"-N 2", "-ppn 2"},
        Same{"-npernode 2", "-ppn 2"}, Same{"--pernode", "--map-by ppr:1:node"},
        Same{"-npersocket 2", "--map-by ppr:2:socket"}, Same{"--ppr 2:numa", "--map-by ppr:2:numa"},
        Same{"--bynode", "--map-by node"}, Same{"-byslot", ""}, Same{"--bycore", "--map-by core"},
        Same{"--map-by package", "--map-by socket"},
        Same{"--map-by NUMA:pe=2", "--map-by numa:PE=2"},
        Same{"--cpus-per-proc 4", "--map-by :PE=4"}, Same{"--cpus-per-rank 4", "--bind-to core:4"},
        Same{"--bind-to package", "--bind-to socket"}, Same{"-bind-to-core", "--bind-to core"},
        Same{"--bind-to-socket", "--bind-to socket"}, Same{"--bind-to-none", "--bind-to none"},
        Same{"--use-hwthread-cpus", "--map-by :HWTCPUS"},
        Same{"--nooversubscribe", "--map-by :NOOVERSUBSCRIBE"}, Same{"--oversubscribe", ""},
        Same{"--allow-run-as-root", ""}, Same{"-report-bindings", "--report-bindings"},
        Same{"--tag-output", "--label"}, Same{"--display-map", "--verbose"},
        Same{"--display-allocation", "--verbose"},
        Same{"--display map,bind", "--verbose --report-bindings"}, Same{"--output tag", "--label"},
        Same{"-output-filename f", "--output f"}, Same{"--output dir=x", "--output x"},
        Same{"-wd /tmp", "-wdir /tmp"}, Same{"--enable-recovery", "--keep-going"}, Same{"-q", ""},
        Same{"-V", "--version"}, Same{"--noprefix", ""},
        Same{"--mca rmaps_base_mapping_policy numa:PE=2", "--map-by numa:PE=2"},
        Same{"--mca hwloc_base_binding_policy core", "--bind-to core"},
        Same{"--prtemca rmaps_default_ranking_policy node", "--rank-by node"},
        Same{"--mca hwloc_base_report_bindings 1", "--report-bindings"}));

INSTANTIATE_TEST_SUITE_P(
    Hydra, SameFlagTest,
    testing::Values(
        Same{"-perhost 2", "-ppn 2"}, Same{"-grr 2", "-ppn 2"}, Same{"-rr", "--map-by node"},
        Same{"-bind-to core:2", "--bind-to core:2"},
        Same{"-bind-to hwthread", "--bind-to hwthread"}, Same{"-bind-to machine", "--bind-to none"},
        Same{"-map-by numa -ppn 2", "-ppn 2 --map-by numa"}, Same{"-genvall", ""},
        Same{"-envall", ""}, Same{"-prepend-rank", "--label"},
        Same{"-launcher ssh", "--launcher ssh"}, Same{"-launcher slurm", "--launcher srun"},
        Same{"-bootstrap fork", "--launcher none"}, Same{"-launcher rsh", "--rsh rsh"},
        Same{"-launcher sge", "--launcher qrsh"}, Same{"-launcher lsf", "--launcher blaunch"},
        Same{"-launcher pbs", "--launcher pbs_tmrsh"},
        Same{"-launcher-exec /bin/ssh", "--rsh /bin/ssh"}, Same{"-rmk slurm", "--allocation slurm"},
        Same{"-iface ib0", "--network ib0"}, Same{"-disable-auto-cleanup", "--keep-going"},
        Same{"-print-all-exitcodes", ""}, Same{"-print-rank-map", "--verbose"},
        Same{"-info", "--version"}, Same{"-silent-abort", ""}));

INSTANTIATE_TEST_SUITE_P(
    Srun, SameFlagTest,
    testing::Values(
        Same{"--ntasks=4", "-n 4"}, Same{"--ntasks-per-node=2", "-ppn 2"},
        Same{"--ntasks-per-socket=2", "--map-by ppr:2:socket"},
        Same{"--cpus-per-task=4", "--map-by :PE=4"}, Same{"--depth 4", "--map-by :PE=4"},
        Same{"-w a,b", "-hosts a,b"}, Same{"--nodelist=a", "-hosts a"},
        Same{"-D /tmp", "-wdir /tmp"}, Same{"--cpu-bind=cores", "--bind-to core"},
        Same{"--cpu-bind=verbose,ldoms", "--report-bindings --bind-to numa"},
        Same{"--cpu-bind none", "--bind-to none"}, Same{"-m block:cyclic", "--map-by socket"},
        Same{"-m cyclic", "--map-by node"}, Same{"--distribution=plane=4", "-ppn 4"},
        Same{"--hint=nomultithread", ""}, Same{"-K", ""}, Same{"--kill-on-bad-exit=1", ""},
        Same{"--kill-on-bad-exit=0", "--keep-going"}, Same{"-k", "--keep-going"}, Same{"-u", ""},
        Same{"-O", ""}, Same{"--exclusive", ""}, Same{"-l", "--label"}));

// ---- Another way

struct Other {
  const char* flags;
  const char* instead;  // in the message
};

class OtherFlagTest : public testing::TestWithParam<Other> {};

TEST_P(OtherFlagTest, IsRefusedWithWhatToType) {
  const Outcome outcome = Parse(GetParam().flags);
  ASSERT_TRUE(std::holds_alternative<int>(outcome.parsed)) << GetParam().flags;
  EXPECT_EQ(std::get<int>(outcome.parsed), 2);
  EXPECT_THAT(outcome.error, HasSubstr(GetParam().instead));
  EXPECT_THAT(outcome.error, Not(HasSubstr("unknown flag")));
  EXPECT_LT(outcome.error.size(), 320U) << "one sentence";
}

INSTANTIATE_TEST_SUITE_P(
    All, OtherFlagTest,
    testing::Values(
        Other{"-hosts-group f", "-host, --map-by and --bind-to"},
        Other{"--cpu-set 0-3", "taskset -c LIST ferryrun"},
        Other{"--cpu-list 0,2", "taskset -c LIST ferryrun"},
        Other{"--map-by numa:SPAN", "--map-by ppr:N:numa"},
        Other{"--map-by l2cache", "most cores have their own"},
        Other{"--rank-by span", "--rank-by numa"},
        Other{"--bind-to core:overload-allowed", "--bind-to numa"},
        Other{"--bind-to cpu-list:ordered", "taskset -c LIST ferryrun"},
        Other{"-bind-to user:0+2,1+4", "taskset -c 0 ./program"},
        Other{"-outfile-pattern f", "--output DIRECTORY"}, Other{"-o f.%t", "--output DIRECTORY"},
        Other{"--output f.%t", "names a directory"}, Other{"--output file=x", "names a directory"},
        Other{"--timestamp-output", "| ts"}, Other{"-prepend-pattern x", "--label"},
        Other{"--merge-stderr-to-stdout", "2>&1"}, Other{"-stdin all", "rank 0 reads"},
        Other{"--xterm 0", "xterm -e gdb"}, Other{"-gdb", "xterm -e gdb"},
        Other{"--app f", "\":\" between them"}, Other{"-configfile f", "\":\""},
        Other{"--nolocal", "-hosts names"}, Other{"-usize 8", "-hosts a:8"},
        Other{"--path /x", "-x PATH="}, Other{"-genvnone", "env -i PATH"},
        Other{"-preload-binary", "where all hosts see them"},
        Other{"--do-not-launch", "ferryrun -v --report-bindings"},
        Other{"--display topo", "--report-bindings on which CPUs"},
        Other{"-membind local", "numactl --interleave"},
        Other{"-gtool vtune:0", "ferryrun -n 1 TOOL"}, Other{"-errfile-pattern f", "for each rank"},
        Other{"-gpus-per-proc 1", "MPI_Comm_split_type"},
        Other{"--gpus-per-task=1", "MPI_Comm_split_type"}, Other{"--export=ALL", "-x NAME=VALUE"},
        Other{"-t 10", "--timeout SECONDS"}, Other{"--cpu-bind=map_cpu:0,4", "--bind-to core"},
        Other{"-m arbitrary", "--map-by slot, node"}, Other{"-p debug", "sbatch"},
        Other{"--mem=4G", "sbatch"}, Other{"--multi-prog f", "\":\""},
        Other{"-o out", "for each rank"}, Other{"-soft 2:8", "-n N"},
        Other{"-launcher persist", "--rsh names any command"}));

struct Ignored {
  const char* flags;
  const char* warning;
};

class IgnoredFlagTest : public testing::TestWithParam<Ignored> {};

TEST_P(IgnoredFlagTest, IsWarnedOf) {
  const Outcome outcome = Parse(GetParam().flags);
  EXPECT_TRUE(outcome.parsed == Parse("").parsed);
  EXPECT_EQ(outcome.error, "ferryrun: warning: " + std::string(GetParam().warning) + "\n");
}

INSTANTIATE_TEST_SUITE_P(
    All, IgnoredFlagTest,
    testing::Values(
        Ignored{"--mca btl tcp,self", "--mca btl is ignored: a setting of Open MPI's components"},
        Ignored{"--mpi=pmix", "--mpi pmix is ignored: ferryrun itself brings its ranks together"},
        Ignored{"--prefix /opt/openmpi",
                "--prefix /opt/openmpi is ignored: on other hosts ferryrun is started under the "
                "path that it has here"},
        Ignored{"-tune f", "-tune f is ignored: settings of another MPI library"}));

// ---- Variables of Intel MPI

TEST(IntelVariablesTest, AreTheFlagsThatTheyEqual) {
  const std::pair<const char*, const char*> kSame[] = {
      {"I_MPI_PIN=off", "--bind-to none"},
      {"I_MPI_PIN=1", ""},
      {"I_MPI_PIN_DOMAIN=core", "--bind-to core"},
      {"I_MPI_PIN_DOMAIN=socket", "--bind-to socket"},
      {"I_MPI_PIN_DOMAIN=numa", "--bind-to numa"},
      {"I_MPI_PIN_DOMAIN=cache3", "--bind-to l3cache"},
      {"I_MPI_PIN_DOMAIN=4", "--bind-to hwthread:4"},
      {"I_MPI_PIN_DOMAIN=4:compact", "--bind-to hwthread:4"},
      {"I_MPI_PIN_DOMAIN=omp", ""},
      {"I_MPI_PIN_DOMAIN=", ""},
      {"I_MPI_PIN_ORDER=scatter", "--map-by socket"},
      {"I_MPI_PIN_PROCESSOR_LIST=allcores", "--bind-to core"},
      {"I_MPI_PERHOST=2", "-ppn 2"},
  };
  for (const auto& [variable, flags] : kSame) {
    const Outcome outcome = Parse("", {variable});
    EXPECT_EQ(outcome.error, "") << variable;
    EXPECT_TRUE(outcome.parsed == Parse(flags).parsed) << variable << " is not " << flags;
  }
}

TEST(IntelVariablesTest, MayBeGivenToRanks) {
  const Outcome outcome = Parse("-genv I_MPI_PIN_DOMAIN numa", {"I_MPI_PIN_DOMAIN=core"});
  ASSERT_TRUE(std::holds_alternative<Arguments>(outcome.parsed)) << outcome.error;
  const auto& arguments = std::get<Arguments>(outcome.parsed);
  EXPECT_THAT(arguments.options, testing::ElementsAre("--bind_to=numa"));
  EXPECT_THAT(arguments.variables, testing::ElementsAre("I_MPI_PIN_DOMAIN=numa"));
}

TEST(IntelVariablesTest, FlagsAndFerrysOwnVariableCountForMore) {
  const auto same = [](const std::string& flags, const Environment& environment) {
    const Outcome outcome = Parse(flags, environment);
    return outcome.error.empty() && outcome.parsed == Parse(flags).parsed;
  };
  EXPECT_TRUE(same("--bind-to core", {"I_MPI_PIN=off"}));
  EXPECT_TRUE(same("--map-by slot:PE=2", {"I_MPI_PIN_DOMAIN=8", "I_MPI_PIN_ORDER=scatter"}));
  EXPECT_TRUE(same("-ppn 3", {"I_MPI_PERHOST=2"}));
  EXPECT_TRUE(same("", {"FERRY_BIND_TO=core", "I_MPI_PIN=off"}));
}

TEST(IntelVariablesTest, WhatHasNoEqualIsWarnedOf) {
  const Outcome outcome = Parse("", {"I_MPI_PIN_DOMAIN=[55,aa]"});
  EXPECT_EQ(outcome.error,
            "ferryrun: warning: I_MPI_PIN_DOMAIN=[55,aa] is ignored: here, --bind-to core, numa, "
            "socket or none, or hwthread:N, says where ranks run\n");
  EXPECT_TRUE(outcome.parsed == Parse("").parsed);
  EXPECT_THAT(Parse("", {"I_MPI_PIN_PROCESSOR_LIST=0-3"}).error, HasSubstr("taskset -c LIST"));
  EXPECT_THAT(Parse("", {"I_MPI_PERHOST=many"}).error, HasSubstr("-ppn N deals out"));
}

// Each row that stands for flags of ferryrun names such that there are.
TEST(FlagTableTest, WhatStandsForFlagsNamesOnesThatThereAre) {
  for (const FlagRow& row : FlagTable()) {
    if (row.flag != Flag::kAlias || *row.help == '\0') {
      continue;
    }
    const std::string words = row.help;
    const FlagRow* const own = FindFlag(words.substr(0, words.find(' ')));
    ASSERT_NE(own, nullptr) << words;
    EXPECT_TRUE(IsOurs(*own)) << words;
    EXPECT_EQ(words.find('%') != words.npos, *row.values != '\0') << words;
  }
}

}  // namespace
}  // namespace ferry::tools
