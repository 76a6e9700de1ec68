// A page of a rank's memory that vanishes ends that rank's session, and nothing else.
#include "daemon/session/memory_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/thread.h"
#include "tests/daemon/attach/attach_server_fixture.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kPage = 4096;

// Memory of an unsealed file, which can be cut off.
class Unsealed {
 public:
  explicit Unsealed(uint64_t pages) : fd_(memfd_create("test-unsealed", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_.get(), static_cast<off_t>(pages * kPage)), 0);
  }
  shm::Mapping Map(uint64_t pages, void* at = nullptr) const {
    void* base = mmap(at, pages * kPage, PROT_READ | PROT_WRITE,
                      MAP_SHARED | (at == nullptr ? 0 : MAP_FIXED), fd_.get(), 0);
    EXPECT_NE(base, MAP_FAILED);
    return {static_cast<std::byte*>(base), pages * kPage};
  }
  void CutOff(uint64_t pages) {
    EXPECT_EQ(ftruncate(fd_.get(), static_cast<off_t>(pages * kPage)), 0);
  }

 private:
  UniqueFd fd_;
};

bool IsReadable(int fd) {
  pollfd readable{fd, POLLIN, 0};
  return poll(&readable, 1, 0) == 1;
}

TEST(MemoryGuardTest, ACopyOfWhatHasVanishedGoesOnWithZeros) {
  MemoryWatch watch;
  Unsealed file(4);
  const shm::Mapping memory = file.Map(4);
  watch.Guard(memory, {"job", 7});
  std::fill_n(memory.base(), memory.size_bytes(), std::byte{9});
  file.CutOff(2);
  std::vector<std::byte> copy(4 * kPage, std::byte{1});
  std::memcpy(copy.data(), memory.base(), copy.size());
  EXPECT_EQ(std::count(copy.begin(), copy.begin() + 2 * kPage, std::byte{9}), 2 * kPage);
  EXPECT_EQ(std::count(copy.begin() + 2 * kPage, copy.end(), std::byte{0}), 2 * kPage);
  EXPECT_TRUE(IsReadable(watch.fd()));
  const std::vector<MemoryOwner> owners = watch.TakeVanished();
  ASSERT_EQ(owners.size(), 1U);
  EXPECT_EQ(owners[0].job_id, "job");
  EXPECT_EQ(owners[0].rank, 7U);
  EXPECT_FALSE(IsReadable(watch.fd()));
  EXPECT_TRUE(watch.TakeVanished().empty()) << "told once";
  MemoryWatch::Forget(memory);
}

TEST(MemoryGuardTest, WritesToItGoOnToo) {
  MemoryWatch watch;
  Unsealed file(3);
  const shm::Mapping memory = file.Map(3);
  watch.Guard(memory, {"job", 0});
  file.CutOff(1);
  std::memset(memory.base(), 5, memory.size_bytes());
  EXPECT_EQ(memory.base()[3 * kPage - 1], std::byte{5});
  EXPECT_EQ(watch.TakeVanished().size(), 1U);
  MemoryWatch::Forget(memory);
}

// The pages outnumber the mappings that a process may have.
TEST(MemoryGuardTest, AnyNumberOfPagesMayVanish) {
  constexpr uint64_t kPages = 200'000;
  MemoryWatch watch;
  Unsealed file(kPages);
  const shm::Mapping memory = file.Map(kPages);
  watch.Guard(memory, {"job", 0});
  file.CutOff(0);
  uint64_t sum = 0;
  for (uint64_t page = 0; page < kPages; page += 2) {
    sum += static_cast<uint64_t>(memory.base()[page * kPage]);
  }
  EXPECT_EQ(sum, 0U);
  EXPECT_EQ(watch.TakeVanished().size(), 1U);
  MemoryWatch::Forget(memory);
}

