// The link between two nodes is cut in the middle of a long message, in a network namespace of the
// test's own: briefly, and it resumes; for longer, and both ranks are told, then the next one
// passes over the link that is back. Others do not notice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "tests/faults/cut_fixture.h"
#include "tests/support/processes.h"

namespace ferry::faults {
namespace {

using e2e::Eventually;
using e2e::RunCommand;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr char kProgram[] = "tests/faults/ranks/long_message";
constexpr char kFerryctl[] = "tools/ferryctl/ferryctl";

constexpr uint64_t kLongBytes = 256ULL << 20;
constexpr int kMiddle = 500;  // of the 1025 blocks of its reads
constexpr int kWindow = 4;    // of them under way at a time
constexpr int kReceiver = 3;  // the sender is rank 0
constexpr int kBystanders[] = {1, 2, 4, 5};

// The long message goes from private to private memory, so that all stages take part. In the middle
// all the reads that may be under way stop; they go on when the link is cut.
class LongMessageCutTest : public CutTest {
 protected:
  json Ask(const std::string& directory, std::vector<std::string> words) {
    words.insert(words.begin(), {kFerryctl, "--run_directory=" + directory});
    words.emplace_back("--json");
    return json::parse(RunCommand(std::move(words)).out, nullptr, false);
  }
  json Nic(const std::string& directory) { return Ask(directory, {"nics"})["nics"][0]; }
  static bool Stall(const json& faults) {
    return std::all_of(faults["faults"].begin(), faults["faults"].end(),
                       [](const json& fault) { return fault["state"] == "stalls"; });
  }

  void StartLong() {
    std::string faults;
    for (int read = kMiddle; read < kMiddle + kWindow; ++read) {
      faults += (faults.empty() ? "" : ",") + ("pull.read:" + std::to_string(read)) + ":stall";
    }
    // The first data over the returned link waits for TCP to try again, for as long as the cut
    // lasted.
    StartJob(6, {"--faults=" + faults}, {kProgram, std::to_string(kLongBytes)}, 10'000);
    for (const int rank : kBystanders) {
      ASSERT_TRUE(job_->WaitForOutput("rank " + std::to_string(rank) + ": under way\n"));
    }
    ASSERT_NO_FATAL_FAILURE(FindRanks(kProgram, 6));
    daemons_ = Daemons(*job_);
    ASSERT_THAT(daemons_, SizeIs(2));
    ASSERT_TRUE(Eventually([&] { return Stall(Ask(daemons_[1], {"faults"})); }));
    json nic;
    EXPECT_TRUE(Eventually([&] {
      nic = Nic(daemons_[1]);
      return nic["staging_busy"] == kWindow;
    })) << nic;
    EXPECT_GT(nic["bytes_received"], kLongBytes / 4) << nic;
    EXPECT_LT(nic["bytes_received"], kLongBytes * 3 / 4) << nic;
    memfds_ = Memfds();
  }
  void CutInTheMiddle() {
    SetLink("down");
    Ask(daemons_[1], {"faults", "--release"});
    ExpectBystandersGoOn();
  }
  // Each bystander reports an exchange that ends after this begins.
  void ExpectBystandersGoOn() {
    for (const int rank : kBystanders) {
      const std::string said = "rank " + std::to_string(rank) + ": exchanged ";
      const size_t before = Count(said);
      kill(ranks_[static_cast<size_t>(rank)], SIGUSR2);
      EXPECT_TRUE(Eventually([&] { return Count(said) > before; })) << job_->Output();
    }
  }
  size_t Count(const std::string& text) {
    const std::string out = job_->Output();
    size_t count = 0;
    for (size_t at = out.find(text); at != std::string::npos; at = out.find(text, at + 1)) {
      ++count;
    }
    return count;
  }
  // Waits until both ends have passed so many long messages.
  void ExpectPassed(int messages) {
    for (const int rank : {0, kReceiver}) {
      EXPECT_TRUE(job_->WaitForOutput("rank " + std::to_string(rank) + ": passed " +
                                      std::to_string(messages) + "\n"))
          << job_->Output();
    }
  }
  void PassAnother(int messages) {
    kill(ranks_[0], SIGUSR2);
    ExpectPassed(messages);
  }
  std::vector<size_t> Memfds() {
    std::vector<size_t> counts;
    for (const pid_t pid : job_->Find("--ready-fd")) {
      counts.push_back(tests::MemfdsOf(pid).size());
    }
    return counts;
  }
  // Called between two messages.
  void ExpectNothingLeft() {
    for (const std::string& directory : daemons_) {
      json nic;
      EXPECT_TRUE(Eventually([&] {
        nic = Nic(directory);
        return nic["staging_busy"] == 0 && nic["staging_waits"] == 0 && nic["outstanding"] == 0;
      })) << nic;
      const json registrations = Ask(directory, {"status"})["registrations"];
      EXPECT_EQ(registrations["waiting"], 0) << registrations;
      EXPECT_EQ(registrations["refusals"], 0) << registrations;
    }
    EXPECT_EQ(Memfds(), memfds_);
  }

  std::vector<std::string> daemons_;
  std::vector<size_t> memfds_;  // by daemon, in the middle of the first message
};

TEST_F(LongMessageCutTest, BrieflyAndItResumes) {
  ASSERT_NO_FATAL_FAILURE(StartLong());
  const uint64_t cut_ns = MonotonicNs();
  CutInTheMiddle();
  const std::chrono::nanoseconds so_far(MonotonicNs() - cut_ns);
  std::this_thread::sleep_for(Scaled(9000) - so_far);  // the fault itself
  EXPECT_EQ(Count(": passed "), 0U);
  SetLink("up");
  ExpectPassed(1);
  const json nic = Nic(daemons_[1]);
  EXPECT_EQ(nic["errors"], 0) << nic;
  EXPECT_GE(nic["bytes_received"], kLongBytes) << nic;
  ExpectNothingLeft();
  PassAnother(2);
  ExpectNothingLeft();
  EXPECT_THAT(Finish(), Not(HasSubstr(": cut at")));
}

TEST_F(LongMessageCutTest, ForLongerAndBothAreToldThenTheNextOnePasses) {
  ASSERT_NO_FATAL_FAILURE(StartLong());
  CutInTheMiddle();
  for (const char* rank : {"rank 0", "rank 3"}) {
    EXPECT_NE(When(rank + std::string(": cut at ")), 0U);
  }
  EXPECT_EQ(Count(": passed "), 0U);
  ExpectBystandersGoOn();
  SetLink("up");
  for (const char* rank : {"rank 0", "rank 3"}) {
    EXPECT_NE(When(rank + std::string(": back at ")), 0U);
  }
  ExpectPassed(1);
  ExpectNothingLeft();
  PassAnother(2);
  ExpectNothingLeft();
  const std::string out = Finish();
  for (const int rank : kBystanders) {
    EXPECT_THAT(out, Not(HasSubstr("rank " + std::to_string(rank) + ": cut")));
  }
}

}  // namespace
}  // namespace ferry::faults
