// Folders that take records slowly, or no more, and the time that the daemon waits for them.
#include "daemon/records/record_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ferry::daemon {
namespace {

using std::chrono::steady_clock;

EndedJob Named(const std::string& id) {
  EndedJob job;
  job.id = id;
  job.node = "n";
  return job;
}

TEST(RecordWriterTest, WritesAllInOrderBeforeItGoes) {
  std::vector<std::string> names;
  {
    RecordWriter writer([&](uid_t, const std::string& name, const std::string&) {
      names.push_back(name.substr(name.find("Z-") + 2));
      return Status();
    });
    for (const char* id : {"a", "b", "c"}) {
      writer.Put(Named(id));
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a-n.json", "b-n.json", "c-n.json"}));
}

// As a file server does that is gone. Its thread may live longer than the test.
TEST(RecordWriterTest, AFolderThatStandsStillHoldsNobodyUp) {
  const auto open_again = std::make_shared<std::promise<void>>();
  const std::shared_future<void> opened = open_again->get_future().share();
  const auto begun = std::make_shared<std::atomic<int>>(0);
  const auto start = steady_clock::now();
  {
    RecordWriter writer([opened, begun](uid_t, const std::string&, const std::string&) {
      ++*begun;
      opened.wait();
      return Status();
    });
    for (int i = 0; i < 5'000; ++i) {
      writer.Put(Named(std::to_string(i)));
    }
    EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(2)) << "no Put waits";
  }
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_LE(begun->load(), 1);
  open_again->set_value();
}

TEST(RecordWriterTest, FailuresLoseOneRecordOnly) {
  std::atomic<int> written = 0;
  {
    RecordWriter writer([&](uid_t, const std::string&, const std::string&) {
      return ++written == 1 ? Status(ErrorCode::kSystem, "No space left on device") : Status();
    });
    writer.Put(Named("a"));
    writer.Put(Named("b"));
  }
  EXPECT_EQ(written, 2);
}

}  // namespace
}  // namespace ferry::daemon
