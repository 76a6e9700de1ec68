// Hostile users against the daemons of two nodes: ranks and a node that do anything, and a user who
// has neither (hostile_rank, hostile_peer, hostile_stranger), while jobs of a second user run there
// (bystander.h). Where it may, the test has a network and folders for names of its own, so that
// all that is there is a door.
//
// The daemons must live, and keep within some memory; the second user loses nothing, and waits
// hardly longer than he does while as many harmless processes keep the machine as busy; and in the
// end nothing is left.
//
// HOSTILE_SECONDS: for how long. HOSTILE_SEED: of a run that is to be done again; the seed is
// printed. HOSTILE_WITHOUT: attacks that are left out, by name. HOSTILE_FACTOR: how many times as
// long as beside harmless processes exchanges may take, 99 in a hundred, and jobs, half of them;
// HOSTILE_SHORTEST_MS: what is shorter there counts as this (by default two turns of others on the
// same core).
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/unique_fd.h"
#include "config/environment.h"
#include "tests/e2e/command.h"
#include "tests/hostile/bystander.h"
#include "tests/hostile/node.h"
#include "tests/support/patience.h"
#include "tests/support/processes.h"

namespace ferry::hostile {
namespace {

using e2e::Command;
using e2e::CommandResult;
using testing::HasSubstr;

constexpr char kRank[] = "tests/hostile/hostile_rank";
constexpr char kPeer[] = "tests/hostile/hostile_peer";
constexpr char kStranger[] = "tests/hostile/hostile_stranger";
constexpr char kBusy[] = "tests/hostile/busy";
constexpr unsigned kHostileUid = 12'345;  // of the ranks; the others have users of their own
constexpr uint64_t kNsPerS = 1'000'000'000;

// Of a daemon, beyond what it has at its start: a few times what it takes beside harmless
// processes, and what it may keep for a node that does not read.
constexpr uint64_t kMostMoreBytes = 64 << 20;
// Of the most in the second half of a long run, beyond that in the first half: a link that is not
// read, and is cut, may keep as much for moments.
constexpr uint64_t kMostGrowthBytes = 16 << 20;

std::string Variable(const char* name, const std::string& otherwise) {
  const auto value = config::FindVariable(config::ProcessEnvironment(), name);
  return value.has_value() ? std::string(*value) : otherwise;
}

std::string Without() { return Variable("HOSTILE_WITHOUT", ""); }

// A network with nothing but loopback, and places for names that no other process uses. Before any
// other thread is there.
bool EnterOwnMachine() {
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0 ||
      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return false;
  }
  for (const char* place : {"/tmp", "/run", "/dev/shm", "/var/tmp"}) {
    if (mount("hostile", place, "tmpfs", 0, "mode=1777") != 0) {
      return false;
    }
  }
  const UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  return ioctl(fd.get(), SIOCSIFFLAGS, &request) == 0;
}

// Of windows of one kind: how long each took.
struct WindowTimes {
  std::vector<uint64_t> jobs_us;
  std::vector<uint64_t> scrapes_us;
};

class HostileTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { has_own_machine_ = EnterOwnMachine(); }

  // So that what one of them uses up is not missed by the next.
  static unsigned UserOf(const std::string& program) {
    return kHostileUid + (program == kPeer ? 1 : program == kStranger ? 2 : 0);
  }
  std::vector<std::string> Attack(const char* program, const Node& on, const Node& other,
                                  uint64_t seed, uint64_t seconds) const {
    return {program,
            on.run_directory(),
            other.run_directory(),
            "victim",
            std::to_string(seed),
            std::to_string(seconds),
            daemon::CanBecomeOthers() ? std::to_string(UserOf(program)) : "-",
            "--without=" + Without()};
  }
  // The hostile programs of one window.
  std::vector<std::vector<std::string>> Attacks(uint64_t round, uint64_t seconds) const {
    const uint64_t seed = seed_ + 10 * round;
    std::vector<std::vector<std::string>> attacks = {
        Attack(kRank, here_, there_, seed, seconds),
        Attack(kRank, there_, here_, seed + 1, seconds),
        Attack(kPeer, here_, there_, seed + 2, seconds)};
    // Elsewhere he would try the doors of whatever else runs on this machine.
    if (has_own_machine_) {
      attacks.push_back(Attack(kStranger, here_, there_, seed + 3, seconds));
    }
    return attacks;
  }

