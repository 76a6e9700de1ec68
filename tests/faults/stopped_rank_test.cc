// SIGSTOP of a rank for a while, in every role that it can have, then SIGCONT: no data is
// lost, and no other rank stops.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/unique_fd.h"
#include "shm/atomic.h"
#include "shm/layout/inbox_layout.h"
#include "shm/layout/session_layout.h"
#include "shm/segment.h"
#include "tests/faults/fault_fixture.h"
#include "tests/support/processes.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kPairs[] = "tests/faults/ranks/pairs";
constexpr auto kStop = std::chrono::milliseconds(1500);
constexpr auto kMoment = std::chrono::milliseconds(50);
constexpr auto kBetweenAttempts = std::chrono::microseconds(300);
constexpr int kAttempts = 20'000;

// ---- The memory of ranks

shm::Mapping MapForReading(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (!fd.valid() || fstat(fd.get(), &about) != 0 || about.st_size < 4096) {
    return {};
  }
  void* base =
      mmap(nullptr, static_cast<size_t>(about.st_size), PROT_READ, MAP_SHARED, fd.get(), 0);
  return base == MAP_FAILED
             ? shm::Mapping()
             : shm::Mapping(static_cast<std::byte*>(base), static_cast<uint64_t>(about.st_size));
}

// Looks into the shared memory of a rank from outside, through the descriptors its daemon holds: so
// that a rank can be stopped at the very moment at which it holds something. Read only.
class SegmentPeek {
 public:
  // Finds the segments of process `rank` among the descriptors of process `daemon`. found() tells
  // whether both are there.
  SegmentPeek(pid_t daemon, pid_t rank);
  bool found() const { return session_.valid() && inbox_.valid(); }

  // The thread that holds the rank's progress lease; 0 if none, or not a thread of the rank.
  pid_t LeaseHolder() const;
  // Returns true if a transfer of the rank has chunks that were claimed and are not done, and none
  // left to claim: its claimant is copying.
  bool HasClaimedChunk() const;

 private:
  const shm::SessionLayout& session() const {
    return *reinterpret_cast<const shm::SessionLayout*>(session_.base());
  }
  shm::Mapping session_;
  shm::Mapping inbox_;
};

SegmentPeek::SegmentPeek(pid_t daemon, pid_t rank) {
  for (const std::string& path : tests::MemfdsOf(daemon)) {
    shm::Mapping mapping = MapForReading(path);
    if (!mapping.valid()) {
      continue;
    }
    const auto& header = *reinterpret_cast<const shm::SegmentHeader*>(mapping.base());
    if (header.magic != shm::kSegmentMagic || header.creator_pid != static_cast<uint32_t>(rank)) {
      continue;
    }
    const bool is_session = header.kind == static_cast<uint32_t>(shm::SegmentKind::kSession);
    (is_session ? session_ : inbox_) = std::move(mapping);
  }
}

pid_t SegmentPeek::LeaseHolder() const {
  const shm::LeaseLayout& lease = session().lease;
  const uint32_t holder = shm::LoadAcquire(lease.word) & ~(shm::kLeaseWanted | shm::kLeaseBiased);
  const uint32_t thread = holder != 0 ? holder : shm::LoadAcquire(lease.owner);
  return thread == shm::kLeaseWorker ? 0 : static_cast<pid_t>(thread);
}

bool SegmentPeek::HasClaimedChunk() const {
  const shm::SegmentHeader& header = session().header;
  const auto* transfers = reinterpret_cast<const shm::TransferLayout*>(
      inbox_.base() + shm::InboxTransferOffset(header.local_size));
  const uint32_t used = shm::LoadAcquire(session().request_fresh);
  for (uint32_t i = 1; i < used && i < header.request_limit; ++i) {
    const shm::TransferLayout& transfer = transfers[i];
    if (shm::LoadAcquire(transfer.state) != static_cast<uint32_t>(shm::TransferState::kMatched) ||
        transfer.chunk_bytes == 0) {
      continue;
    }
    const uint64_t chunks = (transfer.size_bytes + transfer.chunk_bytes - 1) / transfer.chunk_bytes;
    const uint64_t claimed = shm::ClaimedChunks(shm::LoadAcquire(transfer.claim));
    if (claimed >= chunks && shm::LoadAcquire(transfer.done_chunks) < chunks) {
      return true;
    }
  }
  return false;
}

