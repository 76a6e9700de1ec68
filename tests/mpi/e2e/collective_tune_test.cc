// `ferryctl tune --collectives`, and jobs that take the rules that it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "coll/algorithms/selection.h"
#include "coll/algorithms/selection_file.h"
#include "tests/mpi/e2e/mpi_job.h"
#include "tests/mpi/e2e/sent_messages.h"
#include "tests/support/processes.h"

namespace ferry::mpi_tests {
namespace {

namespace fs = std::filesystem;
using collective::Collective;
using collective::NodeLayout;
using testing::HasSubstr;
using testing::IsEmpty;
using tests::ReadFile;

class CollectiveTuneTest : public testing::Test {
 protected:
  CollectiveTuneTest() {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    table_ = directory_ + "/table.toml";
  }
  ~CollectiveTuneTest() override { fs::remove_all(directory_); }

  e2e::CommandResult Tune(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"tools/ferryctl/ferryctl", "tune", "--collectives",
                                          "--output", table_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    e2e::Command command(arguments, {}, "", 200);
    e2e::CommandResult result = command.Wait();
    EXPECT_THAT(command.Leftovers(), IsEmpty());
    return result;
  }
  void ExpectRefusal(const std::vector<std::string>& arguments, const std::string& words) const {
    const e2e::CommandResult result = Tune(arguments);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr(words));
    EXPECT_TRUE(fs::is_empty(directory_));
  }

  std::string directory_ = "/tmp/ferry-tune-XXXXXX";
  std::string table_;
};

// Each rank sends as many messages as the algorithm that the table names.
TEST_F(CollectiveTuneTest, RanksTakeTheRulesThatItWrites) {
  const e2e::CommandResult tuned =
      Tune({"--job", "--private --ferryd daemon/ferryd -n 5", "--sizes", "64,4K", "--collective",
            "bcast,allreduce", "--repetitions", "1", "--json"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const nlohmann::json result = nlohmann::json::parse(tuned.out);
  EXPECT_EQ(result["file"], table_);
  EXPECT_EQ(result["cases"].size(), 2u * 3u * 2u) << "of 2, 4 and 5 ranks";
  const std::string text = ReadFile(table_);
  EXPECT_THAT(text, HasSubstr("# Algorithms of MPI's collectives, measured on "));
  const auto rules = collective::ParseSelectionRules(text, table_);
  ASSERT_TRUE(rules.ok()) << rules.status().ToString();
  const collective::SelectionTable table(*rules);
  for (const Collective collective : {Collective::kBcast, Collective::kAllreduce}) {
    const std::string expected = SentLine(
        collective, 5, 64,
        [&](const collective::Problem& problem) { return table.Choose(problem).algorithm; });
    const e2e::CommandResult job =
        RunJob({"", {"-n", "5"}}, {"--collective_table", table_, "tests/mpi/ranks/algorithms",
                                   CollectiveName(collective), "64"});
    EXPECT_EQ(job.out, expected) << job.err << text;
  }
}

TEST_F(CollectiveTuneTest, MeasuresEveryCollectiveOnEveryLayoutOfTheJob) {
  const e2e::CommandResult tuned = Tune({"--job", "--private --ferryd daemon/ferryd -n 4 --nodes 2",
                                         "--sizes", "8", "--repetitions", "1"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(tuned.out, HasSubstr("COLLECTIVE"));
  EXPECT_THAT(tuned.out, HasSubstr("--collective_table=" + table_));
  const auto rules = collective::ParseSelectionRules(ReadFile(table_), table_);
  ASSERT_TRUE(rules.ok()) << rules.status().ToString();
  std::set<std::pair<Collective, NodeLayout>> found;
  for (const collective::SelectionRule& rule : *rules) {
    found.insert({rule.collective, rule.layout});
  }
  EXPECT_EQ(found.size(), 11u * 3u);
}

TEST_F(CollectiveTuneTest, WritesNowhereWithoutBeingTold) {
  e2e::Command command({"/bin/sh", "-c",
                        "root=$PWD && cd " + directory_ +
                            " && exec \"$root/$0\" tune --collectives --job \"--private --ferryd "
                            "$root/daemon/ferryd -n 2\" --sizes 8 --collective bcast "
                            "--repetitions 1",
                        "tools/ferryctl/ferryctl"},
                       {}, "", 200);
  const e2e::CommandResult tuned = command.Wait();
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_TRUE(fs::is_empty(directory_));
  EXPECT_THAT(tuned.err, HasSubstr("no file was written; --output FILE writes these rules"));
  const auto rules = collective::ParseSelectionRules(tuned.out, "standard output");
  EXPECT_TRUE(rules.ok()) << rules.status().ToString();
}

TEST_F(CollectiveTuneTest, ReplacesNoFileUnasked) {
  e2e::Command touch({"/usr/bin/touch", table_});
  touch.Wait();
  const e2e::CommandResult refused = Tune({});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr(table_));
  EXPECT_EQ(ReadFile(table_), "");
}

TEST_F(CollectiveTuneTest, MistakesLeaveNothing) {
  ExpectRefusal({"--collective", "boast"}, "\"boast\" is no collective that can be measured");
  ExpectRefusal({"--sizes", "1G"}, "--sizes takes sizes of 1 byte to 64 MiB");
  ExpectRefusal({"--job", "--private --ferryd daemon/ferryd -n 1", "--collective", "scan",
                 "--repetitions", "1"},
                "a job of one rank has no collectives");
  ExpectRefusal({"--job", "-n many"}, "the job that measures failed");
  ExpectRefusal({"--device", "1"}, "--device");
}

// Here, since it runs the same program.
TEST(DoctorJobTest, RunsATinyJobUnlessItIsNotTo) {
  if (geteuid() == 0 && access("/run", W_OK) != 0) {
    GTEST_SKIP() << "/run, where root's run directory lies, cannot be written to";
  }
  std::vector<std::string> doctor = {"tools/ferryctl/ferryctl", "doctor"};
  e2e::Command command(doctor);
  const e2e::CommandResult result = command.WaitCleanly();
  EXPECT_THAT(result.out,
              testing::ContainsRegex("ok +a job: two ranks of this node: [0-9.]+ us for "
                                     "8 B, [0-9.]+ GB/s for 1024 KiB\n"));
  doctor.emplace_back("--no-job");
  e2e::Command without(doctor);
  EXPECT_THAT(without.WaitCleanly().out, testing::Not(HasSubstr("a job:")));
}

TEST(DoctorJobTest, AJobThatCannotStartIsAProblem) {
  e2e::Command command({"tools/ferryctl/ferryctl", "doctor", "--run_directory=/nonexistent/x"});
  const e2e::CommandResult result = command.WaitCleanly();
  EXPECT_EQ(result.exit_code, 1);
}

}  // namespace
}  // namespace ferry::mpi_tests