  void ExpectNothingHeld(Node& node) {
    std::string held;
    const auto holds_nothing = [&] { return (held = node.Held()).empty(); };
    // Links that are cut last take some timeouts until they are given up.
    EXPECT_TRUE(e2e::Eventually(holds_nothing) || e2e::Eventually(holds_nothing)) << held;
  }

  static std::vector<std::unique_ptr<Command>> StartAll(
      const std::vector<std::vector<std::string>>& all, unsigned limit_s) {
    std::vector<std::unique_ptr<Command>> programs;
    for (const auto& arguments : all) {
      programs.push_back(
          std::make_unique<Command>(arguments, std::vector<std::string>(), "", limit_s));
    }
    return programs;
  }
  // The CPU time that the programs have used so far, all together; they may have ended.
  static uint64_t CpuNsOf(const std::vector<std::unique_ptr<Command>>& programs) {
    uint64_t ticks = 0;
    for (const auto& program : programs) {
      const std::string stat = tests::ReadFile("/proc/" + std::to_string(program->pid()) + "/stat");
      std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
      std::string skipped;
      uint64_t user = 0;
      uint64_t system = 0;
      for (int field = 0; field < 11; ++field) {  // from the state on
        fields >> skipped;
      }
      fields >> user >> system;
      ticks += user + system;
    }
    return ticks * kNsPerS / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  }

  // Jobs of the second user for so long.
  Window RunJobs(Bystander& bystander, const std::string& name, uint64_t seconds,
                 WindowTimes* times) {
    Window window{MonotonicNs(), 0};
    const uint64_t end_ns = window.begin_ns + seconds * kNsPerS;
    for (int job = 1; MonotonicNs() < end_ns && !HasFailure(); ++job) {
      times->jobs_us.push_back(bystander.RunJob(name + "-" + std::to_string(job)));
      const uint64_t begin_ns = MonotonicNs();
      EXPECT_TRUE(here_.Scrape() && there_.Scrape()) << "metrics are not to be had";
      times->scrapes_us.push_back((MonotonicNs() - begin_ns) / 1000);
    }
    window.end_ns = MonotonicNs();
    return window;
  }
  // By round: at no time too much, and in the end no more than at first.
  static void ExpectNoGrowth(const std::vector<uint64_t>& most_bytes, uint64_t first_bytes) {
    ASSERT_FALSE(most_bytes.empty()) << "no round with hostile processes has ended";
    const auto half = most_bytes.begin() + static_cast<ptrdiff_t>(most_bytes.size() / 2);
    const uint64_t later = *std::max_element(half, most_bytes.end());
    const uint64_t earlier =
        half == most_bytes.begin() ? later : *std::max_element(most_bytes.begin(), half);
    std::printf("memory of a daemon: %llu KiB at first, %llu KiB at most, later %llu KiB at most\n",
                static_cast<unsigned long long>(first_bytes >> 10),
                static_cast<unsigned long long>(earlier >> 10),
                static_cast<unsigned long long>(later >> 10));
    EXPECT_LE(std::max(earlier, later), first_bytes + kMostMoreBytes);
    EXPECT_LE(later, earlier + kMostGrowthBytes);
  }
  // So many of a hundred. Of what there are few, 99 in a hundred would be the longest of all.
  void ExpectNearly(const char* what, const Times& harmless, const Times& hostile,
                    double percent) const {
    std::printf("%s, beside harmless processes: %s\n", what, harmless.Text().c_str());
    std::printf("%s, beside hostile ones:       %s\n", what, hostile.Text().c_str());
    const uint64_t most_us = factor_ * std::max(harmless.Percentile(percent), shortest_us_);
    EXPECT_LE(hostile.Percentile(percent), most_us)
        << what << ", in microseconds: more than " << factor_ << " times as long";
  }

  static inline bool has_own_machine_ = false;
  const uint64_t seconds_ = std::stoull(Variable("HOSTILE_SECONDS", "18"));
  const uint64_t factor_ = std::stoull(Variable("HOSTILE_FACTOR", "3"));
  const uint64_t shortest_us_ = 1000 * std::stoull(Variable("HOSTILE_SHORTEST_MS", "10"));
  const uint64_t seed_ =
      std::stoull(Variable("HOSTILE_SEED", std::to_string(std::random_device()())));
  Node here_{"here"};
  Node there_{"there"};
};

