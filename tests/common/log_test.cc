#include "common/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/log_event.h"

namespace ferry {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::SizeIs;

class LogTest : public testing::Test {
 protected:
  // A log of its own for each test.
  void SetUp() override {
    path_ = testing::TempDir() + "/" +
            testing::UnitTest::GetInstance()->current_test_info()->name() + ".log";
    std::remove(path_.c_str());
  }

  void Open(const std::string& level, const std::string& format) {
    const Status status = SetUpLog("ferryd", {.level = level, .format = format, .file = path_});
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      lines.push_back(line);
    }
    return lines;
  }

  std::string path_;
};

TEST_F(LogTest, WritesTextLines) {
  Open("info", "text");
  spdlog::warn("rank {} died", 3);
  ASSERT_THAT(Lines(), SizeIs(1));
  EXPECT_THAT(Lines()[0], MatchesRegex("[0-9]+-[0-9]+-[0-9]+ [0-9:.]+ warning +ferryd\\[[0-9]+\\] "
                                       "rank 3 died"));
}

TEST_F(LogTest, KeepsToTheLevel) {
  Open("warn", "text");
  spdlog::info("quiet");
  spdlog::error("loud");
  ASSERT_THAT(Lines(), SizeIs(1));
  EXPECT_THAT(Lines()[0], HasSubstr("loud"));
}

TEST_F(LogTest, OffIsSilent) {
  Open("off", "text");
  spdlog::critical("nobody hears");
  EXPECT_THAT(Lines(), SizeIs(0));
}

TEST_F(LogTest, JsonLinesSurviveHostileText) {
  Open("info", "json");
  const std::string hostile = "a \"quote\", a \\ and a\nnew line\t\x01\x7f, \xc3\xa9";
  spdlog::info("{}", hostile);
  ASSERT_THAT(Lines(), SizeIs(1));
  const nlohmann::json line = nlohmann::json::parse(Lines()[0]);
  EXPECT_EQ(line["message"], hostile);
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["name"], "ferryd");
  EXPECT_EQ(line["pid"], getpid());
  EXPECT_THAT(line["time"], MatchesRegex("[0-9-]+T[0-9:.]+[+-][0-9]+:[0-9]+"));
}

TEST_F(LogTest, TextLinesCannotBeForged) {
  Open("info", "text");
  spdlog::info("{}", "name\n2030-01-01 00:00:00 error forged");
  ASSERT_THAT(Lines(), SizeIs(1));
  EXPECT_THAT(Lines()[0], HasSubstr("name\\u000a2030"));
}

TEST_F(LogTest, EventsHaveFields) {
  Open("info", "json");
  LogEvent(spdlog::level::warn,
           {.event = "rank_end", .job = "a\"b", .uid = 1000, .rank = 0, .more = "\"x\":{\"y\":1}"},
           "rank 0 died");
  LogEvent(spdlog::level::info, {}, "{no fields}");
  spdlog::info("plain");
  ASSERT_THAT(Lines(), SizeIs(3));
  nlohmann::json line = nlohmann::json::parse(Lines()[0]);
  EXPECT_EQ(line["message"], "rank 0 died");
  EXPECT_EQ(line["event"], "rank_end");
  EXPECT_EQ(line["job"], "a\"b");
  EXPECT_EQ(line["uid"], 1000);
  EXPECT_EQ(line["rank"], 0);
  EXPECT_EQ(line["x"]["y"], 1);
  for (const int plain : {1, 2}) {
    line = nlohmann::json::parse(Lines()[static_cast<size_t>(plain)]);
    EXPECT_FALSE(line.contains("job") || line.contains("rank") || line.contains("event"));
  }
}

TEST_F(LogTest, TextHasTheEventsWordsOnly) {
  Open("info", "text");
  LogEvent(spdlog::level::info, {.event = "job_end", .job = "x", .more = "\"a\":1"}, "job x ended");
  ASSERT_THAT(Lines(), SizeIs(1));
  EXPECT_THAT(Lines()[0], MatchesRegex(".* job x ended"));
}

