// Figures that measured ranks leave with their daemon are checked, bounded, and kept beyond their
// ends.
#include "daemon/jobs/job_profiles.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shm/daemon_trace.h"
#include "tests/daemon/fake_data_plane.h"

namespace ferry::daemon {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t kBytes = 1 << 20;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

UniqueFd Memory(uint64_t bytes = kBytes, int seals = kSeals) {
  UniqueFd fd(memfd_create("profile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

std::shared_ptr<Session> SessionOf(uint32_t rank, const std::string& job_id = "job",
                                   uid_t uid = 7) {
  auto session = std::make_shared<Session>();
  session->job_id = job_id;
  session->rank = rank;
  session->uid = uid;
  return session;
}

struct Piece {
  uint64_t offset;
  std::string bytes;
};

std::vector<Piece> ReadAll(const RankProfile& profile, uint32_t parts, size_t piece_bytes = 4096) {
  std::vector<Piece> pieces;
  EXPECT_TRUE(ReadProfile(profile, parts, piece_bytes, [&](uint64_t offset, std::string_view text) {
                pieces.push_back({offset, std::string(text)});
                return true;
              }).ok());
  return pieces;
}

void WriteHeader(int fd, uint64_t trace_offset, uint64_t trace_bytes = 0) {
  shm::ProfileHeader header{};
  header.magic = shm::kProfileMagic;
  header.trace_offset = trace_offset;
  header.trace_bytes = trace_bytes;
  ASSERT_EQ(pwrite(fd, &header, sizeof(header), 0), static_cast<ssize_t>(sizeof(header)));
}

// ---- What is taken ------------------------------------------------------------------------------

TEST(JobProfilesTest, KeepsARanksMemory) {
  JobProfiles profiles(kBytes);
  const auto session = SessionOf(3);
  EXPECT_TRUE(profiles.Keep(session, Memory(), kBytes).ok());
  const JobProfiles::Found found = profiles.Find("job");
  EXPECT_EQ(found.uid, 7U);
  ASSERT_THAT(found.ranks, SizeIs(1));
  EXPECT_EQ(found.ranks[0]->rank, 3U);
  EXPECT_EQ(found.ranks[0]->bytes, kBytes);
}

TEST(JobProfilesTest, RefusesWhatIsNotSealed) {
  JobProfiles profiles(kBytes);
  for (const int seals : {0, F_SEAL_SHRINK, F_SEAL_GROW}) {
    const Status status = profiles.Keep(SessionOf(0), Memory(kBytes, seals), kBytes);
    EXPECT_EQ(status.code(), ErrorCode::kCorrupt) << seals;
    EXPECT_THAT(status.message(), HasSubstr("sealed"));
  }
  EXPECT_THAT(profiles.Find("job").ranks, IsEmpty());
}

TEST(JobProfilesTest, RefusesWhatIsNoMemory) {
  JobProfiles profiles(kBytes);
  UniqueFd null(open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(profiles.Keep(SessionOf(0), std::move(null), kBytes).code(), ErrorCode::kCorrupt);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd other(ends[1]);
  EXPECT_EQ(profiles.Keep(SessionOf(0), UniqueFd(ends[0]), kBytes).code(), ErrorCode::kCorrupt);
}

TEST(JobProfilesTest, RefusesAnotherSizeThanTheRankSays) {
  JobProfiles profiles(kBytes);
  EXPECT_EQ(profiles.Keep(SessionOf(0), Memory(), kBytes + 1).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(profiles.Keep(SessionOf(0), Memory(), 0).code(), ErrorCode::kCorrupt);
}

TEST(JobProfilesTest, TakesOneOfARank) {
  JobProfiles profiles(4 * kBytes);
  const auto session = SessionOf(0);
  ASSERT_TRUE(profiles.Keep(session, Memory(), kBytes).ok());
  EXPECT_EQ(profiles.Keep(session, Memory(), kBytes).code(), ErrorCode::kAlreadyExists);
}

TEST(JobProfilesTest, BeyondTheBoundSaysWhy) {
  JobProfiles profiles(2 * kBytes);
  ASSERT_TRUE(profiles.Keep(SessionOf(0), Memory(), kBytes).ok());
  ASSERT_TRUE(profiles.Keep(SessionOf(1), Memory(), kBytes).ok());
  EXPECT_EQ(profiles.Keep(SessionOf(2), Memory(), kBytes).code(), ErrorCode::kLimitExceeded);
  EXPECT_TRUE(profiles.Keep(SessionOf(0, "other"), Memory(), kBytes).ok())
      << "each job has its own";
  const JobProfiles::Found found = profiles.Find("job");
  ASSERT_THAT(found.ranks, SizeIs(3));
  EXPECT_THAT(found.ranks[2]->refusal, HasSubstr("profile_bytes"));
  EXPECT_EQ(found.ranks[2]->fd, nullptr);
}

TEST(JobProfilesTest, DropsAllProgramsOfALaunch) {
  JobProfiles profiles(4 * kBytes);
  ASSERT_TRUE(profiles.Keep(SessionOf(0), Memory(), kBytes).ok());
  ASSERT_TRUE(profiles.Keep(SessionOf(0, "job#2"), Memory(), kBytes).ok());
  ASSERT_TRUE(profiles.Keep(SessionOf(0, "job2"), Memory(), kBytes).ok());
  profiles.Drop("job");
  EXPECT_THAT(profiles.Find("job").ranks, IsEmpty());
  EXPECT_THAT(profiles.Find("job#2").ranks, IsEmpty());
  EXPECT_THAT(profiles.Find("job2").ranks, SizeIs(1));
}

// Its programs follow each other: each would be within the bound.
TEST(JobProfilesTest, TheBoundIsThatOfAllProgramsOfALaunch) {
  JobProfiles profiles(2 * kBytes);
  for (const char* id : {"job", "job#2"}) {
    EXPECT_TRUE(profiles.Keep(SessionOf(0, id), Memory(), kBytes).ok());
  }
  EXPECT_EQ(profiles.Keep(SessionOf(0, "job#3"), Memory(), kBytes).code(),
            ErrorCode::kLimitExceeded);
  profiles.Drop("job");
  EXPECT_TRUE(profiles.Keep(SessionOf(0, "job#3"), Memory(), kBytes).ok());
}

TEST(JobProfilesTest, KeepsNoMoreFilesThanAPartOfThisProcesss) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  JobProfiles profiles(1 << 30);
  uint32_t kept = 0;
  while (kept < 256 && profiles.Keep(SessionOf(kept), Memory(4096), 4096).ok()) {
    ++kept;
  }
  EXPECT_EQ(kept, 32U);
  EXPECT_THAT(profiles.Find("job").ranks.back()->refusal, HasSubstr("files"));
  profiles.Drop("job");
  EXPECT_TRUE(profiles.Keep(SessionOf(0), Memory(4096), 4096).ok()) << "they are given back";
  setrlimit(RLIMIT_NOFILE, &before);
}

// ---- What is read -------------------------------------------------------------------------------

TEST(JobProfilesTest, LeavesHolesOutAndCutsPieces) {
  JobProfiles profiles(kBytes);
  UniqueFd fd = Memory();
  WriteHeader(fd.get(), kBytes);
  const std::string text(6000, 'x');
  ASSERT_EQ(pwrite(fd.get(), text.data(), text.size(), 65536), 6000);
  ASSERT_TRUE(profiles.Keep(SessionOf(0), std::move(fd), kBytes).ok());
  const auto pieces = ReadAll(*profiles.Find("job").ranks[0], kProfilePart);
  uint64_t bytes = 0;
  for (const Piece& piece : pieces) {
    EXPECT_LE(piece.bytes.size(), 4096U);
    bytes += piece.bytes.size();
  }
  EXPECT_GE(bytes, 6000U);
  EXPECT_LE(bytes, 3 * 4096U) << "pages that were never written";
}

TEST(JobProfilesTest, PartsAreApart) {
  JobProfiles profiles(kBytes);
  constexpr uint64_t kTrace = 512 << 10;
  UniqueFd fd = Memory();
  WriteHeader(fd.get(), kTrace);
  ASSERT_EQ(pwrite(fd.get(), "p", 1, 8192), 1);
  ASSERT_EQ(pwrite(fd.get(), "t", 1, kTrace), 1);
  ASSERT_TRUE(profiles.Keep(SessionOf(0), std::move(fd), kBytes).ok());
  const auto found = profiles.Find("job");
  for (const Piece& piece : ReadAll(*found.ranks[0], kProfilePart)) {
    EXPECT_LT(piece.offset, kTrace);
  }
  const auto trace = ReadAll(*found.ranks[0], kTracePart);
  ASSERT_FALSE(trace.empty());
  EXPECT_EQ(trace[0].offset, 0U) << "the header comes with it";
  EXPECT_EQ(trace.back().offset, kTrace);
}

// A rank may say anything of where its parts lie.
TEST(JobProfilesTest, AnImpossibleHeaderReadsNothingBeyondTheMemory) {
  for (const uint64_t offset : {uint64_t{0}, kBytes + 1, UINT64_MAX}) {
    JobProfiles profiles(kBytes);
    UniqueFd fd = Memory();
    WriteHeader(fd.get(), offset);
    ASSERT_TRUE(profiles.Keep(SessionOf(0), std::move(fd), kBytes).ok());
    for (const Piece& piece : ReadAll(*profiles.Find("job").ranks[0], kProfilePart | kTracePart)) {
      EXPECT_LE(piece.offset + piece.bytes.size(), kBytes);
    }
  }
}

TEST(JobProfilesTest, AReaderThatHasEnoughEndsIt) {
  JobProfiles profiles(kBytes);
  UniqueFd fd = Memory();
  const std::string text(kBytes, 'x');
  ASSERT_EQ(pwrite(fd.get(), text.data(), text.size(), 0), static_cast<ssize_t>(kBytes));
  ASSERT_TRUE(profiles.Keep(SessionOf(0), std::move(fd), kBytes).ok());
  int pieces = 0;
  EXPECT_TRUE(ReadProfile(*profiles.Find("job").ranks[0], kProfilePart, 4096,
                          [&](uint64_t, std::string_view) { return ++pieces < 2; })
                  .ok());
  EXPECT_EQ(pieces, 2);
}

// ---- Events of this daemon ----------------------------------------------------------------------

class DaemonEventsTest : public testing::Test {
 protected:
  // A rank of the job comes, which keeps so many bytes of events.
  void Come(uint32_t rank, const std::string& job_id, uid_t uid = 7,
            uint64_t trace_bytes = 64 << 10) {
    UniqueFd fd = Memory();
    WriteHeader(fd.get(), 4096, trace_bytes);
    ASSERT_TRUE(profiles_.Keep(SessionOf(rank, job_id, uid), std::move(fd), kBytes).ok());
  }
  // Has the daemon do something for the job.
  void Work(const std::string& job_id, uint64_t bytes) {
    shm::DaemonTraceSlot event{};
    event.work = static_cast<uint8_t>(shm::DaemonWork::kEagerSend);
    event.bytes = bytes;
    ASSERT_NE(plane_.JobTrace(job_id), nullptr);
    plane_.JobTrace(job_id)->Add(event);
  }
  // Reads the daemon's events about the job.
  std::vector<uint64_t> Read(const std::string& job_id) const {
    const auto daemon = profiles_.Find(job_id).daemon;
    std::vector<uint64_t> bytes;
    if (daemon == nullptr || daemon->fd == nullptr) {
      ADD_FAILURE() << "there is no ring";
      return bytes;
    }
    std::vector<std::byte> copy(daemon->bytes);
    for (const Piece& piece : ReadAll(*daemon, kTracePart | kDaemonPart)) {
      std::memcpy(copy.data() + piece.offset, piece.bytes.data(), piece.bytes.size());
    }
    const auto read = shm::ReadDaemonTrace(copy, {.job_size = 1});
    EXPECT_TRUE(read.has_value());
    for (const shm::DaemonTraceSlot& event : read.value_or(shm::DaemonTraceEvents()).events) {
      bytes.push_back(event.bytes);
    }
    return bytes;
  }

  FakeDataPlane plane_;
  JobProfiles profiles_{uint64_t{1} << 30, &plane_};
};

TEST_F(DaemonEventsTest, AreKeptFromTheFirstRankOnThatKeepsItsOwn) {
  Come(0, "job", 7, 0);
  EXPECT_EQ(profiles_.Find("job").daemon, nullptr) << "a report needs none";
  EXPECT_EQ(plane_.JobTrace("job"), nullptr);
  Come(1, "job");
  Work("job", 5);
  const auto ring = plane_.JobTrace("job");
  Come(2, "job");
  EXPECT_EQ(plane_.JobTrace("job"), ring) << "it goes on";
  Work("job", 6);
  EXPECT_THAT(Read("job"), testing::ElementsAre(5, 6));
  EXPECT_EQ(profiles_.Find("job").daemon->rank, kRankOfDaemon);
}

TEST_F(DaemonEventsTest, AreReadOnlyIfTheyAreAskedFor) {
  Come(0, "job");
  Work("job", 5);
  EXPECT_THAT(ReadAll(*profiles_.Find("job").daemon, kProfilePart | kTracePart), IsEmpty());
}

// Two users' jobs at once: who may see a job is decided by its owner.
TEST_F(DaemonEventsTest, OfTwoUsersEachHasHisOwn) {
  Come(0, "anns", 1001);
  Come(0, "bobs", 1002);
  EXPECT_NE(plane_.JobTrace("anns"), plane_.JobTrace("bobs"));
  Work("anns", 1);
  Work("bobs", 2);
  Work("anns", 3);
  EXPECT_THAT(Read("anns"), testing::ElementsAre(1, 3));
  EXPECT_THAT(Read("bobs"), testing::ElementsAre(2));
  EXPECT_EQ(profiles_.Find("anns").uid, 1001U);
  EXPECT_EQ(profiles_.Find("bobs").uid, 1002U);
}

TEST_F(DaemonEventsTest, ProgramsThatFollowEachOtherHaveOneEach) {
  Come(0, "job");
  Come(0, "job#2");
  Work("job", 1);
  Work("job#2", 2);
  EXPECT_THAT(Read("job"), testing::ElementsAre(1));
  EXPECT_THAT(Read("job#2"), testing::ElementsAre(2));
}

TEST_F(DaemonEventsTest, AreAsManyAsTheRankKeepsButBounded) {
  Come(0, "small", 7, 64 << 10);
  EXPECT_LT(profiles_.Find("small").daemon->bytes, 72U << 10);
  Come(0, "huge", 7, UINT64_MAX);
  EXPECT_LE(profiles_.Find("huge").daemon->bytes, kMostDaemonTraceBytes);
  EXPECT_GT(profiles_.Find("huge").daemon->bytes, kMostDaemonTraceBytes / 4);
}

TEST_F(DaemonEventsTest, OfOneUserTakeABoundedPart) {
  int kept = 0;
  const auto come = [&](int job, uid_t uid) {
    const std::string id = "job" + std::to_string(uid) + "-" + std::to_string(job);
    Come(0, id, uid, UINT64_MAX);
    const auto daemon = profiles_.Find(id).daemon;
    kept += daemon->fd != nullptr ? 1 : 0;
    return daemon->refusal;
  };
  uint64_t bytes = 0;
  for (int job = 0; job < 32; ++job) {
    if (const std::string why = come(job, 7); !why.empty()) {
      EXPECT_THAT(why, HasSubstr("this user"));
    }
    bytes += profiles_.Find("job7-" + std::to_string(job)).daemon->bytes;
  }
  EXPECT_LE(bytes, kMostDaemonTraceBytesOfUser);
  EXPECT_GT(bytes, kMostDaemonTraceBytesOfUser / 2);
  EXPECT_EQ(come(0, 8), "") << "another user has room";
  for (uid_t uid = 9; uid < 20; ++uid) {
    for (int job = 0; job < 8; ++job) {
      (void)come(job, uid);
    }
  }
  EXPECT_THAT(come(0, 20), HasSubstr("all users"));
  const int before = kept;
  for (int job = 0; job < 32; ++job) {
    profiles_.Drop("job7-" + std::to_string(job));
  }
  EXPECT_EQ(come(1, 20), "") << "ended jobs give them back";
  EXPECT_EQ(kept, before + 1);
}

}  // namespace
}  // namespace ferry::daemon
