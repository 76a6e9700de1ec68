#include "tools/ferryctl/option_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string_view>

namespace ferry::tools {
namespace {

OptionOrigin Find(const StatusOr<std::vector<OptionOrigin>>& report, std::string_view name) {
  for (const OptionOrigin& row : *report) {
    if (row.option->name == name) {
      return row;
    }
  }
  ADD_FAILURE() << "no row for " << name;
  return {};
}

TEST(OptionReportTest, NamesTheSourceThatWins) {
  const std::string file = testing::TempDir() + "report.toml";
  std::ofstream(file) << "spin_pauses = 1\nheap_bytes = 2097152\nmax_ranks = 200\n";
  const std::string variable = "FERRY_CONFIG_FILE=" + file;
  const char* environment[] = {variable.c_str(), "FERRY_SPIN_PAUSES=2", "FERRY_MAX_RANKS=300",
                               "FERRY_JOB_SECRET=hush", nullptr};
  const auto report = ReportOptions({"--spin_pauses=3"}, environment);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(Find(report, "spin_pauses").value, "3");
  EXPECT_EQ(Find(report, "spin_pauses").origin, "flag --spin_pauses");
  EXPECT_EQ(Find(report, "max_ranks").value, "300");
  EXPECT_EQ(Find(report, "max_ranks").origin, "variable FERRY_MAX_RANKS");
  EXPECT_EQ(Find(report, "heap_bytes").value, "2097152");
  EXPECT_EQ(Find(report, "heap_bytes").origin, "file " + file);
  EXPECT_EQ(Find(report, "log_level").origin, "default");
  EXPECT_EQ(Find(report, "job_secret").value, "(secret)");
}

TEST(OptionReportTest, TellsAValueSetToItsDefaultFromTheDefault) {
  const char* environment[] = {"FERRY_SPIN_PAUSES=64", "FERRY_LOG_FILE=", nullptr};
  const auto report = ReportOptions({}, environment);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(Find(report, "spin_pauses").origin, "variable FERRY_SPIN_PAUSES");
  EXPECT_EQ(Find(report, "log_file").origin, "variable FERRY_LOG_FILE");
  EXPECT_EQ(Find(report, "job_secret").value, "");
}

TEST(OptionReportTest, PassesMistakesOn) {
  const char* environment[] = {"FERRY_SPIN_PAUSES=many", nullptr};
  const auto report = ReportOptions({}, environment);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.status().message(), testing::HasSubstr("FERRY_SPIN_PAUSES"));
}

}  // namespace
}  // namespace ferry::tools
