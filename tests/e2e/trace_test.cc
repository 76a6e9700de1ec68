// `ferryctl trace` with real daemons and ranks: two nodes, staged messages, one trace of each node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/daemon/trace_reading.h"
#include "tests/e2e/traced_job.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using daemon::ReadTrace;
using daemon::TraceReading;
using daemon::TraceSpan;
using testing::HasSubstr;
using testing::SizeIs;
using tests::ReadFile;

constexpr uint64_t kMessageBytes = 1'000'000;  // from private memory to private memory
constexpr uint64_t kBlockBytes = 32 << 10;

class TraceTest : public testing::Test {
 protected:
  TraceTest() { EXPECT_NE(mkdtemp(directory_.data()), nullptr); }
  ~TraceTest() override { fs::remove_all(directory_); }
  void SetUp() override { ASSERT_THAT(job_.run_directories(), SizeIs(2)); }

  CommandResult Trace(size_t node, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "trace");
    return job_.Ask(node, std::move(arguments));
  }
  std::string File(const std::string& name) const { return directory_ + "/" + name; }

  std::string directory_ = "/tmp/ferry-trace-XXXXXX";
  // The heap is too small for such messages, which would otherwise go through it.
  TracedJob job_{{"--heap_bytes=1048576", "--staging_block_bytes=" + std::to_string(kBlockBytes)},
                 {std::to_string(kMessageBytes)}};
};

// By message and, within it, by offset.
using Steps = std::map<std::string, std::map<uint64_t, TraceSpan>>;

Steps StepsOf(const TraceReading& reading, const std::string& name) {
  Steps steps;
  for (const TraceSpan& span : reading.Named(name)) {
    const auto message = span.arguments["message"].get<std::string>();
    steps[message][span.arguments["offset"].get<uint64_t>()] = span;
  }
  return steps;
}

uint64_t BytesOf(const std::map<uint64_t, TraceSpan>& blocks) {
  uint64_t bytes = 0;
  for (const auto& [offset, span] : blocks) {
    bytes += uint64_t{span.arguments["bytes"]};
  }
  return bytes;
}

// Checks every message that is there as a whole.
void ExpectInterleaved(const TraceReading& sender, const TraceReading& receiver) {
  const Steps in = StepsOf(sender, "copy in");
  Steps reads = StepsOf(receiver, "RDMA read");
  Steps out = StepsOf(receiver, "copy out");
  int messages = 0;
  for (const auto& [message, blocks] : in) {
    if (BytesOf(blocks) != kMessageBytes || BytesOf(reads[message]) != kMessageBytes ||
        BytesOf(out[message]) != kMessageBytes) {
      continue;
    }
    ++messages;
    for (const auto& [offset, block] : blocks) {
      const TraceSpan& read = reads[message][offset];
      EXPECT_LE(block.end_ns, read.begin_ns);
      EXPECT_LE(read.end_ns, out[message][offset].begin_ns);
    }
    // While the last block was still to be copied in, others had been through network and copy out:
    // nothing waited for the message as a whole.
    const TraceSpan& last = blocks.rbegin()->second;
    EXPECT_LT(reads[message].begin()->second.end_ns, last.begin_ns);
    EXPECT_LT(out[message].begin()->second.end_ns, last.begin_ns);
  }
  EXPECT_GT(messages, 10);
}

TEST_F(TraceTest, BlocksOfAMessageAreCopiedReadAndCopiedInterleaved) {
  for (size_t node = 0; node < 2; ++node) {
    const CommandResult started = Trace(node, {"start"});
    EXPECT_EQ(started.exit_code, 0) << started.err;
    EXPECT_THAT(started.out, HasSubstr("`ferryctl trace stop --output FILE`"));
  }
  ASSERT_TRUE(job_.LetMessagesPass());
  std::vector<TraceReading> readings;
  for (size_t node = 0; node < 2; ++node) {
    const std::string file = File("node" + std::to_string(node) + ".json");
    const CommandResult stopped = Trace(node, {"stop", "--output", file});
    EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
    EXPECT_THAT(stopped.out, HasSubstr("open it in ui.perfetto.dev"));
    readings.push_back(ReadTrace(ReadFile(file)));
  }
  // Rank 0, the sender, may be on either node: run directories have random names.
  if (readings[0].Named("copy in").empty()) {
    std::swap(readings[0], readings[1]);
  }
  EXPECT_EQ(readings[0].other["dropped_records"], 0);
  ExpectInterleaved(readings[0], readings[1]);
  EXPECT_FALSE(readings[0].counters.empty());
}

TEST_F(TraceTest, MistakesAreToldAndCostNoTrace) {
  const std::string file = File("trace.json");
  CommandResult result = Trace(0, {"stop", "--output", file});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no trace is running: `ferryctl trace start` begins one"));
  EXPECT_FALSE(fs::exists(file));

  EXPECT_EQ(Trace(0, {"start"}).exit_code, 0);
  result = Trace(0, {"start"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("a trace is running already"));

  result = Trace(0, {"stop", "--output", File("nowhere/trace.json")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot write the trace to " + File("nowhere/trace.json")));
  // The trace is still running.
  result = Trace(0, {"stop", "--output", file, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(nlohmann::json::parse(result.out)["records"], 0);
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, geteuid());

  EXPECT_EQ(Trace(0, {"pause"}).exit_code, 2);
  EXPECT_EQ(Trace(0, {}).exit_code, 2);
}

TEST_F(TraceTest, GoesToStandardOutputAndReplacesWhatTheFileHad) {
  EXPECT_EQ(Trace(1, {"start"}).exit_code, 0);
  const CommandResult printed = Trace(1, {"stop"});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  ReadTrace(printed.out);

  EXPECT_EQ(Trace(1, {"start"}).exit_code, 0);
  const std::string file = File("trace.json");
  std::ofstream(file) << std::string(10'000'000, 'x');
  EXPECT_EQ(Trace(1, {"stop", "--output", file}).exit_code, 0);
  ReadTrace(ReadFile(file));
}

TEST_F(TraceTest, ADiskThatIsFullIsAnError) {
  EXPECT_EQ(Trace(0, {"start"}).exit_code, 0);
  const CommandResult result = Trace(0, {"stop", "--output", "/dev/full"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("writing the trace to /dev/full"));
}

}  // namespace
}  // namespace ferry::e2e