// Else it would prove nothing that the daemons survive what the hostile node says.
TEST_F(HostileTest, ItsNodeIsTakenForGenuine) {
  const NicCounts before = here_.Nics();
  std::vector<std::string> arguments = Attack(kPeer, here_, there_, seed_, tests::kPatienceS);
  arguments.emplace_back("--proof");
  const CommandResult result = e2e::RunCommand(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("64 of 64 packets answered"));
  const NicCounts after = here_.Nics();
  EXPECT_EQ(after.received, before.received + 64);  // which were all answered, so none was dropped
  // The only thing that ferryd says to the node unasked is that the rank here has ended. Its
  // sending fails, and counts, if the node has gone by then.
  EXPECT_LE(after.failed, before.failed + 1);
}

TEST_F(HostileTest, HarmsNobodyElse) {
  std::printf("HOSTILE_SEED=%llu, without %s\n", static_cast<unsigned long long>(seed_),
              Without().c_str());
  std::fflush(stdout);
  // Harmless and hostile windows take turns, so that what else the machine does falls on both.
  constexpr uint64_t kLongestTurnS = 60;
  const uint64_t rounds = std::max<uint64_t>(1, seconds_ / kLongestTurnS);
  const uint64_t turn_s = std::max<uint64_t>(1, seconds_ / rounds);
  const uint64_t harmless_s = std::max<uint64_t>(1, turn_s / 3);
  const uint64_t hostile_s = std::max<uint64_t>(1, turn_s - harmless_s);
  const auto limit_s = static_cast<unsigned>(turn_s + tests::kPatienceS);
  std::vector<Window> harmless;
  std::vector<Window> hostile;
  WindowTimes harmless_times;
  WindowTimes hostile_times;
  std::vector<uint64_t> most_here;  // by round
  std::vector<uint64_t> most_there;
  Bystander bystander(here_, there_);
  for (uint64_t round = 0; round < rounds && !HasFailure(); ++round) {
    const std::string name = "good-" + std::to_string(round);
    std::vector<std::unique_ptr<Command>> programs = StartAll(Attacks(round, hostile_s), limit_s);
    hostile.push_back(RunJobs(bystander, name + "-b", hostile_s, &hostile_times));
    const uint64_t percent = 100 * CpuNsOf(programs) / programs.size() /
                             (hostile.back().end_ns - hostile.back().begin_ns);
    for (const auto& program : programs) {
      const CommandResult result = program->Wait();
      EXPECT_EQ(result.exit_code, 0)
          << "signal " << result.signal << ": " << result.out << result.err;
      std::printf("%s", result.out.c_str());
    }
    for (Node* node : {&here_, &there_}) {
      ASSERT_TRUE(node->Lives()) << node->Errors();
    }
    // As many, which use as much of the CPUs.
    std::printf("each used %llu %% of a core\n", static_cast<unsigned long long>(percent));
    programs =
        StartAll(std::vector<std::vector<std::string>>(
                     programs.size(), {kBusy, std::to_string(std::max<uint64_t>(1, percent))}),
                 limit_s);
    harmless.push_back(RunJobs(bystander, name + "-a", harmless_s, &harmless_times));
    for (const auto& program : programs) {
      program->Signal(SIGKILL);
      program->Wait();
    }
    most_here.push_back(here_.TakeMostBytes());
    most_there.push_back(there_.TakeMostBytes());
  }
  bystander.EndSteadyJob();
  for (const bool are_long : {false, true}) {
    ExpectNearly(are_long ? "long exchanges" : "short exchanges",
                 bystander.Exchanges(are_long, harmless), bystander.Exchanges(are_long, hostile),
                 99);
  }
  ExpectNearly("jobs", Times(harmless_times.jobs_us), Times(hostile_times.jobs_us), 50);
  ExpectNearly("scrapes", Times(harmless_times.scrapes_us), Times(hostile_times.scrapes_us), 50);
  ExpectNoGrowth(most_here, here_.first_bytes());
  ExpectNoGrowth(most_there, there_.first_bytes());
  ExpectNothingHeld(here_);
  ExpectNothingHeld(there_);
  bystander.RunJob("afterwards");
  EXPECT_EQ(here_.Stop(), "");
  EXPECT_EQ(there_.Stop(), "");
}

}  // namespace
}  // namespace ferry::hostile