TEST_F(LogTest, LimitedEventsKeepTheirFields) {
  Open("info", "json");
  RateLimiter limiter(1, /*interval_ns=*/UINT64_MAX);
  for (int i = 0; i < 3; ++i) {
    LogEventLimited(limiter, spdlog::level::warn, {.job = "x"}, "died");
  }
  ASSERT_THAT(Lines(), SizeIs(1));
  EXPECT_EQ(nlohmann::json::parse(Lines()[0])["job"], "x");
}

TEST_F(LogTest, AppendsToTheFile) {
  Open("info", "text");
  spdlog::info("first");
  Open("info", "text");
  spdlog::info("second");
  EXPECT_THAT(Lines(), SizeIs(2));
}

TEST_F(LogTest, RejectsBadSettingsAndKeepsTheLog) {
  Open("info", "text");
  EXPECT_EQ(SetUpLog("x", {.level = "loud", .format = "text", .file = ""}).message(),
            "log_level cannot be \"loud\": it must be one of trace, debug, info, warn, error, off");
  EXPECT_EQ(SetUpLog("x", {.level = "info", .format = "xml", .file = ""}).message(),
            "log_format cannot be \"xml\": it must be one of text, json");
  const Status unwritable = SetUpLog(
      "x", {.level = "info", .format = "text", .file = testing::TempDir()});  // a directory
  EXPECT_EQ(unwritable.code(), ErrorCode::kConfiguration);
  EXPECT_THAT(unwritable.message(), HasSubstr(testing::TempDir()));
  spdlog::info("still here");
  EXPECT_THAT(Lines(), SizeIs(1));
}

TEST_F(LogTest, LimitedMessagesSayHowManyWereSuppressed) {
  Open("info", "text");
  RateLimiter limiter(2, /*interval_ns=*/1);
  RateLimiter closed(1, /*interval_ns=*/UINT64_MAX);
  for (int i = 0; i < 5; ++i) {
    LogLimited(closed, spdlog::level::warn, "bad descriptor {}", i);
  }
  ASSERT_THAT(Lines(), SizeIs(1));
  EXPECT_THAT(Lines()[0], HasSubstr("bad descriptor 0"));

  ASSERT_EQ(limiter.Admit(0), 0u);
  ASSERT_EQ(limiter.Admit(0), 0u);
  ASSERT_EQ(limiter.Admit(0), std::nullopt);
  LogLimited(limiter, spdlog::level::warn, "bad descriptor again");
  ASSERT_THAT(Lines(), SizeIs(2));
  EXPECT_THAT(Lines()[1], HasSubstr("bad descriptor again (1 similar messages suppressed)"));
}

TEST_F(LogTest, MessagesBelowTheLevelDoNotUseUpTheLimit) {
  Open("warn", "text");
  RateLimiter limiter(1, UINT64_MAX);
  LogLimited(limiter, spdlog::level::info, "quiet");
  LogLimited(limiter, spdlog::level::warn, "loud");
  EXPECT_THAT(Lines(), SizeIs(1));
}

TEST(RateLimiterTest, LetsABurstPassPerInterval) {
  RateLimiter limiter(2, 100);
  EXPECT_EQ(limiter.Admit(1000), 0u);
  EXPECT_EQ(limiter.Admit(1050), 0u);
  EXPECT_EQ(limiter.Admit(1099), std::nullopt);
  EXPECT_EQ(limiter.Admit(1099), std::nullopt);
  EXPECT_EQ(limiter.Admit(1100), 2u);
  EXPECT_EQ(limiter.Admit(1199), 0u);
  EXPECT_EQ(limiter.Admit(1199), std::nullopt);
}

TEST(RateLimiterTest, TheFirstEventOpensTheInterval) {
  RateLimiter limiter(1, 100);
  EXPECT_EQ(limiter.Admit(7), 0u);
  EXPECT_EQ(limiter.Admit(106), std::nullopt);
  EXPECT_EQ(limiter.Admit(107), 1u);
}

TEST(RateLimiterTest, ABurstOfZeroLetsNothingPass) {
  RateLimiter limiter(0, 100);
  EXPECT_EQ(limiter.Admit(1), std::nullopt);
  EXPECT_EQ(limiter.Admit(1000), std::nullopt);
}

}  // namespace
}  // namespace ferry