// ---- Ranks that are stopped

// Stops the process at a moment at which `holds()` is true.
bool StopWhile(pid_t pid, const std::function<bool()>& holds) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    tests::Stop(pid);
    if (holds()) {
      return true;
    }
    kill(pid, SIGCONT);
    std::this_thread::sleep_for(kBetweenAttempts);
  }
  return false;
}

long MessagesOf(Command* job, int rank) {
  const std::string text = job->Output();
  const std::string name = "rank " + std::to_string(rank) + ": message ";
  const size_t at = text.rfind(name);
  return at == std::string::npos ? 0 : std::atol(text.c_str() + at + name.size());
}

enum class Role {
  kSender,
  kReceiver,
  kLeaseHolder,
  kChunkClaimantWhoSends,
  kChunkClaimantWhoReceives
};

class StoppedRankTest : public testing::TestWithParam<Role> {
 protected:
  // Stops the rank that has the role; returns its pid, or 0.
  static pid_t StopIn(Role role, pid_t daemon, const std::vector<pid_t>& ranks) {
    const bool sends = role == Role::kSender || role == Role::kChunkClaimantWhoSends;
    const pid_t victim = ranks[sends ? 0 : 1];
    const SegmentPeek sender(daemon, ranks[0]);  // it owns the transfers
    const SegmentPeek receiver(daemon, ranks[1]);
    if (!sender.found() || !receiver.found()) {
      return 0;
    }
    std::function<bool()> holds = [] { return true; };
    if (role == Role::kLeaseHolder) {
      holds = [&] { return receiver.LeaseHolder() == victim; };
    } else if (role != Role::kSender && role != Role::kReceiver) {
      // Other processes that may copy do so meanwhile: the rest is the victim's.
      holds = [&] {
        if (!sender.HasClaimedChunk()) {
          return false;
        }
        std::this_thread::sleep_for(kMoment);
        return sender.HasClaimedChunk();
      };
    }
    return StopWhile(victim, holds) ? victim : 0;
  }
};

TEST_P(StoppedRankTest, LosesNothingAndStopsNobodyElse) {
  DaemonForTest daemon;
  // Small messages keep the lease busy, messages of all sizes the copies.
  Command job(GetParam() == Role::kLeaseHolder ? JobOn(daemon, 4, {kPairs, "8"})
                                               : JobOn(daemon, 4, {kPairs}));
  ASSERT_TRUE(UnderWay(&job, 4));
  const std::vector<pid_t> ranks = RankPids(job, kPairs, 4);
  ASSERT_THAT(ranks, SizeIs(4));
  const pid_t victim = StopIn(GetParam(), daemon.pid(), ranks);
  ASSERT_NE(victim, 0) << "no rank could be caught in that role";

  const long bystanders_before = MessagesOf(&job, 3);
  std::this_thread::sleep_for(kStop);  // the fault itself
  const long victims_then = MessagesOf(&job, 1);
  std::this_thread::sleep_for(kMoment);
  EXPECT_EQ(MessagesOf(&job, 1), victims_then) << "the stopped pair did not stand still";
  EXPECT_TRUE(e2e::Eventually([&] { return MessagesOf(&job, 3) > bystanders_before; }))
      << "others stood still";
  EXPECT_THAT(ErrorsIn(job.Output()), IsEmpty());  // a stopped rank is not dead
  kill(victim, SIGCONT);
  kill(ranks[0], SIGUSR1);
  kill(ranks[2], SIGUSR1);

  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  ExpectAllRight(result.out, 4);
  daemon.Stop();
}

INSTANTIATE_TEST_SUITE_P(Roles, StoppedRankTest,
                         testing::Values(Role::kSender, Role::kReceiver, Role::kLeaseHolder,
                                         Role::kChunkClaimantWhoSends,
                                         Role::kChunkClaimantWhoReceives));

}  // namespace
}  // namespace ferry::faults
