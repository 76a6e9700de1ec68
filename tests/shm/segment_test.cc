// Segments, and what is checked of another process's.
#include "shm/segment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/version.h"
#include "tests/shm/child_process.h"

namespace ferry::shm {
namespace {

using testing::HasSubstr;

// ---- Segments

constexpr uint64_t kPage = 4096;

TEST(SegmentTest, IsZeroAndSharedBetweenProcesses) {
  StatusOr<UniqueFd> fd = CreateSegment("ferry-test", 3 * kPage);
  ASSERT_TRUE(fd.ok()) << fd.status().ToString();
  StatusOr<Mapping> mapping = MapSegment(fd->get(), 3 * kPage);
  ASSERT_TRUE(mapping.ok()) << mapping.status().ToString();
  ASSERT_EQ(mapping->size_bytes(), 3 * kPage);
  EXPECT_EQ(mapping->base()[2 * kPage], std::byte{0});
  ChildProcess child([&] {
    StatusOr<Mapping> other = MapSegment(fd->get(), 0);
    if (!other.ok()) {
      return false;
    }
    other->base()[2 * kPage] = std::byte{7};
    return true;
  });
  ASSERT_TRUE(child.Join());
  EXPECT_EQ(mapping->base()[2 * kPage], std::byte{7});
}

// SIGXFSZ would end the process.
TEST(SegmentTest, BeyondTheLimitOfFilesIsAnError) {
  ChildProcess child([] {
    const rlimit limit = {kPage, kPage};
    setrlimit(RLIMIT_FSIZE, &limit);
    const StatusOr<UniqueFd> fd = CreateSegment("ferry-test", 2 * kPage);
    return !fd.ok() && fd.status().message().find("`ulimit -f`") != std::string::npos;
  });
  EXPECT_TRUE(child.Join());
}

TEST(SegmentTest, RoundsUpToPages) {
  StatusOr<UniqueFd> fd = CreateSegment("ferry-test", kPage + 1);
  ASSERT_TRUE(fd.ok());
  StatusOr<Mapping> mapping = MapSegment(fd->get(), kPage + 1);
  ASSERT_TRUE(mapping.ok()) << mapping.status().ToString();
  EXPECT_EQ(mapping->size_bytes(), 2 * kPage);
}

// Twice, so that not both lie where the system would have put them anyhow.
TEST(SegmentTest, LargeMappingsAreAlignedToTheirSize) {
  constexpr uint64_t kMiB = 1 << 20;
  const std::pair<uint64_t, uint64_t> sizes[] = {
      {2 * kMiB, 2 * kMiB}, {7 * kMiB + kPage, 4 * kMiB}, {1000 * kMiB, 256 * kMiB}};
  for (const auto& [size_bytes, alignment] : sizes) {
    const StatusOr<UniqueFd> fd = CreateSegment("ferry-test", size_bytes);
    ASSERT_TRUE(fd.ok());
    const StatusOr<Mapping> mapping = MapSegment(fd->get(), size_bytes);
    const StatusOr<Mapping> other = MapPart(fd->get(), size_bytes, Access::kRead);
    ASSERT_TRUE(mapping.ok() && other.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(mapping->base()) % alignment, 0u) << size_bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(other->base()) % alignment, 0u) << size_bytes;
    mapping->base()[size_bytes - 1] = std::byte{7};
    EXPECT_EQ(other->base()[size_bytes - 1], std::byte{7});
  }
}

// The process may have the mapping, but not room to choose its place from.
TEST(SegmentTest, IsMappedAnywhereWhereAddressesAreScarce) {
  constexpr uint64_t kSize = 64 << 20;
  ChildProcess child([] {
    const StatusOr<UniqueFd> fd = CreateSegment("ferry-test", kSize);
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most_bytes = pages * kPage + kSize + kSize / 2;
    const rlimit limit = {most_bytes, most_bytes};
    setrlimit(RLIMIT_AS, &limit);
    const StatusOr<Mapping> mapping = MapSegment(fd->get(), kSize);
    if (!mapping.ok()) {
      return false;
    }
    mapping->base()[kSize - 1] = std::byte{7};
    return true;
  });
  EXPECT_TRUE(child.Join());
}

TEST(SegmentTest, RefusesSizesThatCannotBe) {
  for (uint64_t size_bytes : {uint64_t{0}, ~uint64_t{0}}) {
    StatusOr<UniqueFd> fd = CreateSegment("ferry-test", size_bytes);
    ASSERT_FALSE(fd.ok());
    EXPECT_EQ(fd.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(fd.status().message(), HasSubstr(std::to_string(size_bytes) + " bytes"));
  }
}

TEST(SegmentTest, CanNeitherShrinkNorGrow) {
  StatusOr<UniqueFd> fd = CreateSegment("ferry-test", 2 * kPage);
  ASSERT_TRUE(fd.ok());
  EXPECT_EQ(ftruncate(fd->get(), kPage), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(fd->get(), 3 * kPage), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(SegmentTest, MappingRefusesWhatIsNotSealed) {
  UniqueFd unsealed(memfd_create("ferry-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), kPage), 0);
  StatusOr<Mapping> mapping = MapSegment(unsealed.get(), kPage);
  ASSERT_FALSE(mapping.ok());
  EXPECT_EQ(mapping.status().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(mapping.status().message(), HasSubstr("not sealed against shrinking"));
}

TEST(SegmentTest, MappingRefusesWhatIsNoMemfd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  StatusOr<Mapping> mapping = MapSegment(read_end.get(), kPage);
  ASSERT_FALSE(mapping.ok());
  EXPECT_EQ(mapping.status().code(), ErrorCode::kCorrupt);
}

TEST(SegmentTest, MappingRefusesAClosedDescriptor) {
  StatusOr<Mapping> mapping = MapSegment(-1, kPage);
  ASSERT_FALSE(mapping.ok());
  EXPECT_THAT(mapping.status().message(), HasSubstr("reading the seals"));
}

TEST(SegmentTest, MappingRefusesAnotherSizeAndNamesBoth) {
  StatusOr<UniqueFd> fd = CreateSegment("ferry-test", 2 * kPage);
  ASSERT_TRUE(fd.ok());
  StatusOr<Mapping> mapping = MapSegment(fd->get(), kPage);
  ASSERT_FALSE(mapping.ok());
  EXPECT_EQ(mapping.status().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(mapping.status().message(), HasSubstr("8192"));
  EXPECT_THAT(mapping.status().message(), HasSubstr("4096"));
}

TEST(SegmentTest, PartIsMappedOfAFileThatGrows) {
  const UniqueFd fd(memfd_create("ferry-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(fd.get(), 2 * kPage), 0);
  EXPECT_EQ(MapPart(fd.get(), kPage).status().code(), ErrorCode::kCorrupt) << "it may shrink";
  ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  StatusOr<Mapping> part = MapPart(fd.get(), kPage);
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->size_bytes(), kPage);
  EXPECT_EQ(MapPart(fd.get(), 3 * kPage).status().code(), ErrorCode::kCorrupt);
  ASSERT_EQ(ftruncate(fd.get(), 3 * kPage), 0);
  StatusOr<Mapping> all = MapPart(fd.get(), 3 * kPage);
  ASSERT_TRUE(all.ok());
  part->base()[5] = std::byte{7};
  EXPECT_EQ(all->base()[5], std::byte{7});
}

TEST(SegmentTest, PartForReadingIsNotWritable) {
  const StatusOr<UniqueFd> fd = CreateSegment("ferry-test", kPage);
  ASSERT_TRUE(fd.ok());
  StatusOr<Mapping> part = MapPart(fd->get(), kPage, Access::kRead);
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->base()[0], std::byte{0});
  EXPECT_EQ(pread(fd->get(), part->base(), 1, 0), -1);  // the kernel does not write there, either
  EXPECT_EQ(errno, EFAULT);
}

// Its pages can be given back by punching holes, and may be gone when they are touched again.
TEST(SegmentTest, MappingRefusesHugePages) {
  constexpr uint64_t kHugePage = 2 << 20;
  UniqueFd huge(memfd_create("ferry-test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!huge.valid()) {
    GTEST_SKIP() << "this kernel makes no memfds of huge pages: " << strerror(errno);
  }
  ASSERT_EQ(ftruncate(huge.get(), kHugePage), 0) << strerror(errno);
  ASSERT_EQ(fcntl(huge.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  StatusOr<Mapping> mapping = MapSegment(huge.get(), kHugePage);
  ASSERT_FALSE(mapping.ok());
  EXPECT_EQ(mapping.status().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(mapping.status().message(), HasSubstr("not made of ordinary pages"));
}

// The seals do not forbid this: ordinary pages that are given back return as zeros.
TEST(SegmentTest, PunchedPagesComeBackEmpty) {
  StatusOr<UniqueFd> fd = CreateSegment("ferry-test", 4 * kPage);
  ASSERT_TRUE(fd.ok());
  StatusOr<Mapping> mapping = MapSegment(fd->get(), 4 * kPage);
  ASSERT_TRUE(mapping.ok());
  mapping->base()[kPage] = std::byte{7};
  mapping->base()[3 * kPage] = std::byte{8};
  ASSERT_EQ(fallocate(fd->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 * kPage), 0);
  EXPECT_EQ(mapping->base()[kPage], std::byte{0});
  mapping->base()[kPage] = std::byte{9};
  EXPECT_EQ(mapping->base()[kPage], std::byte{9});
  EXPECT_EQ(mapping->base()[3 * kPage], std::byte{8});
}

TEST(SegmentTest, MovedMappingIsUnmappedOnce) {
  StatusOr<UniqueFd> fd = CreateSegment("ferry-test", kPage);
  ASSERT_TRUE(fd.ok());
  StatusOr<Mapping> mapping = MapSegment(fd->get(), kPage);
  ASSERT_TRUE(mapping.ok());
  std::byte* base = mapping->base();
  {
    Mapping taken = std::move(*mapping);
    EXPECT_FALSE(mapping->valid());
    Mapping assigned;
    assigned = std::move(taken);
    EXPECT_EQ(assigned.base(), base);
    unsigned char resident = 0;
    EXPECT_EQ(mincore(base, kPage, &resident), 0);
  }
  unsigned char resident = 0;
  EXPECT_EQ(mincore(base, kPage, &resident), -1);
  EXPECT_EQ(errno, ENOMEM);
}

// Returns a page to which nothing is mapped.
void* Hole() {
  void* const hole = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(hole, MAP_FAILED);
  munmap(hole, kPage);
  return hole;
}

// An emulator's system calls may leave advice on memory alone, and succeed.
bool IsAdviceTaken() { return madvise(Hole(), kPage, MADV_POPULATE_WRITE) != 0; }
constexpr char kAdviceIsLeftAlone[] =
    "madvise says that it has prefaulted memory that is not there, as qemu's does";

TEST(SegmentTest, PrefaultTakesThePagesAndChangesNothing) {
  if (!IsAdviceTaken()) {
    GTEST_SKIP() << kAdviceIsLeftAlone;
  }
  StatusOr<UniqueFd> fd = CreateSegment("ferry-test", 16 * kPage);
  ASSERT_TRUE(fd.ok());
  StatusOr<Mapping> mapping = MapSegment(fd->get(), 0);
  ASSERT_TRUE(mapping.ok());
  mapping->base()[5 * kPage] = std::byte{9};
  // From the middle of page 4 to the middle of page 7: whole pages are taken.
  ASSERT_TRUE(Prefault(mapping->base() + 4 * kPage + 100, 3 * kPage).ok());
  std::vector<unsigned char> resident(16);
  ASSERT_EQ(mincore(mapping->base(), 16 * kPage, resident.data()), 0);
  for (uint32_t page = 0; page < 16; ++page) {
    EXPECT_EQ(resident[page] & 1, page >= 4 && page <= 7) << "page " << page;
  }
  EXPECT_EQ(mapping->base()[5 * kPage], std::byte{9});
}

TEST(SegmentTest, PrefaultOfUnmappedMemoryIsAnError) {
  if (!IsAdviceTaken()) {
    GTEST_SKIP() << kAdviceIsLeftAlone;
  }
  const Status status = Prefault(static_cast<std::byte*>(Hole()), kPage);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("prefaulting 4096 bytes"));
}

// ---- Checks

class SegmentCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    StatusOr<UniqueFd> fd = CreateSegment("ferry-test", 4096);
    ASSERT_TRUE(fd.ok());
    StatusOr<Mapping> mapping = MapSegment(fd->get(), 4096);
    ASSERT_TRUE(mapping.ok());
    mapping_ = std::move(*mapping);
  }
  SegmentHeader* header() { return reinterpret_cast<SegmentHeader*>(mapping_.base()); }
  void Publish() {
    SegmentHeader fields{};
    fields.kind = static_cast<uint32_t>(SegmentKind::kInbox);
    fields.size_bytes = mapping_.size_bytes();
    fields.rank = 7;
    PublishHeader(header(), fields);
  }

  Mapping mapping_;
};

TEST_F(SegmentCheckTest, PublishedHeaderIsAccepted) {
  Publish();
  const Status status = CheckHeader(mapping_, SegmentKind::kInbox);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(header()->rank, 7U);
}

TEST_F(SegmentCheckTest, UnpublishedHeaderIsNotAFailure) {
  EXPECT_EQ(CheckHeader(mapping_, SegmentKind::kInbox).code(), ErrorCode::kWouldBlock);
}

TEST_F(SegmentCheckTest, OtherVersionNamesBoth) {
  Publish();
  header()->layout_version = 9999;
  const Status status = CheckHeader(mapping_, SegmentKind::kInbox);
  EXPECT_EQ(status.code(), ErrorCode::kVersionMismatch);
  EXPECT_THAT(status.message(), HasSubstr("9999"));
  EXPECT_THAT(status.message(), HasSubstr("this program " + std::to_string(kLayoutVersion)));
}

TEST_F(SegmentCheckTest, WrongMagicKindAndSizeAreCorrupt) {
  Publish();
  header()->magic += 1;
  EXPECT_THAT(CheckHeader(mapping_, SegmentKind::kInbox).message(), HasSubstr("magic"));
  Publish();
  EXPECT_THAT(CheckHeader(mapping_, SegmentKind::kSession).message(), HasSubstr("kind 2"));
  header()->size_bytes = 4095;
  const Status status = CheckHeader(mapping_, SegmentKind::kInbox);
  EXPECT_EQ(status.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("4095"));
}

TEST_F(SegmentCheckTest, SegmentSmallerThanAHeaderIsCorrupt) {
  EXPECT_EQ(CheckHeader(Mapping(), SegmentKind::kInbox).code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace ferry::shm