TEST(MemoryGuardTest, HoldsOnThreadsThatTakeNoSignals) {
  MemoryWatch watch;
  Unsealed file(1);
  const shm::Mapping memory = file.Map(1);
  watch.Guard(memory, {"job", 0});
  file.CutOff(0);
  std::byte seen{1};
  StatusOr<std::thread> thread =
      StartThread("test", "that reads", [&] { seen = memory.base()[0]; });
  ASSERT_TRUE(thread.ok());
  thread->join();
  EXPECT_EQ(seen, std::byte{0});
  MemoryWatch::Forget(memory);
}

using MemoryGuardDeathTest = ::testing::Test;

TEST(MemoryGuardDeathTest, OtherMemoryIsNotItsBusiness) {
  const auto touch = [](bool is_guarded_before) {
    MemoryWatch watch;
    Unsealed file(1);
    const shm::Mapping memory = file.Map(1);
    if (is_guarded_before) {
      watch.Guard(memory, {"job", 0});
      MemoryWatch::Forget(memory);
    }
    file.CutOff(0);
    std::memset(memory.base(), 1, 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // Another handler may be a sanitizer's, which reports the fault and exits.
  const auto is_end = [](int status) {
    return (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) ||
           (WIFEXITED(status) && WEXITSTATUS(status) != 0);
  };
  EXPECT_EXIT(touch(false), is_end, "");
  EXPECT_EXIT(touch(true), is_end, "");
}

// For each of the rank's memories, and each thread that may find out.
class VanishedMemoryTest : public AttachServerTest, public ::testing::WithParamInterface<int> {};

TEST_P(VanishedMemoryTest, EndsThatSessionAndTheDaemonGoesOn) {
  TestRank rank = Entered(0);
  TestRank other = Entered(1);
  const Unsealed nothing(0);
  loop_->Run([&] {
    const std::shared_ptr<Session> session = registry_->jobs().at("job")->ranks[0].session;
    const shm::Mapping& memory = GetParam() == 0 ? session->session_map : session->inbox_map;
    nothing.Map(memory.size_bytes() / kPage, memory.base()).Release();
    uint64_t sum = 0;
    for (uint64_t offset = 0; offset < memory.size_bytes(); offset += kPage) {
      sum += static_cast<uint64_t>(memory.base()[offset]);
    }
    EXPECT_EQ(sum, 0U);
  });
  const Answer answer = rank.Read();
  EXPECT_EQ(answer.kind(), attach::Kind::kGoodbye);
  ExpectRefusal(answer, ErrorCode::kCorrupt, "rank 0 of job job: some of its memory has vanished");
  EXPECT_TRUE(data_plane_.WaitFor("RemoveSession job 0"));
  EXPECT_EQ(data_plane_.Count("RemoveSession job 1"), 0U);
  EXPECT_EQ(other.SendRegion(1, 4096).code(), ErrorCode::kOk);
  TestRank next = Rank(2);
  EXPECT_TRUE(next.Enter(socket_path_));
}

INSTANTIATE_TEST_SUITE_P(MemoryGuard, VanishedMemoryTest, ::testing::Values(0, 1),
                         [](const auto& info) { return info.param == 0 ? "Session" : "Inbox"; });

TEST_F(AttachServerTest, APunchedSegmentIsOnlyEmpty) {
  TestRank rank = Entered(0);
  TestRank other = Entered(1);
  loop_->Run([&] {
    const std::shared_ptr<Session> session = registry_->jobs().at("job")->ranks[0].session;
    for (const auto& [fd, memory] : {std::pair(session->session_fd.get(), &session->session_map),
                                     std::pair(session->inbox_fd.get(), &session->inbox_map)}) {
      ASSERT_EQ(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                          static_cast<off_t>(memory->size_bytes())),
                0);
      for (uint64_t offset = 0; offset < memory->size_bytes(); offset += kPage) {
        EXPECT_EQ(memory->base()[offset], std::byte{0});
      }
    }
  });
  EXPECT_EQ(rank.SendRegion(1, 4096).code(), ErrorCode::kOk) << "it harms itself, not the daemon";
  EXPECT_EQ(other.SendRegion(1, 4096).code(), ErrorCode::kOk);
}

}  // namespace
}  // namespace ferry::daemon
