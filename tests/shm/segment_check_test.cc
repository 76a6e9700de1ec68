#include "shm/segment_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/version.h"

namespace ferry::shm {
namespace {

using testing::HasSubstr;

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
